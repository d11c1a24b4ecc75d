"""The layers of the house: what is below never imports what is above."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import sfumato

ROOT = Path(sfumato.__file__).parent

# From the ground up. A module may import its own layer and those above it in this list.
LAYERS = [
    {
        "errors",
        "progress",
        "notebook",
        "storage",
        "declaration",
        "columns",
        "constraints",
        "schema",
    },
    {"data"},
    {"privacy"},
    {"statistics"},
    {"public"},
    {"modelling"},
    {"methods"},
    {"papers", "classify"},
    {"registry", "loading"},
    {"sampling", "datasets", "certificate"},
    {"synthesis"},
    {"evaluation"},
    {"cli"},
    {"demo", "__init__"},
]
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Give the layers that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "sfumato":
            names = [f"sfumato.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            if name.split(".")[0] == "sfumato":
                yield name.split(".")[1] if "." in name else "__init__"


def test_every_module_has_a_layer() -> None:
    found = {layer_of(path) for path in ROOT.rglob("*.py")}
    assert found == set(HEIGHT)


def test_no_module_imports_from_above() -> None:
    back = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in ROOT.rglob("*.py")
        for name in imported(path)
        if HEIGHT[name] > HEIGHT[layer_of(path)]
    ]
    assert back == []


def packages(path: Path) -> Iterator[tuple[str, str]]:
    """Give the package of a file and that of each module of sfumato that it imports, in full."""
    own = ".".join(path.relative_to(ROOT).parts[:2])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sfumato."):
            yield own, node.module.removeprefix("sfumato.")


def test_no_method_imports_the_insides_of_another() -> None:
    """What others may use of a method stands in its package, or in what all share."""
    inside = [
        f"{path.relative_to(ROOT)} imports {module}"
        for folder in ("methods", "papers", "classify")
        for path in (ROOT / folder).rglob("*.py")
        for own, module in packages(path)
        if module.split(".")[0] in ("methods", "papers")
        and module.count(".") > 1
        and ".".join(module.split(".")[:2]) != own
    ]
    assert inside == []


def test_the_core_is_imported_without_torch() -> None:
    """Only inside functions, or where a module is about a network, may torch be imported."""
    neural = {
        "classify/attribution.py", "classify/map_bank.py",
        "classify/network.py", "evaluation/cnn.py", "statistics/hermite_tensor.py",
        "modelling/adversary.py", "modelling/networks.py", "public/perceptual.py",
        "papers/embedding/picture_bank.py", "papers/embedding/trained_extractor.py",
        "papers/embedding/training.py",
        "modelling/class_learner.py", "modelling/network_learner.py", "privacy/dpsgd.py",
        "privacy/gradients.py", "public/architectures.py",
        "public/encoder.py", "public/extractor.py", "public/flow_decoder.py",
        "public/inception.py", "public/picture_code.py", "public/borrowed.py",
        "public/single_image_view.py",
        "public/whole_numbers.py", "methods/dre/discriminator.py", "papers/gan/learner.py",
    }  # fmt: skip
    at_the_top = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if (isinstance(node, ast.Import) and any(a.name == "torch" for a in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch")
    }
    assert at_the_top <= neural

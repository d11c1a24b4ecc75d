"""Pictures of maps: what each looks for, and what an input woke; PNG or SVG by the ending."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classify.explanation import Explanation
from sfumato.errors import SfumatoError
from sfumato.schema import Value, canonical_text
from sfumato.storage import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".json")
MOST_BARS = 15
MARK = "PRIVATE if the row is: this shows what one row of the given data says"
COLOURS = "RdBu_r"
FOR, AGAINST = "#b2182b", "#2166ac"


def check_format(path: Path) -> None:
    """Refuse an ending that is not known, before any work is done."""
    if path.suffix not in FORMATS:
        raise SfumatoError(f"{path}: an explanation is written to {', '.join(FORMATS)}")


def write_explanation(path: Path, explanation: Explanation) -> None:
    """Write an explanation as a picture, or as data where the file ends in .json."""
    check_format(path)
    if path.suffix == ".json":
        told = {"mark": MARK, **explanation.to_dict()}
        text = json.dumps(told, indent=1, ensure_ascii=False)
        write_whole(path, (text + "\n").encode())
        return
    figure = feature_bars(explanation) if explanation.names else image_maps(explanation)
    figure.supxlabel(MARK, fontsize=7, color=FOR)
    write_figure(path, figure)


def image_maps(explanation: Explanation) -> Figure:
    """Draw an image as the maps see it, and beside it the maps that it woke most."""
    maps = explanation.maps
    figure = _figure(1.9 * (len(maps) + 1), 2.4)
    axes = figure.subplots(1, len(maps) + 1)
    axes[0].imshow(_scaled(explanation.features), cmap="gray")
    axes[0].set_title(_verdict(explanation), fontsize=10)
    for axis, each in zip(axes[1:], maps, strict=True):
        _draw_map(axis, each.weights)
        axis.set_title(f"map {each.index}: {each.share:.0%}", fontsize=10)
    for axis in axes:
        axis.set_axis_off()
    return figure


def map_bank(maps: NDArray[np.floating[Any]], classes: tuple[Value, ...], most: int = 10) -> Figure:
    """Draw the bank of an image model: one row of maps for each class."""
    shown = maps[:, :most]
    figure = _figure(0.75 * shown.shape[1] + 0.9, 0.75 * len(shown) + 0.2)
    axes = figure.subplots(*shown.shape[:2], squeeze=False)
    for row, name, bank in zip(axes, classes, shown, strict=True):
        for axis, weights in zip(row, bank, strict=True):
            _draw_map(axis, weights)
            axis.set_xticks([])
            axis.set_yticks([])
        row[0].set_ylabel(
            _plain(canonical_text(name)), rotation=0, ha="right", va="center", fontsize=9
        )
    return figure


def feature_bars(explanation: Explanation) -> Figure:
    """Draw what each feature of a table's row says for its class, the largest first."""
    added = explanation.contributions
    order = np.argsort(-np.abs(added))[: min(MOST_BARS, np.count_nonzero(added))]
    figure = _figure(6.4, 0.27 * len(order) + 1.0)
    axis = figure.subplots()
    places = np.arange(len(order))[::-1]
    axis.barh(places, added[order], color=[FOR if a > 0 else AGAINST for a in added[order]])
    axis.set_yticks(places, [_plain(explanation.names[i]) for i in order], fontsize=8)
    axis.axvline(0, color="black", linewidth=0.8)
    shares = ", ".join(f"map {m.index} {m.share:.0%}" for m in explanation.maps)
    axis.set_title(f"{_verdict(explanation)}; {shares}", fontsize=10)
    axis.set_xlabel("for (right) and against (left) the predicted class", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def write_figure(path: Path, figure: Figure) -> None:
    """Write a figure as PNG or SVG."""
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.removeprefix("."), dpi=150)
    write_whole(path, content.getvalue())


def _verdict(explanation: Explanation) -> str:
    chance = explanation.probabilities[explanation.prediction]
    return f"{_plain(canonical_text(explanation.prediction))} ({chance:.0%})"


def _plain(text: str) -> str:
    """Keep matplotlib from reading a dollar sign as mathematics."""
    return text.replace("$", r"\$")


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _draw_map(axis: Any, weights: NDArray[np.floating[Any]]) -> None:
    """Show a map: red where it looks for light, blue where for dark; colours are averaged."""
    flat = weights.mean(axis=-1)
    most = float(np.abs(flat).max()) or 1.0
    axis.imshow(flat, cmap=COLOURS, vmin=-most, vmax=most)


def _scaled(image: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    low, high = float(image.min()), float(image.max())
    scaled = (image - low) / ((high - low) or 1.0)
    return scaled[..., 0] if image.shape[-1] == 1 else scaled

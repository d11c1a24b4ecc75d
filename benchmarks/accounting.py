"""How much noise a budget asks for, by the Gaussian curve and by zCDP; reads no data.

python benchmarks/accounting.py
"""

from __future__ import annotations

from harness import Section, mark, result, table, write_result
from sfumato.privacy import gaussian, zcdp
from sfumato.privacy.zcdp import gaussian_scale

DELTA = 1e-5


def main() -> None:
    found = {}
    for epsilon in (0.1, 1.0, 10.0):
        exact = gaussian_scale(1.0, gaussian.rho_for(epsilon, DELTA))
        before = gaussian_scale(1.0, zcdp.rho_for(epsilon, DELTA))
        found[f"{epsilon:g}"] = {
            "gaussian": exact,
            "zcdp": before,
            "variance saved": 1 - (exact / before) ** 2,
        }
    write_result("accounting", {"delta": DELTA, "noise per unit of sensitivity": found})


def body() -> str:
    found = result("accounting")
    rows = [
        [epsilon + mark("accounting", found), f"{each['gaussian']:.4g}", f"{each['zcdp']:.4g}",
         f"{each['variance saved']:.1%}"]
        for epsilon, each in found["noise per unit of sensitivity"].items()
    ]  # fmt: skip
    return table(["epsilon", "Gaussian curve", "zCDP", "variance saved"], rows)


SECTION = Section(
    "Noise for a budget",
    "accounting.py",
    "The scale of noise per unit of sensitivity at delta = 1e-5, everything charged.",
    body,
)


if __name__ == "__main__":
    main()

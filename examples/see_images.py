"""A picture of synthetic digits beside real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import sfumato as sf


def main(path: Path = Path("digits.png")) -> Path:
    """Fit 8 x 8 digits at a large epsilon (there are few of them) and draw ten of each class."""
    bunch = load_digits()
    x = (bunch.images * 255 / 16).astype(np.uint8)
    schema = sf.Schema(images=sf.Images(height=8, width=8, classes=tuple(range(10))))
    model = sf.Moments().fit((x, bunch.target), schema, sf.Budget(epsilon=10))
    figure = Figure(figsize=(6, 3), layout="constrained")
    for place, label in enumerate(range(10)):
        real = x[bunch.target == label][:3]
        made = model.sample(3, given={"class": label}).x[..., 0]
        axis = figure.add_subplot(1, 10, place + 1)
        axis.imshow(np.concatenate([*real, *made]), cmap="gray")
        axis.axhline(3 * 8 - 0.5, color="red")
        axis.set_axis_off()
    figure.suptitle("real digits above the line, synthetic ones below")
    figure.savefig(path)
    return path


if __name__ == "__main__":
    print(main())

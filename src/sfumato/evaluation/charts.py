"""Charts as inline SVG: they scale, print, follow the page's colours and read aloud.

Every text goes through `Markup.format`, which escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

_WIDTH, _HEIGHT = 320, 132


def ordered_histogram(
    name: str, labels: Sequence[str], shares: dict[str, Sequence[float]]
) -> Markup:
    """Draw bars for the synthetic rows and, where there are real rows, their outline.

    >>> "<script>" in ordered_histogram("<script>", ["1"], {"synthetic": [1.0]})
    False
    """
    top, bottom, left = 8, _HEIGHT - 22, 2
    with_missing = bool(labels) and labels[-1] == "(missing)"
    bars = len(labels) - with_missing
    tallest = max(max(values) for values in shares.values()) or 1.0
    step = (_WIDTH - 2 * left - (56 if with_missing else 0)) / max(bars, 1)

    def height(share: float) -> float:
        return (bottom - top) * share / tallest

    def place(index: int) -> tuple[float, float]:
        """Give left edge and width of a bar; missing values stand apart at the right."""
        return (left + index * step, step) if index < bars else (_WIDTH - left - 34, 24)

    drawn = []
    for index, share in enumerate(shares["synthetic"]):
        x, wide = place(index)
        drawn.append(
            _rect("synthetic", x + 0.5, bottom - height(share), max(wide - 1, 0.5), height(share))
        )
    if "real" in shares:
        steps = [(*place(index), height(share)) for index, share in enumerate(shares["real"])]
        drawn.append(_outline(steps, bottom))
    ends = [(left, "start", labels[0]), (left + bars * step, "end", labels[bars - 1])]
    if with_missing:
        ends.append((_WIDTH - left, "end", "missing"))
    texts = Markup("").join(
        Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
            x, _HEIGHT - 6, anchor, _short(text, 22)
        )
        for x, anchor, text in ends[: 1 if bars == 1 and not with_missing else 3]
    )
    axis = Markup('<line class="axis" x1="0" x2="{}" y1="{}" y2="{}"/>').format(
        _WIDTH, bottom, bottom
    )
    largest = max(range(len(labels)), key=lambda i: shares["synthetic"][i])
    about = f"{len(labels)} bars; the tallest synthetic one is {labels[largest]} with "
    about += f"{shares['synthetic'][largest]:.1%} of the rows."
    if "real" in shares:
        about += f" Among real rows it has {shares['real'][largest]:.1%}."
    body = Markup("").join(drawn) + axis + texts
    return _svg(_WIDTH, _HEIGHT, f"Histogram of {name}", about, body, "histogram")


def bar(share: float, largest: float, series: str) -> Markup:
    """Draw one horizontal bar for a table cell; the number stands beside it in the table."""
    wide = 100 * share / largest if largest else 0.0
    return Markup(
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="{}" width="{:.2f}" height="8"/></svg>'
    ).format(series, wide)


def scale(grade: float, held_out: float | None = None) -> Markup:
    """Draw a track from worst (left) to best (right), a full mark at the grade.

    A hollow mark stands where held-out real data are.
    """
    x = 7 + 286 * grade
    real = Markup("")
    if held_out is not None:
        real = Markup('<circle class="hollow" cx="{:.1f}" cy="7" r="5"/>').format(
            7 + 286 * held_out
        )
    return Markup(
        '<svg class="scale" viewBox="0 0 300 14" aria-hidden="true">'
        '<rect class="track" x="7" y="5" width="286" height="4" rx="2"/>'
        '<rect class="synthetic" x="7" y="5" width="{:.1f}" height="4" rx="2"/>{}'
        '<circle class="synthetic mark" cx="{:.1f}" cy="7" r="4"/></svg>'
    ).format(x - 7, real, x)


def span(first: float, second: float, low: float = 0.0, high: float = 1.0) -> Markup:
    """Draw a hollow dot (real, or before) and a full one (synthetic, or after) on a line."""
    width = (high - low) or 1.0
    a, b = (6 + 108 * min(max((value - low) / width, 0.0), 1.0) for value in (first, second))
    return Markup(
        '<svg class="span" viewBox="0 0 120 12" aria-hidden="true">'
        '<line class="axis" x1="6" x2="114" y1="6" y2="6"/>'
        '<line class="reach" x1="{:.1f}" x2="{:.1f}" y1="6" y2="6"/>'
        '<circle class="hollow" cx="{:.1f}" cy="6" r="4"/>'
        '<circle class="synthetic" cx="{:.1f}" cy="6" r="4"/></svg>'
    ).format(a, b, a, b)


def heat_map(title: str, names: Sequence[str], matrix: Sequence[Sequence[float]]) -> Markup:
    """Draw a square of cells, darker where the absolute value is larger."""
    size, label = 360, 112
    cell = (size - label) / len(names)
    head = 16
    parts = []
    for i, name in enumerate(names):
        y = head + i * cell
        parts.append(
            Markup('<text x="{}" y="{:.1f}" text-anchor="end">{} {}</text>').format(
                label - 4, y + cell / 2 + 3, _short(name, 16), i + 1
            )
        )
        if cell >= 11 or i % 5 == 4:
            parts.append(
                Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                    label + (i + 0.5) * cell, head - 5, i + 1
                )
            )
        for j, value in enumerate(matrix[i]):
            parts.append(
                Markup(
                    '<rect class="cell" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" '
                    'fill-opacity="{:.3f}"><title>{} and {}: {:.2f}</title></rect>'
                ).format(
                    label + j * cell + 0.4,
                    y + 0.4,
                    cell - 0.8,
                    cell - 0.8,
                    min(abs(value), 1.0),
                    name,
                    names[j],
                    value,
                )
            )
    about = f"{len(names)} by {len(names)} cells; darker means more."
    body = Markup("").join(parts)
    return _svg(size, head + cell * len(names) + 2, title, about, body, "heat")


def _outline(bars: list[tuple[float, float, float]], bottom: float) -> Markup:
    """Draw the stepped line over bars given by left edge, width and height."""
    path, end = "", None
    for x, wide, tall in bars:
        joined = end is not None and abs(x - end) < 0.01
        path += f"{'V' if joined else f'M{x:.1f} {bottom:.1f}V'}{bottom - tall:.1f}H{x + wide:.1f}"
        end = x + wide
    return Markup('<path class="real-line" d="{}V{:.1f}"/>').format(path, bottom)


def _rect(series: str, x: float, y: float, width: float, height: float) -> Markup:
    return Markup('<rect class="{}" x="{:.1f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"/>').format(
        series, x, y, width, height
    )


def _svg(width: float, height: float, title: str, about: str, body: Markup, kind: str) -> Markup:
    return Markup(
        '<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        'aria-label="{title}. {about}"><title>{title}</title><desc>{about}</desc>{body}</svg>'
    ).format(kind=kind, width=width, height=height, title=title, about=about, body=body)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

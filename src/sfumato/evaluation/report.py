"""Two pages that nobody should confuse: a certificate to publish, an internal report to keep.

The certificate is made from a fitted model, hence from released values only. The internal report
is computed with real rows; publishing it would undo the protection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sfumato.certificate import made_by, method_in_words
from sfumato.classify.base import ClassifierModel
from sfumato.evaluation import charts
from sfumato.evaluation.belief import belief_bounds, strength
from sfumato.evaluation.certificate import Certificate, declared
from sfumato.evaluation.evaluation import Associations, Evaluation, TableEvaluation
from sfumato.modelling.base import Fitted, Model
from sfumato.privacy.budget import Guarantee
from sfumato.privacy.measured import NOTE, Measured
from sfumato.schema import canonical_text

MOST_COLUMNS = 60
MOST_POINTS = 10
"""So many of the worst are shown; the rest is folded."""
MOST_IN_HEAT_MAP = 30
MEASURES = {
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "f1": "F1",
    "f1_macro": "F1, macro",
    "f1_weighted": "F1, weighted",
    "accuracy": "Accuracy",
    "roc_auc_hard": "ROC-AUC of labels",
    "pr_auc_hard": "PR-AUC of labels",
    "r2": "R²",
    "mae": "Mean absolute error",
}
"""The names of scores; those of labels are what the papers print."""


def certificate_html(
    fitted: Fitted,
    *,
    title: str = "Certificate",
    seed: int = 0,
    date: str | None = None,
    files: Mapping[str, str] | None = None,
    measured: Sequence[Measured] = (),
) -> str:
    """Give the certificate of a model or classifier as one HTML page that may be published.

    Parameters
    ----------
    date
        The day to print.
    files
        The SHA-256, in hexadecimal digits, of each file that the certificate is about.
    measured
        What attacks found (`sfumato audit`); what was measured of something else is refused.
    """
    for each in measured:
        each.refuse_for(fitted)
    found = [*(each.in_words() for each in measured), *([NOTE] if measured else [])]
    if isinstance(fitted, Model):
        certificate = Certificate.of(fitted, seed, date=date, files=files)
        return _model_html(certificate, fitted, title, found)
    if isinstance(fitted, ClassifierModel):
        return _classifier_html(fitted, title, date, files or {}, found)
    raise TypeError(f"there is no certificate of a {type(fitted).__name__}")


def _model_html(certificate: Certificate, model: Model, title: str, measured: Sequence[str]) -> str:
    return _render(
        "certificate.html.j2",
        title=title,
        certificate=certificate,
        guarantee=certificate.guarantee,
        public=model.public,
        beliefs=certificate.beliefs,
        content=certificate.content,
        strength=certificate.strength,
        most_columns=MOST_COLUMNS,
        measured=measured,
    )


def _classifier_html(
    model: ClassifierModel,
    title: str,
    date: str | None,
    files: Mapping[str, str],
    measured: Sequence[str],
) -> str:
    return _render(
        "classifier.html.j2",
        title=title,
        made_by=made_by(),
        date=date,
        files=files,
        measured=measured,
        method=method_in_words(model.method),
        settings=asdict(model.method),
        classes=[canonical_text(value) for value in model.classes],
        guarantee=model.guarantee,
        declared=declared(model.schema),
        beliefs=belief_bounds(model.guarantee.epsilon),
        content=belief_bounds(model.guarantee.content_epsilon),
        strength=strength(model.guarantee.epsilon),
        arithmetic=model.method.arithmetic,
        public=model.public,
    )


def internal_html(
    evaluation: Evaluation,
    guarantee: Guarantee | None = None,
    *,
    title: str = "Synthetic data quality",
) -> str:
    """Give the report on an evaluation as one HTML page that must not be published."""
    context: dict[str, Any] = {}
    if isinstance(evaluation, TableEvaluation):
        columns = sorted(evaluation.columns, key=lambda column: -column.error)[:MOST_COLUMNS]
        shown = _most_different(evaluation.associations)
        context |= {
            "columns": columns,
            "shown": shown,
            "maps": _maps(evaluation.associations, shown),
        }
    return _render(
        "internal.html.j2",
        title=title,
        evaluation=evaluation,
        guarantee=guarantee,
        beliefs=belief_bounds(guarantee.epsilon) if guarantee else (),
        content=belief_bounds(guarantee.content_epsilon) if guarantee else (),
        strength=strength(guarantee.epsilon) if guarantee else "",
        measures=_measures(evaluation),
        chart_from=_chart_from(evaluation),
        **context,
    )


def report_name(dataset: str, kind: Literal["certificate", "internal"]) -> str:
    """Give the file name that tells what the report is.

    >>> report_name("adult", "internal")
    'adult-INTERNAL-report.html'
    """
    return f"{dataset}-{'certificate' if kind == 'certificate' else 'INTERNAL-report'}.html"


def share(value: float | None) -> str:
    """Write a share of rows as a percentage."""
    if value is None or not isfinite(value):
        return "–"
    return "<0.1%" if 0 < value < 0.0005 else f"{value:.1%}"


def fine_share(value: float) -> str:
    """Write a share that may be small as a percentage of two significant digits.

    >>> fine_share(0.000123)
    '0.012%'
    """
    return f"{value:.0%}" if value >= 0.1 else f"{100 * value:.2g}%"


def figure(value: float | None) -> str:
    """Write a score with three decimals, a large number with thousands."""
    if value is None or not isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"


def compact(value: float) -> str:
    """Write a number of any size with three significant digits."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def whole(value: float) -> str:
    """Write a count."""
    return f"{value:,.0f}"


def odds(value: float) -> str:
    """Write a small probability in words.

    >>> odds(1e-6)
    '1 in 1,000,000'
    """
    return f"1 in {1 / value:,.0f}"


def _render(template: str, **context: Any) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "share": share,
        "fine_share": fine_share,
        "figure": figure,
        "compact": compact,
        "whole": whole,
        "odds": odds,
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
    }
    page = environment.get_template(template)
    return page.render(charts=charts, most_points=MOST_POINTS, **context)


def _measures(evaluation: Evaluation) -> dict[str, str]:
    """Name the scores that this evaluation has, in the order in which they are shown."""
    found = evaluation.utility_mean.get("synthetic", {})
    return {key: name for key, name in MEASURES.items() if key in found}


def _chart_from(evaluation: Evaluation) -> float:
    """Let the chart of scores begin at one half where all areas lie above it."""
    if evaluation.utility is None:
        return 0.0
    learners = [*evaluation.utility.synthetic.values(), *evaluation.utility.real.values()]
    return 0.5 if all(scores.get("roc_auc", 0.0) >= 0.5 for scores in learners) else 0.0


def _most_different(found: Associations) -> list[int]:
    """Choose the columns for the heat maps: all, or those whose associations are most wrong."""
    order = sorted(range(len(found.names)), key=lambda index: -sum(found.difference[index]))
    return sorted(order[:MOST_IN_HEAT_MAP])


def _maps(found: Associations, shown: list[int]) -> list[tuple[str, Markup]]:
    names = [found.names[i] for i in shown]
    return [
        (title, charts.heat_map(title, names, [[matrix[i][j] for j in shown] for i in shown]))
        for title, matrix in (
            ("Real", found.real),
            ("Synthetic", found.synthetic),
            ("Absolute difference", found.difference),
        )
    ]

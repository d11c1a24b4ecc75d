from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from evaluation.models import (
    IMAGES,
    SCRIPT,
    TABLE,
    age_and_illness,
    fake_model,
    images,
    released,
    table,
)
from sfumato.certificate import certificate_text, promises
from sfumato.data.codes import code_of
from sfumato.data.image_set import ImageSet
from sfumato.evaluation import evaluate_images, evaluate_table
from sfumato.evaluation.belief import belief_bounds, strength
from sfumato.evaluation.certificate import Certificate
from sfumato.evaluation.evaluation import Evaluation, TableEvaluation
from sfumato.evaluation.noise import class_noise, column_noise
from sfumato.evaluation.report import (
    certificate_html,
    compact,
    figure,
    fine_share,
    internal_html,
    report_name,
    share,
    whole,
)
from sfumato.modelling.base import Model
from sfumato.privacy.budget import Budget, Guarantee, Relation, Spend
from sfumato.privacy.gaussian import rho_for
from sfumato.privacy.zcdp import gaussian_scale
from sfumato.schema import Categorical, Numeric
from sfumato.statistics.algebra import Concat, Weighted
from sfumato.statistics.counts import Axis, Counts
from support import SCHEMA, people


@cache
def table_evaluation() -> Evaluation:
    return evaluate_table(table(400), table(300, 1), TABLE, "smoker", test=table(150, 2))


@cache
def image_evaluation() -> Evaluation:
    return evaluate_images(*images(90), *images(90, 1))


@cache
def pages() -> dict[str, str]:
    guarantee = fake_model(TABLE).guarantee
    return {
        "certificate of a table": certificate_html(fake_model(TABLE), title="People & co"),
        "certificate of images": certificate_html(fake_model(IMAGES)),
        "report on a table": internal_html(table_evaluation(), guarantee),
        "report on images": internal_html(image_evaluation()),
    }


class Page(HTMLParser):
    """Collects what the tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "img"}:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open and "svg" not in self.open:
            self.cells[-1] += data


@pytest.mark.parametrize(
    "name",
    ["certificate of a table", "certificate of images", "report on a table", "report on images"],
)
def test_a_page_is_well_formed_accessible_and_reaches_for_nothing(name: str) -> None:
    text = pages()[name]
    page = Page(text)
    assert page.open == []
    names = [tag for tag, _ in page.tags]
    assert "script" not in names
    assert names.count("main") == names.count("h1") == 1
    levels = [int(tag[1]) for tag in names if re.fullmatch(r"h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert names.count("table") == names.count("caption")
    for tag, given in page.tags:
        if tag == "th":
            assert given.get("scope") in {"row", "col"}
        if tag == "svg":
            assert given.get("role") == "img" or given.get("aria-hidden") == "true"
        if tag == "img":
            assert given["alt"]
            assert (given["src"] or "").startswith("data:image/png;base64,")
        assert not any(key.startswith("on") for key in given)
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|@import|url\(", text)


def test_names_from_the_data_stay_text() -> None:
    for text in pages().values():
        assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in pages()["certificate of a table"]
    assert "&lt;script&gt;" in pages()["report on a table"]
    assert "height &lt;cm&gt;" in pages()["report on a table"]
    assert SCRIPT in json.dumps(table_evaluation().to_dict())


def test_the_two_kinds_are_told_apart_at_first_sight() -> None:
    for name, text in pages().items():
        published = name.startswith("certificate")
        assert ('<body class="certificate">' in text) == published
        assert ("may be published" in text) == published
        assert ("DO NOT PUBLISH" in text) != published
    assert report_name("adult", "certificate") == "adult-certificate.html"
    assert "INTERNAL" in report_name("adult", "internal")


def test_what_does_not_fit_comes_first_in_red() -> None:
    evaluation = table_evaluation()
    assert "What does not fit" not in internal_html(evaluation)
    wrong = replace(evaluation, misfits=(f"All of {SCRIPT} is null.",))
    page = internal_html(wrong)
    assert page.index("What does not fit") < page.index("Quality at a glance")
    assert '<div class="mark-box"><ul><li>All of &lt;script&gt;' in page
    assert json.loads(wrong.to_json())["misfits"] == [f"All of {SCRIPT} is null."]


def test_the_ten_worst_are_shown_and_the_rest_is_folded() -> None:
    evaluation = table_evaluation()
    assert isinstance(evaluation, TableEvaluation)
    many = tuple(f"weak {number}." for number in range(12))
    columns = tuple(
        replace(evaluation.columns[0], name=f"column {number}", error=number / 100)
        for number in range(13)
    )
    page = internal_html(replace(evaluation, weaknesses=many, columns=columns))
    shown, folded = page.split("<summary>2 more</summary>")
    assert "weak 9." in shown
    assert "weak 10." not in shown
    assert "weak 11." in folded.split("</details>")[0]
    shown, folded = page.split("<summary>3 more columns</summary>")
    assert "column 12<" in shown
    assert "column 2<" not in shown
    assert "column 2<" in folded


def test_an_evaluation_shows_its_headlines_in_a_notebook() -> None:
    for evaluation in (table_evaluation(), image_evaluation()):
        text = evaluation._repr_html_()
        assert Page(text).open == []
        assert "PRIVATE" in text
        for line in evaluation.headlines:
            assert line.name in text
            assert f"{line.value:.3f}" in text
    line = replace(table_evaluation().headlines[0], name=SCRIPT)
    assert "<script" not in replace(table_evaluation(), headlines=(line,))._repr_html_()


def test_every_figure_in_the_report_appears_in_the_json() -> None:
    for evaluation in (table_evaluation(), image_evaluation()):
        known = written_figures(json.loads(evaluation.to_json()))
        found = Page(internal_html(evaluation)).cells
        figures = [n for cell in found for n in re.findall(r"<?-?\d[\d,.]*%?", cell)]
        assert len(figures) > 30
        assert set(figures) <= known


def test_every_figure_in_the_certificate_appears_in_its_json() -> None:
    for schema in (TABLE, IMAGES):
        certificate = Certificate.of(fake_model(schema))
        known = written_figures(json.loads(certificate.to_json()))
        known |= {compact(certificate.guarantee.rho)}  # the sum of the spends
        text = certificate_html(fake_model(schema))
        body, rest = text.split('<section aria-labelledby="declared">')
        cells = Page(body + rest.split("</section>")[1]).cells  # the schema is words, not figures
        found = [number for cell in cells for number in re.findall(r"<?-?\d[\d,.]*%?", cell)]
        assert set(found) <= known


def written_figures(value: object) -> set[str]:
    """Write every number of a JSON value in every way in which the pages write numbers."""
    if isinstance(value, dict):
        return set().union(*(written_figures(item) for item in value.values()), value)
    if isinstance(value, list):
        return set().union(*map(written_figures, value)) if value else set()
    if isinstance(value, int | float):
        return {share(value), fine_share(value), figure(value), compact(value), whole(value)}
    return set()


def test_a_page_is_the_same_each_time() -> None:
    assert certificate_html(fake_model(TABLE)) == certificate_html(fake_model(TABLE))


def test_the_certificate_reads_released_values_only() -> None:
    model = fake_model(TABLE)
    certificate = Certificate.of(model)
    assert certificate.guarantee == model.guarantee
    assert all(set(bars.shares) == {"synthetic"} for bars in certificate.columns)
    assert json.loads(certificate.to_json())["guarantee"]["epsilon"] == model.guarantee.epsilon


def test_the_bound_on_belief_is_that_of_the_dissertation() -> None:
    # Harder (2024), Table 1.1: even odds before.
    for epsilon, bound in ((5, 0.993), (2, 0.881), (1, 0.731), (0.5, 0.622), (0.1, 0.525)):
        (belief,) = belief_bounds(epsilon, (0.5,))
        assert belief.at_most == pytest.approx(bound, abs=5e-4)
        assert belief.at_least == pytest.approx(1 - bound, abs=5e-4)
    (belief,) = belief_bounds(1.0, (0.1,))
    assert belief.at_most / (1 - belief.at_most) == pytest.approx(np.e * 0.1 / 0.9)
    assert [strength(e) for e in (1, 2, 11)] == ["strong", "reasonable", "weak"]


def test_presence_and_content_are_told_apart_with_their_figures() -> None:
    sigma = gaussian_scale(1.0, rho_for(1.0, 1e-6))
    spend = Spend(name="counts", dim=3, sensitivity=1.0, sigma=sigma, scale=2**30)
    present = Guarantee.of(Budget(epsilon=1, delta=1e-6), (spend,))
    assert np.exp(present.epsilon) == pytest.approx(2.718, abs=1e-3)
    assert np.exp(present.content_epsilon) == pytest.approx(8.35, abs=0.05)
    told = "\n".join(promises(present))
    assert "at most 2.72 times" in told
    assert "up to 8.35" in told
    replaced = replace(present, relation=Relation.REPLACE_ONE)
    assert replaced.content_epsilon == replaced.epsilon
    assert "presence" not in "\n".join(promises(replaced))


def test_delta_is_not_called_the_chance_that_the_bound_fails() -> None:
    model = fake_model(TABLE)
    for told in (certificate_text(model), certificate_html(model)):
        for wrong in ("except with", "bound fails", "bound may fail"):
            assert wrong not in told
    assert "plus delta" in certificate_text(model)
    assert "plus δ" in certificate_html(model)


def test_a_file_that_states_another_epsilon_is_not_believed(tmp_path: Path) -> None:
    model = sf.Pairs(components=2, restarts=1).fit(people(50), SCHEMA, sf.Budget(epsilon=1))
    model.save(tmp_path / "m.sfumato")
    raw = (tmp_path / "m.sfumato").read_bytes()
    stated = json.dumps(json.dumps(model.guarantee.epsilon)).strip('"').encode()
    assert raw.count(stated) == 1
    (tmp_path / "m.sfumato").write_bytes(raw.replace(stated, b"0." + b"0" * (len(stated) - 2)))
    assert sf.load(tmp_path / "m.sfumato").guarantee.epsilon == model.guarantee.epsilon


def test_a_rare_class_of_a_table_is_lost_in_the_noise() -> None:
    model = fake_model(TABLE)
    found = class_noise(model.releases, 4, ["no", "yes", "rarely"], np.array([600.0, 40.0, 5.0]))
    # Each class is spread over 7 cells with noise of scale 5.
    assert [each.signal_to_noise for each in found] == pytest.approx(
        [rows / (5 * np.sqrt(7)) for rows in (600, 40, 5)]
    )
    assert [each.verdict for each in found] == [
        "stands out of the noise",
        "stands out of the noise",
        "is lost in the noise",
    ]
    assert class_noise(model.releases, 3, ["a", "b"], np.ones(2)) == []
    (release,) = model.releases
    alike = released(age_and_illness(1), release.values[:7], release.spend)
    assert class_noise((alike,), 4, ["a", "b"], np.ones(2)) == []
    assert any("rarely" in sentence for sentence in Certificate.of(model).weaknesses)
    page = certificate_html(model)
    assert "is lost in the noise" in page
    assert "It does not say how well anything can be predicted" in page
    assert "clear" not in page


def test_a_faint_class_of_images_is_lost_in_the_noise() -> None:
    found = Certificate.of(fake_model(IMAGES)).classes
    noise = 5 * np.sqrt(5)
    assert found[0].signal_to_noise == pytest.approx(np.sqrt(4000**2 - noise**2) / noise)
    assert found[2].verdict == "is lost in the noise"


def test_errors_from_the_noise_alone_agree_with_noise_that_is_drawn() -> None:
    sigma, rows = 5.0, 1000
    (release,) = fake_model(TABLE).releases
    alone = released(Counts([(Axis(0, np.arange(7, dtype=np.int32)),)]), np.zeros(7), release.spend)
    age, ill = column_noise((release, alone), TABLE.modelled, rows)[:2]
    assert (age.column, age.tables, ill.column, ill.alone) == ("age", 1, "ill", None)
    assert age.alone is not None
    assert age.together is not None
    drawn = np.random.default_rng(0).normal(0, sigma, (20_000, 7 * 3)) / rows
    for found, cells in ((age.alone, 7), (age.together, 21)):
        assert found.cells == cells
        assert found.share == pytest.approx(drawn.std(), rel=0.01)
        distance = np.abs(drawn[:, :cells]).sum(axis=1).mean() / 2
        assert found.distance == pytest.approx(distance, rel=0.01)
    assert age.together == ill.together
    assert column_noise((), TABLE.modelled, rows) == []
    page = certificate_html(fake_model(TABLE))
    assert "from the noise alone" in page
    assert fine_share(sigma / rows) in page


def test_the_certificate_names_version_date_and_files() -> None:
    model, files = fake_model(TABLE), {"synthetic data (a.csv)": "ab12" * 16}
    for told in (
        certificate_text(model, date="2031-05-04", files=files),
        certificate_html(model, date="2031-05-04", files=files),
        Certificate.of(model, date="2031-05-04", files=files).to_json(),
    ):
        for text in (f"sfumato {sf.__version__}", "2031-05-04", "a.csv", "ab12" * 16):
            assert text in told
    assert "SHA-256" not in certificate_html(model)


def test_rows_per_person_are_the_owners_promise_unless_a_column_sees_to_it() -> None:
    model = fake_model(TABLE)
    for rows in (1, 3):
        promised = replace(model, guarantee=replace(model.guarantee, max_rows_per_unit=rows))
        for told in (certificate_text(promised), certificate_html(promised)):
            assert "that no person has more is the owner" in told
    seen_to = replace(model, guarantee=replace(model.guarantee, unit_column="id"))
    for told in (certificate_text(seen_to), certificate_html(seen_to)):
        assert "owner&#39;s promise" not in told
        assert "owner's promise" not in told


def test_what_the_certificate_says_of_values_outside_the_schema_is_what_is_done() -> None:
    page = " ".join(certificate_html(fake_model(TABLE)).split())
    for sentence in (
        "Numbers and dates beyond the bounds were moved to the nearest bound.",
        "and else as the middle of the bounds.",
        "else as missing where it allows that, else as the first listed value",
    ):
        assert sentence in page
    number = code_of(Numeric(low=0, high=10))
    known, bare, null, other = (
        code_of(Categorical(values=("a", "b"), **allowed))
        for allowed in ({"other": True, "nullable": True}, {}, {"nullable": True}, {"other": True})
    )
    assert number.encode(pa.array([-1.0, 11.0, None, 5.0]))[1].tolist() == [0, 1, 0.5, 0.5]
    strange = pa.array(["c", None])
    found = [
        [code.names[cell] for cell in code.encode(strange)[0]]
        for code in (known, bare, null, other)
    ]
    assert found == [["(other)", "(missing)"], ["a", "a"], ["(missing)"] * 2, ["(other)"] * 2]
    assert "nearest bound" not in certificate_html(fake_model(IMAGES))


def test_weights_of_a_statistic_scale_its_noise() -> None:
    model = fake_model(TABLE)
    (release,) = model.releases
    heavy = Concat([Weighted(age_and_illness(3), 4)])
    weighted = released(heavy, release.values, release.spend)
    (plain,), (scaled,) = (
        class_noise((each,), 4, ["no"], np.array([10.0])) for each in (release, weighted)
    )
    assert scaled.signal_to_noise == pytest.approx(4 * plain.signal_to_noise)


def test_a_model_without_labels_or_class_counts_is_certified() -> None:
    class Unlabelled(type(fake_model(IMAGES))):  # type: ignore[misc]
        def sample(self, *given: object, **options: object) -> object:
            return ImageSet(images(40)[0], None)

    common = {n: getattr(fake_model(IMAGES), n) for n in Model.__dataclass_fields__}
    text = certificate_html(Unlabelled(**common))
    assert "Nothing was released from which" in text

from __future__ import annotations

import json

import numpy as np
import pytest

from claim_tables import FORMS, ORDERS, cell, hopeless_claims, twelve_claim_pairs, with_wrong_test_answers
from unprior import holm
from unprior.evaluation import PAPER_FAMILIES
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.studies.by_model import ByModel
from unprior.studies.rq5.claims import (
    claim_effects,
    claim_forms,
    effect_of,
    exchanges,
    fit_on_claims,
)
from unprior.studies.rq5.question_forms import QuestionForms, study_question_forms
from unprior.synthetic import synthesize_claims

TABLE = twelve_claim_pairs()
FITTED = fit_on_claims(TABLE, 0.1)
ROWS = FITTED.test.arrow.to_pylist()


@pytest.fixture(scope="module")
def result() -> QuestionForms:
    return study_question_forms(TABLE, resamples=100)


def test_all_forms_are_answered_by_what_was_fitted_on_one(result: QuestionForms) -> None:
    assert [(row.method, row.form) for row in result.rows] == [(m, f) for m in ("spc", "cfg-score") for f in FORMS]
    for row in result.rows:
        answers = FITTED.spc if row.method == "spc" else FITTED.cfg.answers
        form = claim_forms(FITTED.test)[row.form]
        assert row.effects == claim_effects(form, answers, resamples=100)
        assert row.exchanges == exchanges(form, answers)


def test_the_text_only_answer_reverses_as_often_as_plain_loops_say(result: QuestionForms) -> None:
    for row in result.of("spc"):
        first, second = (cell(ROWS, row.form, order, "cf") for order in ORDERS)
        yes = [example["prior_scores"][0] >= example["prior_scores"][1] for example in ROWS]
        assert row.reverses.count == sum(yes[one] != yes[other] for one, other in zip(first, second, strict=True))


def test_holm_covers_forms_orders_and_sides_of_a_method(result: QuestionForms) -> None:
    for method in ("spc", "cfg-score"):
        raw = [effect.p for row in result.of(method) for effect in row.effects if effect.p is not None]
        assert len(raw) == 16
        assert [p for row in result.of(method) for p in row.holm_p] == list(holm(raw).adjusted)


def test_records_and_table_have_every_number(result: QuestionForms) -> None:
    records = result.records()
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert len(records) == 2 * 4 * 6
    together = [record for record in records if record["order"] is None]
    assert all(record["p"] is record["holm_p"] is None for record in together)
    spc, cfg = result.of("spc")[0], result.of("cfg-score")[0]
    cells = result.table.rows[0].cells
    expected = ["/".join(f"{100 * effect_of(row.effects, order, 'cf').change.delta + 0.0:+.1f}" for order in ORDERS)
                for row in (spc, cfg)]  # fmt: skip
    assert list(cells[2:4]) == expected


def test_sentences_count_gains_and_name_losses() -> None:
    large = study_question_forms(synthesize_claims(seed=1), resamples=20)
    gains = [effect.change.delta > 0 for row in large.of("spc") for effect in row.effects[:4] if effect.side == "cf"]
    assert large.sentences[0].startswith(
        f"SPC (standard, ε = 0.10) gains CF accuracy in {sum(gains)} of 8 combinations"
    )
    worse = study_question_forms(with_wrong_test_answers(synthesize_claims(seed=1)), resamples=20)
    assert worse.sentences[0].startswith("SPC (standard, ε = 0.10) gains CF accuracy in 0 of 8 combinations")
    assert "0 of them significant after adjustment, and loses in Contrastive" in worse.sentences[0]
    abstaining = study_question_forms(hopeless_claims(), resamples=20).sentences
    assert abstaining[0].startswith("SPC (standard, ε = 0.10) abstains")
    assert "SPC (standard, ε = 0.10) gains CF accuracy in 0 of 8" in abstaining[1]
    assert abstaining[1].endswith("and loses in none.")


def test_the_same_seed_gives_the_same_result(result: QuestionForms) -> None:
    assert study_question_forms(TABLE, resamples=100) == result


@pytest.mark.parametrize("style", [LIGHT, DARK])
def test_the_figure_shows_the_changes(result: QuestionForms, style: FigureStyle) -> None:
    effects = {row.label: row.effects for row in result.of("spc")}
    axes = result.plot(style=style)[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(effects)
    drawn = {tuple(np.asarray(each.get_xdata()).tolist()) for each in axes.get_lines()}
    for own in effects.values():
        for effect in (effect_of(own, order, "cf") for order in ORDERS):
            assert {(100 * effect.low, 100 * effect.high), (100 * effect.change.delta,)} <= drawn
    figure = result.figure(style)
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "SPC (standard, ε = 0.10)",
        "CFG on scores (ε = 0.10)",
    ]


def test_two_models_make_the_papers_family_of_thirty_two() -> None:
    models = {f"model {seed}": study_question_forms(synthesize_claims(seed=seed), resamples=2) for seed in (0, 1)}
    adjusted = ByModel(models).adjusted()
    for family in models["model 0"].names.values():
        members = {(model, test.name): (test.p, p) for (model, test), p in adjusted.items() if test.family == family}
        assert len(members) == PAPER_FAMILIES["question forms"] == 32
        assert next(iter(members)) == ("model 0", "Contrastive, ordinary-first, CF")
        assert [p for _, p in members.values()] == list(holm([raw for raw, _ in members.values()]).adjusted)
    own = [test.holm_p for test in models["model 1"].tests() if test.family == models["model 1"].names["spc"]]
    assert own == [p for row in models["model 1"].of("spc") for p in row.holm_p]

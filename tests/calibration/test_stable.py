"""A stable prior: what may be added to scores, and how claims may be asked about, without changing what is decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from claim_tables import with_claim_views
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.calibration import Reason
from unprior.calibration.stable import CANONICAL_VIEWS, MOST_STRENGTH, StableRows, stabilise
from unprior.errors import UnpriorWarning
from unprior.evaluation.promise import check_promise, harmed_pairs
from unprior.studies.beyond.stable_prior import with_swapped
from unprior.synthetic import synthesize_claims

Row = dict[str, Any]
CANONICAL: dict[str, Any] = {"prior": "canonical", "epsilon_cs": 0.1}
CERTIFIED: dict[str, Any] = CANONICAL | {"retention": "certified", "epsilon_cs": 0.2}
KINDS = {
    "canonical": CANONICAL,
    "strict": CANONICAL | {"strict": True},
    "uncertain": CANONICAL | {"uncertainty": True},
    "certified": CERTIFIED,
    "symmetric": {"prior": "symmetric", "epsilon_cs": 0.1},
}
FLIPPED = {"yes": "no", "no": "yes"}
NATS = st.integers(-64, 64).map(lambda eighths: eighths / 8)
"""Their sums and halves have no rounding errors, so that decisions must be the same to the last bit."""


@pytest.fixture(scope="module")
def claims() -> ScoreTable:
    """Questions about two claims in the contrastive form, with all that any prior needs."""
    return with_swapped(with_claim_views(synthesize_claims(seed=2, pairs=90))).where(form="contrastive")


@pytest.fixture(scope="module")
def fitted(claims: ScoreTable) -> dict[str, SelectivePriorCalibrator]:
    found = {name: SelectivePriorCalibrator(**parameters).fit(claims) for name, parameters in KINDS.items()}
    for each in found.values():
        assert each.predict(claims).revised.any()
    return found


@st.composite
def asked(draw: st.DrawFn) -> Row:
    """A question about two claims with free log-odds."""
    views = {name: [draw(NATS), draw(NATS)] for name in (*CANONICAL_VIEWS, "swapped")}
    return {
        "pair_id": draw(st.integers(0, 10**6)),
        "task": "qa",
        "candidates": ["yes", "no"],
        "image_scores": [draw(NATS), draw(NATS)],
        "prior_scores": [draw(NATS), draw(NATS)],
        "original": draw(st.sampled_from(["yes", "no"])),
        "views": views,
    }


QUESTIONS = st.lists(asked(), min_size=1, max_size=6)


def as_table(rows: list[Row]) -> ScoreTable:
    numbered = [row | {"pair_id": number, "example_id": str(number)} for number, row in enumerate(rows)]
    return ScoreTable.from_rows(numbered, require_answers=False)


def finals(calibrator: SelectivePriorCalibrator, rows: list[Row]) -> list[str | None]:
    return list(calibrator.predict(as_table(rows)).final)


def with_bias(row: Row, nats: float, *, image: bool = False) -> Row:
    """From a model that prefers yes by so much more."""
    biased = {"canonical-text-first", "canonical-text-second", "swapped"}
    biased |= {"canonical-image-first", "canonical-image-second"} if image else set()
    views = {name: [yes + nats * (name in biased), no] for name, (yes, no) in row["views"].items()}
    shown, prior = row["image_scores"], row["prior_scores"]
    return row | {
        "views": views,
        "prior_scores": [prior[0] + nats, prior[1]],
        "image_scores": [shown[0] + nats * image, shown[1]],
    }


def exchanged(row: Row) -> Row:
    """The same question with its claims in each other's place."""
    other = {"first": "second", "second": "first"}
    views = {}
    for name, scores in row["views"].items():
        kind, _, place = name.rpartition("-")
        views[f"{kind}-{other[place]}" if place in other else name] = scores
    return row | {"views": views, "original": FLIPPED[row["original"]]}


def measures(row: Row) -> tuple[float, float, float]:
    """I, P and m of the definition, from the views alone."""

    def odds(name: str) -> float:
        first, second = row["views"][name]
        return float(first - second)

    evidence, prior, options = (
        (odds(f"{kind}-first") - odds(f"{kind}-second")) / 2
        for kind in ("canonical-image", "canonical-text", "options-text")
    )
    return evidence, prior, options


@settings(max_examples=25)
@given(QUESTIONS, NATS)
@pytest.mark.parametrize("kind", ["canonical", "uncertain", "certified", "symmetric", "strict"])
def test_a_bias_of_both_claim_orders_changes_nothing(
    fitted: dict[str, SelectivePriorCalibrator], kind: str, rows: list[Row], nats: float
) -> None:
    assert finals(fitted[kind], rows) == finals(fitted[kind], [with_bias(row, nats) for row in rows])


@settings(max_examples=25)
@given(QUESTIONS, NATS)
def test_strict_answers_survive_a_bias_of_the_image_scores_too(
    fitted: dict[str, SelectivePriorCalibrator], rows: list[Row], nats: float
) -> None:
    assert finals(fitted["strict"], rows) == finals(
        fitted["strict"], [with_bias(row, nats, image=True) for row in rows]
    )


def test_plain_answers_do_not_survive_a_bias(claims: ScoreTable) -> None:
    """The tests above can fail."""
    plain = SelectivePriorCalibrator(epsilon_cs=0.1).fit(claims)
    rows = claims.arrow.to_pylist()
    biased = [with_bias(row | {"views": dict(row["views"])}, 4.0) for row in rows]
    assert finals(plain, [row | {"views": None} for row in rows]) != finals(plain, biased)


@settings(max_examples=25)
@given(asked())
def test_scores_are_those_of_the_definition(row: Row) -> None:
    evidence, prior, options = measures(row)
    assert measures(exchanged(row)) == (-evidence, -prior, -options)
    for turned, sign in ((row, 1.0), (exchanged(row), -1.0)):
        stable = stabilise(as_table([turned]), "canonical")
        assert stable.table.image_scores.tolist() == [sign * evidence / 2, -sign * evidence / 2]
        assert stable.table.prior_scores.tolist() == [sign * prior / 2, -sign * prior / 2]
        assert stable.trusted is not None
        assert stable.trusted.tolist() == [prior * options > 0]
    symmetric = stabilise(as_table([row]), "symmetric").table.prior_scores
    own, other = (scores[0] - scores[1] for scores in (row["prior_scores"], row["views"]["swapped"]))
    assert symmetric.tolist() == [(own - other) / 4, -(own - other) / 4]


@settings(max_examples=30)
@given(QUESTIONS)
@pytest.mark.parametrize("kind", ["canonical", "uncertain", "certified", "strict"])
def test_exchanging_the_claims_gives_the_same_claim(
    fitted: dict[str, SelectivePriorCalibrator], kind: str, rows: list[Row]
) -> None:
    for row in rows:
        evidence, prior, _ = measures(row)
        assume(evidence != 0 and prior != 0)
        assume(abs(evidence) > abs(prior) or abs(evidence) / abs(prior) < 0.999)  # no tie when all is subtracted
    before, after = (finals(fitted[kind], each) for each in (rows, [exchanged(row) for row in rows]))
    assert [FLIPPED[str(each)] for each in before] == after


@settings(max_examples=25)
@given(QUESTIONS)
@pytest.mark.parametrize("kind", ["canonical", "uncertain", "certified"])
def test_a_prior_that_the_options_do_not_confirm_revises_nothing(
    fitted: dict[str, SelectivePriorCalibrator], kind: str, rows: list[Row]
) -> None:
    decisions = fitted[kind].predict(as_table(rows))
    for row, decision in zip(rows, decisions, strict=True):
        _, prior, options = measures(row)
        if prior * options <= 0:
            assert decision.final == row["original"]
            assert decision.reason not in (Reason.CONFLICT, Reason.ABSORPTION)
        else:
            assert decision.reason is not Reason.UNTRUSTED_PRIOR


@settings(max_examples=25)
@given(QUESTIONS)
@pytest.mark.parametrize("kind", ["canonical", "strict", "uncertain", "certified"])
def test_no_more_than_the_prior_is_subtracted(
    fitted: dict[str, SelectivePriorCalibrator], kind: str, rows: list[Row]
) -> None:
    assert (fitted[kind].predict(as_table(rows)).strength <= MOST_STRENGTH).all()


@settings(max_examples=25)
@given(QUESTIONS, QUESTIONS)
def test_a_strict_answer_follows_from_the_views_alone(
    fitted: dict[str, SelectivePriorCalibrator], rows: list[Row], others: list[Row]
) -> None:
    own = ("image_scores", "prior_scores", "original")
    elsewise = [row | {name: other[name] for name in own} for row, other in zip(rows, others, strict=False)]
    count = len(elsewise)
    assert finals(fitted["strict"], rows[:count]) == finals(fitted["strict"], elsewise)
    decisions = fitted["strict"].predict(as_table(elsewise))
    np.testing.assert_array_equal(decisions.revised, decisions.final != np.array([row["original"] for row in elsewise]))


def test_a_strict_answer_is_the_image_s_where_the_prior_is_untrusted(
    fitted: dict[str, SelectivePriorCalibrator],
) -> None:
    row = exchanged({"views": _untrusted_views(), "original": "yes"}) | {
        "task": "qa", "candidates": ["yes", "no"], "image_scores": [0.0, -1.0], "prior_scores": [0.0, -1.0],
    }  # fmt: skip
    decision = fitted["strict"].predict(as_table([row]))[0]
    assert (decision.original, decision.final, decision.reason) == ("no", "no", Reason.UNTRUSTED_PRIOR)
    turned = fitted["strict"].predict(as_table([row | {"original": "yes"}]))[0]
    assert (turned.final, turned.reason, turned.revised) == ("no", Reason.CANONICAL, True)
    assert turned.explain() == (
        "Changed “yes” to “no”: asked in the canonical form and in both claim orders, the model sees the other claim "
        "in the image."
    )
    kept = fitted["canonical"].predict(as_table([row]))[0]
    assert (kept.proposal, kept.final, kept.reason) == ("yes", "no", Reason.UNTRUSTED_PRIOR)
    assert kept.explain() == (
        "Kept “no”: the model's preference without the image does not follow the two claims, or they were not asked "
        "about, so it is not subtracted."
    )


def _untrusted_views() -> dict[str, list[float]]:
    """The image supports the first claim, less than the prior does; the options say the opposite of the prior."""
    odds = {"canonical-image": 1.0, "canonical-text": 4.0, "options-text": -3.0}
    return {
        f"{kind}-{place}": [sign * each, 0.0]
        for kind, each in odds.items()
        for place, sign in (("first", 1), ("second", -1))
    }


def test_candidates_may_stand_in_either_order(claims: ScoreTable, fitted: dict[str, SelectivePriorCalibrator]) -> None:
    rows = [row | {"views": dict(row["views"])} for row in claims.arrow.to_pylist()]
    turned = [row | {name: row[name][::-1] for name in ("candidates", "image_scores", "prior_scores")} for row in rows]
    for calibrator in fitted.values():
        assert finals(calibrator, rows) == finals(calibrator, turned)


def test_other_tasks_keep_their_scores(claims: ScoreTable) -> None:
    table = synthesize(seed=1).where(split="dev")
    rows = [*table.where(task="mc").arrow.to_pylist(), *claims.arrow.to_pylist()]
    mixed = ScoreTable.from_rows([row | {"views": row["views"] and dict(row["views"])} for row in rows])
    choices = mixed.mask(task="mc")
    for prior in ("symmetric", "canonical"):
        stable = stabilise(mixed, prior, complete=True)
        before, after = mixed.take(choices), stable.table.take(choices)
        np.testing.assert_array_equal(before.image_scores, after.image_scores)
        np.testing.assert_array_equal(before.prior_scores, after.prior_scores)
        assert stable.claims is not None
        np.testing.assert_array_equal(stable.claims, ~choices)
        limits, trusted = stable.limits(np.arange(len(mixed))), stable.may_revise(np.flatnonzero(choices))
        assert trusted is None or trusted.all()
        if prior == "canonical":
            assert limits is not None
            assert set(limits[choices].tolist()) == {np.inf}
            assert set(limits[~choices].tolist()) == {MOST_STRENGTH}
        else:
            assert limits is None


@pytest.mark.parametrize("prior", ["symmetric", "canonical"])
def test_rows_that_nobody_asked_about_are_refused_or_kept(claims: ScoreTable, prior: str) -> None:
    calibrator = SelectivePriorCalibrator(prior=prior, epsilon_cs=0.1)  # type: ignore[arg-type]
    dev = claims.where(split="dev")
    views = [dict(entry) for entry in claims.column("views")]
    needed = "swapped" if prior == "symmetric" else CANONICAL_VIEWS[0]
    lacking = [{name: scores for name, scores in entry.items() if name != needed} for entry in views]
    some = dev.with_column("views", [lacking[0], *views[1 : len(dev)]])
    with pytest.warns(UnpriorWarning, match=rf"^1 of {len(dev)} yes/no rows were not scored for prior='{prior}'.*"):
        partly = calibrator.clone().fit(some)
    assert partly.development_rows_ == len(dev) - 1
    assert not partly.predict(some).revised[0]
    with pytest.raises(UnpriorError, match=rf"^{len(dev)} of {len(dev)} .*`unprior score --prior {prior}`"):
        calibrator.clone().fit(dev.with_column("views", lacking[: len(dev)]))
    decisions = calibrator.fit(dev).predict(claims.with_column("views", lacking))
    assert calibrator.predict(claims).revised.any()
    assert not decisions.revised.any()
    assert Reason.UNTRUSTED_PRIOR in decisions.count_reasons()
    none = calibrator.predict(claims.with_column("views", [None] * len(claims)))
    assert not none.revised.any()


def test_a_certificate_counts_pairs_of_claims(claims: ScoreTable) -> None:
    fitted = SelectivePriorCalibrator(**CERTIFIED).fit(claims)
    certificate = fitted.certificate_
    assert certificate is not None
    assert not certificate.abstains
    assert certificate.pairs == 30  # each of them has both claim orders
    used = claims.take(np.isin(claims.column("pair_id"), certificate.calibration_pairs))
    pairs, harms = harmed_pairs(used, fitted.predict(used).final_positions, "qa")
    assert (pairs, harms) == (certificate.calibration, certificate.tasks[0].harms)
    test = claims.where(split="test")
    check = check_promise(certificate, test, fitted.predict(test).final_positions)
    assert check is not None
    assert [each.pairs for each in check.tasks] == [60]


@pytest.mark.parametrize("kind", KINDS)
def test_files_keep_the_prior(
    kind: str, fitted: dict[str, SelectivePriorCalibrator], claims: ScoreTable, tmp_path: Path
) -> None:
    fitted[kind].save(tmp_path / "calibrator.json")
    loaded = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    assert (loaded.prior, loaded.strict) == (fitted[kind].prior, fitted[kind].strict)
    assert loaded.predict(claims).to_arrow(explanations=True) == fitted[kind].predict(claims).to_arrow(
        explanations=True
    )


def test_plain_is_what_it_was(claims: ScoreTable) -> None:
    for table in (claims, synthesize(seed=4)):
        one, other = SelectivePriorCalibrator(), SelectivePriorCalibrator(prior="plain", strict=False)
        first, second = (each.fit(table).predict(table) for each in (one, other))
        assert first.to_arrow() == second.to_arrow()
        assert second.stable is None
        np.testing.assert_array_equal(one.model_.theta, other.model_.theta)
    assert stabilise(claims, "plain") == StableRows(claims)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"prior": "median"}, "choose plain, symmetric or canonical"),
        ({"prior": "canonicle"}, "did you mean canonical"),
        ({"prior": None}, "choose plain, symmetric or canonical"),
        ({"strict": True}, "goes with prior='canonical'"),
        ({"strict": True, "prior": "symmetric"}, "goes with prior='canonical'"),
        ({"strict": "yes", "prior": "canonical"}, "must be True or False"),
    ],
)
def test_parameters_that_cannot_be(claims: ScoreTable, parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnpriorError, match=reason):
        SelectivePriorCalibrator(**parameters).fit(claims)


def test_a_promise_counts_what_strict_answers_harm(claims: ScoreTable) -> None:
    """A right answer that the canonical form turns wrong is harmed at every threshold."""
    calibrator = SelectivePriorCalibrator(prior="canonical", strict=True, retention="certified", epsilon_cs=0.2)
    sound = calibrator.clone().fit(claims)
    assert sound.certificate_ is not None
    assert not sound.certificate_.abstains
    development = claims.where(split="dev")
    rows = development.arrow.to_pylist()
    for row in rows:
        views = dict(row["views"])
        if row["side"] == "cs" and row["pair_id"] % 2 == 0:  # right as asked, and wrong in the canonical form
            views |= {
                f"canonical-image-{place}": views[f"canonical-image-{place}"][::-1] for place in ("first", "second")
            }
            row["original"] = row["answer"]
        row["views"] = views
    changed = ScoreTable.from_rows(rows)
    harmful = calibrator.clone().fit(changed, split=None)
    assert harmful.certificate_ is not None
    assert harmful.settings_ is None
    assert "Asking in the canonical form alone" in harmful.certificate_.sentence
    decisions = harmful.predict(changed)
    np.testing.assert_array_equal(decisions.final_positions, changed.original_positions)

"""Trust is probed with the questions that a model would be asked, without any image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import unprior
from broken_engines import Wrapped
from unprior import UnpriorError
from unprior.benchmarks.forms import FORMS, ask_first
from unprior.benchmarks.schema import Benchmark, Example
from unprior.engines.protocol import CandidateScores, Engine, Query, QueryFailure
from unprior.prompts import YES_NO
from unprior.scoring.prior_trust import probe_prior

OPEN = "What color is the cube?"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return unprior.load_engine("embedded")


def about(number: int, *claims: str, **more: str) -> Example:
    return Example(str(number), Path("nowhere.png"), "Is it so?", "qa", YES_NO, claims=(claims[0], claims[1]),
                   open_question=OPEN, **more)  # type: ignore[arg-type]  # fmt: skip


def odds(engine: Engine, text: str, labels: tuple[str, str]) -> float:
    first, second = engine.score_candidates(None, text, engine.layout.continuations(labels)).scores
    return first - second


def test_one_question_is_asked_in_every_form_and_order(engine: Engine) -> None:
    trust = probe_prior(engine, Benchmark("one", [about(1, "red", "blue", claim_order="atypical-first")]), batch_size=3)
    assert [form.form for form in trust.forms] == list(FORMS)
    orders = (("red", "blue"), ("blue", "red"))
    options = [odds(engine, engine.layout.user_text(OPEN, ("A", "B"), claims), ("A", "B")) for claims in orders]
    for form in trust.forms:
        texts = [engine.layout.user_text(ask_first(form.form, OPEN, *claims), YES_NO, None) for claims in orders]
        first, second = (odds(engine, text, YES_NO) for text in texts)
        assert form.questions == 1
        assert form.flips == float(first * second < 0)
        assert form.yes_bias == pytest.approx((first + second) / 2, abs=1e-4)
        assert form.strength == pytest.approx(abs(first - second) / 2, abs=1e-4)
        assert form.agrees == float((first - second) * (options[0] - options[1]) > 0)
        assert form.aligned == float(first - second < 0)  # the atypical claim comes first


def test_claims_are_asked_about_once_and_spread_over_the_benchmark(engine: Engine) -> None:
    asked: list[str] = []

    class Noting(Wrapped):
        def score_batch(self, queries: list[Query]) -> list[CandidateScores | QueryFailure]:
            asked.extend(query.text for query in queries)
            assert all(query.image is None for query in queries)
            return [CandidateScores((-0.5, -1.0), 0.9) for _ in queries]

    names = ("red", "blue", "green", "gray", "pink", "black")
    examples = [
        about(2 * place + turned, *((name, "white")[:: -1 if turned else 1]))
        for place, name in enumerate(names)
        for turned in (0, 1)
    ]
    trust = probe_prior(Noting(engine), Benchmark("many", examples), questions=3)
    assert trust.forms[0].questions == 3
    assert len(asked) == 3 * (2 * len(FORMS) + 2)
    assert {name for name in names if any(name in text for text in asked)} == {"red", "green", "pink"}
    assert np.isnan(trust.forms[0].aligned)


@pytest.mark.parametrize(("side", "answer", "aligned"), [("cs", "yes", 1.0), ("cf", "yes", 0.0), ("cf", "no", 1.0)])
def test_the_right_answer_tells_which_claim_is_ordinary(engine: Engine, side: str, answer: str, aligned: float) -> None:
    class Favours(Wrapped):
        """Favours red in every order."""

        def score_batch(self, queries: list[Query]) -> list[CandidateScores | QueryFailure]:
            return [
                CandidateScores((-0.1, -2.0) if query.text.find("red") < query.text.find("blue") else (-2.0, -0.1), 1.0)
                for query in queries
            ]

    trust = probe_prior(Favours(engine), Benchmark("one", [about(1, "red", "blue", side=side, answer=answer)]))
    assert trust.forms[0].form == "contrastive"
    assert trust.forms[0].aligned == aligned


def test_a_benchmark_without_claims_is_refused(engine: Engine) -> None:
    plain = Example("1", Path("nowhere.png"), "Is it red?", "qa", YES_NO)
    with pytest.raises(UnpriorError, match=r'colors has no question that names its two claims.*"claims": \['):
        probe_prior(engine, Benchmark("colors", [plain]))


def test_a_model_that_fails_is_named(engine: Engine) -> None:
    class Fails(Wrapped):
        def score_batch(self, queries: list[Query]) -> list[CandidateScores | QueryFailure]:
            return [QueryFailure("out of paper") for _ in queries]

    with pytest.raises(UnpriorError, match="could not be asked: out of paper"):
        probe_prior(Fails(engine), Benchmark("one", [about(1, "red", "blue")]))

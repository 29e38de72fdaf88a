"""Trust in a prior, from the log-odds of yes in both claim orders."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from unprior.evaluation.prior_trust import PriorTrust, measure_trust

FIRST = np.array([2.0, -1.0, 0.5, 3.0])
SECOND = np.array([-2.0, 3.0, 0.1, -1.0])


def measured(**more: np.ndarray) -> PriorTrust:
    return measure_trust({"contrastive": (FIRST, SECOND)}, **more)


def test_measures_equal_a_count_by_hand() -> None:
    # Symmetric priors: 2, -2, 0.2, 2.
    (form,) = measured(options=np.array([1.0, -1.0, -1.0, 0.0]), ordinary_first=np.array([1.0, 1.0, 1.0, -1.0])).forms
    assert (form.form, form.questions, form.flips) == ("contrastive", 4, 0.75)
    assert form.agrees == 0.5
    assert form.aligned == 0.5
    assert form.yes_bias == pytest.approx((0.0 + 1.0 + 0.3 + 1.0) / 4)
    assert form.strength == pytest.approx(2.0)
    assert not form.trusted


def test_what_nobody_knows_is_left_open() -> None:
    (form,) = measured().forms
    assert math.isnan(form.agrees)
    assert math.isnan(form.aligned)
    record = json.loads(json.dumps(measured().record(), allow_nan=False))
    assert record["forms"][0]["agrees"] is record["forms"][0]["aligned"] is None
    assert record["trusted"] is False
    follows = measure_trust({"plain": (FIRST, -FIRST)})
    assert follows.trusted
    assert follows.words[0].startswith("The prior follows the claims in every form.")


@pytest.mark.parametrize(
    ("turned", "against", "trusted"), [(0, 0, True), (2, 2, True), (3, 0, False), (0, 3, False), (1, 2, True)]
)
def test_a_form_is_trusted_from_nine_of_ten(turned: int, against: int, trusted: bool) -> None:
    first = np.ones(20)
    second = np.where(np.arange(20) < turned, 0.5, -1.0)
    options = np.where(np.arange(20) >= 20 - against, -1.0, 1.0)
    (form,) = measure_trust({"plain": (first, second)}, options=options).forms
    assert (form.flips, form.agrees) == (1 - turned / 20, 1 - against / 20)
    assert form.trusted == trusted


def test_words_say_why() -> None:
    claims = np.full(10, 0.5)
    forms = {"reject-second": (claims + 3.0, 3.0 - claims), "choice": (claims, -claims)}
    trust = measure_trust(forms, options=-claims)
    first, second, remedy = trust.words
    assert first == (
        "The prior of the form “reject second” is not to be trusted: only 0 % of its answers turn round with the "
        "claims; only 0 % agree with the prior between the claims as options; it prefers yes by 3.0 nats whatever the "
        "claims say."
    )
    assert second == (
        "The prior of the form “choice” is not to be trusted: only 0 % agree with the prior between the claims as "
        "options."
    )
    assert "--prior canonical" in remedy
    no = measure_trust({"choice": (claims - 2.0, -claims - 2.0)}).words[0]
    assert "it prefers no by 2.0 nats" in no


def test_the_table_has_a_row_per_form() -> None:
    forms = dict.fromkeys(("contrastive", "reject-second"), (FIRST, SECOND))
    table = measure_trust(forms, options=FIRST).table
    assert [row.cells[0] for row in table.rows] == ["contrastive", "reject second"]
    assert table.rows[0].cells[1:] == ("75.0", "100.0", "–", "+0.57", "2.00", "no")
    assert table.caption.endswith("4 questions.")

"""Is a model's prior trustworthy for questions about two claims? Measured from text alone, before any image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unprior.scores.table import FloatArray
from unprior.tables.format import format_count, format_percent
from unprior.tables.model import Table

_TRUSTED = 0.9
_BIASED = 1.0  # nats


@dataclass(frozen=True, slots=True)
class FormTrust:
    """The prior of one question form."""

    form: str
    questions: int
    """Pairs of claims that were asked about in both orders."""
    flips: float
    """Share whose text-only answer turns round when the claims change places, as it should."""
    agrees: float
    """Share whose symmetric prior has the sign of the prior between the two claims as options; NaN without these."""
    aligned: float
    """Share whose symmetric prior favours the ordinary claim; NaN where nobody knows which it is."""
    yes_bias: float
    """Mean log-odds of yes over both claim orders, in nats: what the form adds whatever the claims say."""
    strength: float
    """Median size of the symmetric prior, in nats."""

    @property
    def trusted(self) -> bool:
        """Whether the prior follows the claims in this form."""
        return self.flips >= _TRUSTED and not self.agrees < _TRUSTED


@dataclass(frozen=True, slots=True)
class PriorTrust:
    """The prior of every question form.

    >>> first = np.array([2.0, 1.0, 0.5])
    >>> trust = measure_trust({"plain": (first, -first + 0.2)}, options=first)
    >>> trust.forms[0].flips, trust.forms[0].agrees, round(trust.forms[0].yes_bias, 3)
    (1.0, 1.0, 0.1)
    """

    forms: tuple[FormTrust, ...]

    @property
    def trusted(self) -> bool:
        """Whether the prior follows the claims in every form."""
        return all(each.trusted for each in self.forms)

    @property
    def table(self) -> Table:
        """Measures by question form."""
        rows = [
            (
                each.form.replace("-", " "),
                format_percent(each.flips),
                format_percent(each.agrees),
                format_percent(each.aligned),
                f"{each.yes_bias:+.2f}",
                f"{each.strength:.2f}",
                "yes" if each.trusted else "no",
            )
            for each in self.forms
        ]
        asked = format_count(self.forms[0].questions, "question")
        columns = ("Form", "flips %", "agrees %", "aligned %", "yes-bias", "strength", "Trusted")
        return Table.plain(
            "The prior of questions about two claims, without any image",
            columns,
            rows,
            "flips: exchanging the claims turns the answer round; agrees: the prior has the sign of the prior between "
            "the claims as options A and B; aligned: it favours the ordinary claim, where that is known. yes-bias and "
            f"strength in nats. Trusted: flips and agrees on at least 90 %. {asked}.",
        )

    @property
    def words(self) -> tuple[str, ...]:
        """What it means, in sentences."""
        told = []
        for each in self.forms:
            if each.trusted and abs(each.yes_bias) < max(_BIASED, each.strength):
                continue
            why = []
            if each.flips < _TRUSTED:
                why.append(f"only {100 * each.flips:.0f} % of its answers turn round with the claims")
            if each.agrees < _TRUSTED:
                why.append(f"only {100 * each.agrees:.0f} % agree with the prior between the claims as options")
            if abs(each.yes_bias) >= max(_BIASED, each.strength):
                word = "yes" if each.yes_bias > 0 else "no"
                why.append(f"it prefers {word} by {abs(each.yes_bias):.1f} nats whatever the claims say")
            told.append(
                f"The prior of the form “{each.form.replace('-', ' ')}” is not to be trusted: {'; '.join(why)}."
            )
        if not told:
            return (
                "The prior follows the claims in every form. Text alone cannot tell how weak the evidence of images is "
                "in a form; the study stable-prior can.",
            )
        told.append(
            "The canonical prior (`unprior score --prior canonical`) asks one form in both orders: a preference for a "
            "word cancels, and where the options contradict it nothing is changed."
        )
        return tuple(told)

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {"trusted": self.trusted, "forms": self.records()}

    def records(self) -> list[dict[str, Any]]:
        """One record per form; what is undefined is None."""
        return [
            {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in asdict(each).items()
            }
            | {"trusted": each.trusted}
            for each in self.forms
        ]


def measure_trust(
    forms: Mapping[str, tuple[FloatArray, FloatArray]],
    *,
    options: FloatArray | None = None,
    ordinary_first: FloatArray | None = None,
) -> PriorTrust:
    """Measure the prior of question forms.

    Parameters
    ----------
    forms
        By form, the text-only log-odds of yes with the one claim first and with the other first, by question.
    options
        The text-only preference between the claims as options: positive for the one that comes first in the first
        order.
    ordinary_first
        Whether that claim is the ordinary one, as +1, or the atypical one, as −1; NaN where nobody knows.
    """
    found = []
    for form, (first, second) in forms.items():
        prior = (first - second) / 2
        found.append(
            FormTrust(
                form,
                len(first),
                _share(np.sign(first) * np.sign(second) < 0),
                math.nan if options is None else _share(np.sign(prior) * np.sign(options) > 0),
                math.nan if ordinary_first is None else _aligned(prior, ordinary_first),
                float((first + second).mean() / 2) if len(first) else math.nan,
                float(np.median(np.abs(prior))) if len(first) else math.nan,
            )
        )
    return PriorTrust(tuple(found))


def _aligned(prior: FloatArray, ordinary_first: FloatArray) -> float:
    """Where somebody knows which claim is the ordinary one."""
    known = ~np.isnan(ordinary_first)
    return _share(np.sign(prior[known]) * ordinary_first[known] > 0)


def _share(which: Any) -> float:
    return float(np.mean(which)) if len(which) else math.nan

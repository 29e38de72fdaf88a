"""What a calibrator promises about new pairs, and what the promise rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from unprior.calibration.ladder import pairs_needed, smallest_epsilon
from unprior.errors import UnpriorError, format_names

Retention = Literal["paper", "certified", "expected"]
"""What keeps commonsense answers: the paper's limit on the development pairs, or a promise about new pairs."""
_MOST_SHARE = 1e12
RETENTIONS: tuple[Retention, ...] = get_args(Retention)
SEED = 20260712
"""Of the order in which pairs are drawn for the thresholds. It is no parameter: choosing it would break the promise."""


@dataclass(frozen=True, slots=True)
class TaskThreshold:
    """Where one task stopped."""

    task: str
    pairs: int
    """Pairs that set its threshold."""
    harms: int
    """Of these, pairs whose right commonsense answer the calibrator changes."""
    threshold: float
    """A revision needs a larger lead of the proposal over the original answer, in log-odds."""
    bound: float
    """The smallest ε that is promised; the same for all tasks, which share one confidence."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A promise about the rate of harm: commonsense answers that turn from right to wrong, per commonsense question.

    ``certified``: with probability 1 − δ over the draw of the development pairs, the rate on new pairs is at most ε for
    every task. ``expected``: the mean rate over draws of the development pairs is at most ε for every task. Both are
    exact for pairs that are drawn independently of each other: nothing that the thresholds depend on was fitted on the
    pairs that set them.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(synthesize(seed=0))
    >>> fitted.certificate_.sentence[:73]
    'On new pairs drawn like these, with 90 % confidence at most 6 of 100 comm'
    """

    retention: Literal["certified", "expected"]
    epsilon: float
    delta: float
    """How often the promise may break; without meaning for ``expected``."""
    pairs: int
    """n: development pairs of the task that has the fewest."""
    calibration: int
    """m: pairs of every task that set its threshold; 0 for a calibrator that abstains."""
    steps: tuple[int, ...]
    """Harms allowed to the first task that stops, to the second, and so on; −1 stops all that are left."""
    tasks: tuple[TaskThreshold, ...]
    """By name; none from a calibrator that abstains."""
    chance: float | None
    """Largest chance that the promise breaks, at most δ; None for ``expected`` and from a calibrator that abstains."""
    bound: float | None
    """The smallest ε that the same steps keep; None from a calibrator that abstains."""
    weight: float
    """w: how much more frequent a subcategory may be in the target than among the development pairs."""
    mixture: tuple[tuple[str, float], ...]
    """Share of every subcategory among the pairs that it covers; empty where the rows name none."""
    has_target: bool
    """Whether the mixture was given; otherwise it is that of the development pairs."""
    strength: float
    """λ for all examples; for those with options, where open questions have one of their own."""
    strength_rule: Literal["split", "fixed"]
    """Whether the strength was fitted on pairs set aside, or given."""
    seed: int
    calibration_pairs: tuple[int | str, ...]
    """Pairs that set the thresholds."""
    strength_pairs: tuple[int | str, ...]
    """Pairs that the strength was fitted on; none of them sets a threshold."""
    harmed_by_strict: bool = False
    """Whether it abstains because asking in the canonical form alone harms more answers than ε permits."""
    open_strength: float | None = None
    """λ for open questions, where there are both kinds."""
    by_image: bool = False
    """Whether images take the place of pairs, as in the log of a server: a harm is then an image with one or more."""

    @property
    def label(self) -> str:
        """How sure the promise is: it rests on exact binomial counts, not on an approximation."""
        return "exact"

    @property
    def abstains(self) -> bool:
        """Whether nothing can be promised, so that nothing is ever changed."""
        return not self.steps

    @property
    def smallest_epsilon(self) -> float:
        """The smallest ε that so many pairs can promise, rounded up to a thousandth."""
        if self.retention == "expected":
            exact = self.weight / (self.pairs + 1)
        else:
            exact = smallest_epsilon(self.pairs, self.delta, weight=self.weight)
        return min(1.0, math.ceil(1000 * exact) / 1000)

    @property
    def pairs_needed(self) -> int | None:
        """The fewest pairs that can promise ε; None for more than ten millions."""
        if self.retention == "expected":
            return math.ceil(self.weight / self.epsilon) - 1 if self.epsilon > 0 else None
        return pairs_needed(self.epsilon, self.delta, weight=self.weight)

    @property
    def sentence(self) -> str:
        """The promise in one sentence, or why there is none."""
        drawn = "mixed like the target" if self.has_target else "drawn like these"
        unit = "images" if self.by_image else "pairs"
        if self.harmed_by_strict:
            return (
                f"Asking in the canonical form alone turns more commonsense answers wrong than ε = {self.epsilon:g} "
                f"permits, so no answer is ever changed. A larger ε, or the canonical prior without strict, may do."
            )
        if self.abstains:
            needed = self.pairs_needed
            more = f"No number of {unit} can promise it" if needed is None else f"It needs {needed:,} {unit}"
            confident = f" with {_percent(1 - self.delta)} confidence" if self.retention == "certified" else ""
            return (
                f"{self.pairs:,} {unit} cannot promise ε = {self.epsilon:g}{confident}, so no answer is ever changed. "
                f"{more}; the smallest ε that {self.pairs:,} {unit} can promise is {self.smallest_epsilon:g}."
            )
        turn = "have a commonsense answer turned" if self.by_image else "commonsense answers turn"
        limit = f"at most {100 * self.epsilon:.4g} of 100 {turn} from right to wrong, in each task"
        if self.retention == "certified":
            return f"On new {unit} {drawn}, with {_percent(1 - self.delta)} confidence {limit}."
        return f"On new {unit} {drawn}, {limit}, on average over many calibrations; a single one may harm more."

    def record(self, *, pair_lists: bool = True) -> dict[str, Any]:
        """Plain values, for files."""
        values = {"sentence": self.sentence, "label": self.label} | asdict(self) | {"mixture": dict(self.mixture)}
        if self.open_strength is None:  # so that files about questions with options stay what they were
            del values["open_strength"]
        if not self.by_image:
            del values["by_image"]
        if not pair_lists:
            del values["calibration_pairs"], values["strength_pairs"]
        return values


def _percent(share: float) -> str:
    """A share in per cent.

    >>> _percent(0.9), _percent(0.995)
    ('90 %', '99.5 %')
    """
    return f"{100 * share:.4g} %"


def mixture_weight(target: Mapping[str, float], drawn: Mapping[str, float]) -> float:
    """w: the largest factor by which one mixture has more of a subcategory than another; infinite if it lacks one.

    >>> round(mixture_weight({"a": 0.5, "b": 0.5}, {"a": 30, "b": 40}), 3)
    1.167
    """
    wanted, there = sum(target.values()), sum(drawn.values())
    return max(
        (share / wanted) / (drawn[name] / there) if drawn.get(name) else math.inf
        for name, share in target.items()
        if share > 0
    )


def refuse_missing(target: Mapping[str, float], drawn: Mapping[str, float], task: str) -> None:
    """Refuse a target with subcategories of which a task has no development pair."""
    missing = sorted(name for name, share in target.items() if share > 0 and not drawn.get(name))
    if missing:
        raise UnpriorError(
            f"target_mixture names {format_names(missing)}, of which there is no development pair of task {task}, so "
            f"nothing can be promised about them; add such pairs, or leave them out of the mixture"
        )


def check_mixture(mixture: Any) -> None:
    """Refuse what is no mixture of subcategories.

    >>> check_mixture({"Color": -1})
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: target_mixture has 'Color': -1; give every subcategory a share from 0 to 1e12, ...
    """
    if mixture is None:
        return
    if not isinstance(mixture, Mapping) or not mixture:
        raise UnpriorError(f"target_mixture is {mixture!r}, it must give a share for every subcategory, by name")
    for name, share in mixture.items():
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not isinstance(name, str) or not number or not 0 <= share <= _MOST_SHARE:
            raise UnpriorError(
                f"target_mixture has {name!r}: {str(share)[:20]}; give every subcategory a share from 0 to 1e12, "
                f"by name"
            )
    if not sum(mixture.values()) > 0:
        raise UnpriorError("target_mixture gives no subcategory a share above 0")

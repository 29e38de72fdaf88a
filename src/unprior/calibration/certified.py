"""Thresholds that keep a promise about new pairs: one strength, one falling threshold, exact counts of harm.

Nothing that is fitted sees the pairs that set the thresholds, so harm only grows as a threshold falls, and the number
of harmed answers among these pairs bounds the rate on new ones. All tasks share one falling threshold. The first task
that shows more harm than its step allows stops there; the next goes on to its own, lower step. The steps are planned
before any score is seen (:mod:`unprior.calibration.ladder`), and their chances add up to at most δ, whatever the
tasks have to do with each other.

Open questions are one more task of the same chain, with a strength of their own. A chain for each kind would have to
share δ between them, and 70 pairs that can promise ε = 0.04 at δ = 0.1 cannot at δ = 0.05. So that the promise stays
exact, T and the strength of open answers come from the pairs that are spared for it, and τ is the middle one of those
offered: to choose it, harms would have to be counted on the pairs that the promise rests on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unprior.calibration.certificate import SEED, Certificate, TaskThreshold, mixture_weight, refuse_missing
from unprior.calibration.features import FEATURE_NAMES, Observation, observe
from unprior.calibration.gate import Condition, Settings, StrengthModel
from unprior.calibration.ladder import Plan, expected_plan, plan_steps, smallest_kept, total_chance, with_reserve
from unprior.calibration.open_answers import OpenAnswers, OpenScale, fit_temperature, learnable, refuse_unlearnable
from unprior.calibration.parameters import Parameters
from unprior.calibration.selection import Groups, Selection
from unprior.calibration.stable import StableRows
from unprior.calibration.state import FittedState, FittedStrength
from unprior.calibration.strength import Standardisation, inverse_softplus, most_probable
from unprior.calibration.strength_rules import ABOVE_CAP, Fixed
from unprior.scores import Block
from unprior.scores.schema import OPEN, BoolArray, IntArray
from unprior.scores.table import FloatArray

_BEYOND_MOST_PROBABLE = 1.2
"""A gate repairs most with a strength somewhat above the most probable one."""
_WITHOUT_PAIRS = 1.0
"""The strength when no pair can be spared for it."""


def fit_certified(parameters: Parameters, stable: StableRows) -> FittedState:
    """Fit the strength on some pairs and set the thresholds on the others, so that the promise holds.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(synthesize(seed=0))
    >>> fitted.certificate_.steps, [task.harms for task in fitted.certificate_.tasks]
    ((1, 0), [1, 0])
    """
    certified = certify(parameters, CalibrationRows(stable, parameters.target_mixture))
    certificate, rho = certified.certificate, parameters.searched_grid.rho[0]
    development, parts = stable.table, {}
    for is_open, (strength, loss) in certified.strengths.items():
        own = development.take(development.is_open == is_open)
        settings = certified_settings(certificate, rho, is_open=is_open)
        parts[is_open] = FittedState(
            parameters=parameters,
            fits=(FittedStrength(rho, loss, 0.0, constant_strength(strength)),),
            selection=Selection(settings, (), 0, int(not certificate.abstains), 1),
            outcomes=None,
            candidate_counts=tuple(sorted({count for count in own.candidate_counts.tolist() if count > 1})),
            development_rows=len(own),
            model_name=own.arrow.column("model")[0].as_py(),
            provenance=own.provenance,
            certificate=certificate,
            scale=certified.scale if is_open else None,
        )
    return replace(parts[False], open=parts.get(True)) if False in parts else parts[True]


def certified_settings(certificate: Certificate, rho: float, *, is_open: bool = False) -> Settings | None:
    """The thresholds of a certificate for one kind of question as settings of the gate; None where it abstains.

    ρ has no part in them.
    """
    if certificate.abstains:
        return None
    leads = tuple((each.task, each.threshold) for each in certificate.tasks if (each.task == OPEN) == is_open)
    strength = certificate.open_strength if is_open else None
    return Settings(
        rho=rho, max_strength=certificate.strength if strength is None else strength, min_margin=0.0, min_leads=leads
    )


@dataclass(frozen=True, slots=True)
class Certified:
    """What was fitted, and what is promised about it."""

    certificate: Certificate
    strengths: Mapping[bool, tuple[float, float]]
    """Strength and its loss by kind of question: False for those with options, True for open ones."""
    scale: OpenScale | None
    """Of open answers, where there are any."""


def certify(parameters: Parameters, rows: CalibrationRows) -> Certified:
    """The strengths and the thresholds, with what is promised about them."""
    target, covered, weight = parameters.target_mixture, rows.subcategories(), 1.0
    if target is not None:
        covered = target
        for task, members in zip(rows.tasks, rows.pairs_of_task, strict=True):
            drawn = rows.subcategories(members)
            refuse_missing(target, drawn, task)
            weight = max(weight, mixture_weight(target, drawn))
    plan, given = _plan(parameters, rows.pairs, len(rows.tasks), parameters.epsilon_cs / weight)
    calibrating = [members[: plan.pairs if plan else 0] for members in rows.pairs_of_task]
    in_use = np.zeros(len(rows.labels), dtype=np.bool_)
    in_use[np.concatenate(calibrating)] = True
    fits_strength = plan is not None and given is None
    spare = ~in_use[rows.pair] & fits_strength
    rows, scale = rows.on_scale(parameters.open_answers, spare)
    strengths = dict.fromkeys(rows.kinds, (given or _WITHOUT_PAIRS, 0.0))
    if fits_strength:
        for kind in rows.kinds:
            found, loss = rows.fit_strength(spare & rows.to_learn_from & (rows.table.is_open == kind))
            strengths[kind] = _BEYOND_MOST_PROBABLE * found, loss
    harms = rows.leads_of_harms(strengths, parameters.conditions, calibrating) if plan else []
    levels = _levels(parameters, plan, harms)
    if np.inf in levels:  # no threshold keeps the promise
        plan, levels = None, []
    certified = parameters.retention == "certified"
    bound = min(1.0, weight * smallest_kept(plan, parameters.delta if certified else None)) if plan else 1.0
    thresholds = tuple(
        TaskThreshold(task, len(members), int((leads > level).sum()), level, bound)
        for task, members, leads, level in zip(rows.tasks, calibrating, harms, levels, strict=plan is not None)
    )
    certificate = Certificate(
        retention="certified" if certified else "expected",
        epsilon=parameters.epsilon_cs,
        delta=parameters.delta,
        pairs=rows.pairs,
        calibration=plan.pairs if plan else 0,
        steps=plan.steps if plan else (),
        tasks=thresholds,
        chance=total_chance(plan.steps, plan.pairs, parameters.epsilon_cs / weight) if plan and certified else None,
        bound=bound if plan else None,
        weight=weight,
        mixture=tuple((name, share / sum(covered.values())) for name, share in covered.items()),
        has_target=target is not None,
        strength=strengths[rows.kinds[0]][0],
        open_strength=strengths[True][0] if len(rows.kinds) > 1 else None,
        strength_rule="split" if given is None else "fixed",
        seed=SEED,
        calibration_pairs=rows.names(in_use),
        strength_pairs=rows.names(~in_use) if fits_strength else (),
        harmed_by_strict=bool(harms) and plan is None,
        by_image=not bool(rows.table.is_matched.all()),
    )
    return Certified(certificate, strengths, scale)


def _plan(parameters: Parameters, pairs: int, tasks: int, rate: float) -> tuple[Plan | None, float | None]:
    """The plan, and the strength if none is to be fitted."""

    def planned(most: int) -> Plan | None:
        if parameters.retention == "expected":
            return expected_plan(most, tasks, rate)
        return plan_steps(most, tasks, rate, parameters.delta)

    if isinstance(parameters.rule, Fixed):
        return planned(pairs), parameters.rule.value
    plan, spares = with_reserve(planned, pairs)
    return plan, None if spares else _WITHOUT_PAIRS


def _levels(parameters: Parameters, plan: Plan | None, harms: Sequence[FloatArray]) -> list[float]:
    if plan is None:
        return []
    if parameters.retention == "expected":
        return [_level(leads, plan.steps[0], np.inf) for leads in harms]
    return descend(harms, plan.steps)


def descend(harms: Sequence[FloatArray], steps: Sequence[int]) -> list[float]:
    """Where every task stops when one threshold falls for all.

    Parameters
    ----------
    harms
        Leads of the harmed answers of every task, from the largest.
    steps
        Harms allowed to the first task that stops, to the second, and so on; −1 stops all that are left.

    >>> descend([np.array([3.0, 1.0]), np.array([2.0, 0.5])], (1, 0)), descend([np.array([3.0]), np.array([])], (0, -1))
    ([1.0, 1.0], [3.0, 3.0])
    """
    levels = [0.0] * len(harms)
    running = set(range(len(harms)))
    level = np.inf
    for step in steps:
        if step < 0:
            break
        reached = {task: _level(harms[task], step, level) for task in sorted(running)}
        first = max(reached, key=reached.__getitem__)
        levels[first] = level = reached[first]
        running.remove(first)
    for task in running:
        levels[task] = float(level)
    return levels


def _level(leads: FloatArray, step: int, highest: float) -> float:
    """The lead of the first harm that is not allowed; 0, which every revision exceeds, if there is none."""
    return float(min(leads[step], highest)) if len(leads) > step else 0.0


def constant_strength(strength: float) -> StrengthModel:
    """The same strength for all examples; a bias that always reaches the cap."""
    theta = np.zeros(len(FEATURE_NAMES))
    theta[0] = inverse_softplus(np.array([strength]))[0] + ABOVE_CAP
    return StrengthModel(Standardisation(np.zeros(len(theta)), np.ones(len(theta))), theta)


@dataclass(eq=False)
class CalibrationRows:
    """Development rows and their pairs, in the order in which pairs are drawn."""

    stable: StableRows
    target: Mapping[str, float] | None = None
    """Share of every subcategory; pairs of others set no threshold."""

    def __post_init__(self) -> None:
        """Draw the order of the pairs."""
        self.table = self.stable.table
        code, names = self.table.codes("pair_id")
        labels = [label for (label,) in names]
        # By name, so that the order of the rows has no part in the draw.
        ranked = np.array(sorted(range(len(labels)), key=labels.__getitem__))
        drawn = np.random.default_rng(SEED).permutation(ranked)
        place = np.empty(len(labels), dtype=np.int64)
        place[drawn] = np.arange(len(labels))
        groups = Groups.from_table(self.table)
        self.pair: IntArray = place[code]
        """Place of every row's pair in the drawn order."""
        self.labels: list[int | str] = [labels[index] for index in drawn]
        self.tasks = groups.tasks
        self.group = groups.group
        # Where there is no original answer, none can be harmed, and nothing is learned about harm.
        counts = self._in_target() & ~self.table.is_cf & (self.table.original_positions >= 0)
        self.pairs_of_task = [
            np.unique(self.pair[counts & (self.group // 2 == task)]) for task in range(len(self.tasks))
        ]
        """Pairs with a commonsense answer that the promise is about."""
        self.pairs = min(map(len, self.pairs_of_task))
        """Of the task that has the fewest."""

    @property
    def kinds(self) -> tuple[bool, ...]:
        """Kinds of question: False where there are some with options, True where there are open ones."""
        return tuple(kind for kind in (False, True) if (self.table.is_open == kind).any())

    def on_scale(self, given: OpenAnswers, spare: BoolArray) -> tuple[CalibrationRows, OpenScale | None]:
        """The same rows with open answers on the scale of the method, and that scale; T is fitted on spare pairs."""
        if True not in self.kinds:
            return self, None
        is_open = self.table.is_open
        refuse_unlearnable(learnable(self.table)[is_open], self.table.is_cf[is_open])
        scale = OpenScale(given.middle, *fit_temperature(self.table, spare, given.temperature))
        none = np.zeros(len(self.table), dtype=np.bool_)
        lacking = none if self.stable.lacking is None else self.stable.lacking
        unlearnable = self.table.is_open & ~learnable(self.table)
        stable = replace(self.stable, table=scale.apply(self.table), lacking=lacking | unlearnable)
        return CalibrationRows(stable, self.target), scale

    @cached_property
    def blocks(self) -> list[Block]:
        """Rows of equal K and of one kind."""
        found = []
        for kind in self.kinds:
            chosen = np.flatnonzero(self.table.is_open == kind)
            part = self.table.take(self.table.is_open == kind)
            found += [replace(block, rows=chosen[block.rows]) for block in part.blocks(max_rows=len(part))]
        return found

    @cached_property
    def observations(self) -> list[Observation]:
        """What each block shows."""
        return [observe(block, self.stable) for block in self.blocks]

    def _in_target(self) -> BoolArray:
        if self.target is None:
            return np.ones(len(self.table), dtype=np.bool_)
        return np.array([self.target.get(name, 0.0) > 0 for name in self.table.column("subcategory")])

    @property
    def to_learn_from(self) -> BoolArray:
        """Rows that the strength may be fitted on."""
        lacking = self.stable.lacking
        return np.ones(len(self.table), dtype=np.bool_) if lacking is None else ~lacking

    def names(self, pairs: BoolArray) -> tuple[int | str, ...]:
        """Names of some pairs."""
        return tuple(self.labels[index] for index in np.flatnonzero(pairs))

    def subcategories(self, pairs: IntArray | None = None) -> Mapping[str, float]:
        """How many of some pairs, or of all, each subcategory has; none where the rows name none."""
        named = dict(zip(self.pair.tolist(), self.table.column("subcategory"), strict=True))
        chosen = named.values() if pairs is None else [named[pair] for pair in pairs.tolist()]
        return Counter() if None in chosen else Counter(map(str, chosen))

    def fit_strength(self, rows: BoolArray) -> tuple[float, float]:
        """The most probable strength of some rows, log λ being normal at first, and its loss."""
        parts = []
        for block, seen in zip(self.blocks, self.observations, strict=True):
            chosen = np.flatnonzero(rows[block.rows])
            answer = block.answer[chosen], chosen
            parts.append((seen.image[:, chosen] - seen.image[answer], seen.prior[:, chosen] - seen.prior[answer]))

        def losses(logs: FloatArray) -> FloatArray:
            total = 0.5 * logs**2
            for image, prior in parts:
                corrected = image[:, :, None] - np.exp(logs) * prior[:, :, None]
                peak = corrected.max(axis=0)
                total = total + (peak + np.log(np.exp(corrected - peak).sum(axis=0))).sum(axis=0)
            return total

        return most_probable(losses)

    def leads_of_harms(
        self,
        strengths: Mapping[bool, tuple[float, float]],
        conditions: tuple[Condition, ...] | None,
        calibrating: Sequence[IntArray],
    ) -> list[FloatArray]:
        """Leads of proposals that would harm a right commonsense answer, from the largest, by task; one per pair."""
        lead = np.full(len(self.table), -np.inf)
        for block, seen in zip(self.blocks, self.observations, strict=True):
            strength, _ = strengths[bool(self.table.is_open[block.rows[0]])]
            proposals = constant_strength(strength).prepare(seen).propose(strength, conditions, leads=True)
            asked = block.original if self.stable.asked is None else self.stable.asked[block.rows]
            right, kept, proposed = (
                self.table.is_right(each, block.rows) for each in (asked, block.original, proposals.candidate)
            )
            harmed = right & ~proposed & (proposals.condition >= 0)
            assert proposals.lead is not None  # asked for
            lead[block.rows[harmed]] = proposals.lead[harmed]
            # What strict mode changes without the gate is changed at every threshold.
            lead[block.rows[right & ~kept]] = np.inf
        found = []
        for task, members in enumerate(calibrating):
            largest = np.full(len(self.labels), -np.inf)
            rows = self.group == 2 * task + 1
            np.maximum.at(largest, self.pair[rows], lead[rows])
            of_pairs = largest[members]
            found.append(np.sort(of_pairs[of_pairs > -np.inf])[::-1])
        return found

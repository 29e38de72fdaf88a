"""What studies are computed from: the scores of one model, its variants, and answers of other methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unprior.baselines.answers import Cost, MethodAnswers, read_answers, read_references
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.scores import ScoreTable, read_scores

VARIANTS = "variants"
EXTERNAL = "external"
ORDERS = ("order-1230", "order-2301", "order-3210")
FORMS = "forms"


@dataclass(frozen=True, slots=True)
class External:
    """Another benchmark of the same model, with the answers of other methods to it."""

    table: ScoreTable
    baselines: tuple[MethodAnswers, ...] = ()


@dataclass(eq=False)
class StudyInputs:
    """The scores of one model on one benchmark, and whatever else was prepared.

    >>> from unprior import synthesize
    >>> inputs = StudyInputs(synthesize(seed=0))
    >>> len(inputs.development), len(inputs.test), inputs.missing("orders")
    (280, 920, ('order-1230', 'order-2301', 'order-3210'))
    """

    table: ScoreTable
    """The benchmark's own questions, with splits ``dev`` and ``test``; perhaps with views of the prior."""
    variants: dict[str, ScoreTable] = field(default_factory=dict)
    """Constructed tests by name: option orders and question forms, in the same splits."""
    external: dict[str, External] = field(default_factory=dict)
    """Other benchmarks by name."""
    baselines: tuple[MethodAnswers, ...] = ()
    """Answers of other methods to the test rows."""
    costs: dict[str, Cost] = field(default_factory=dict)
    """Of the original answers and of SPC, measured together with the baselines."""
    epsilon: float = 0.04
    """The paper's primary limit of commonsense loss."""
    wide_epsilon: float = 0.10
    """The paper's second limit."""
    resamples: int = BOOTSTRAP_RESAMPLES
    seed: int = BOOTSTRAP_SEED
    _fits: dict[Any, SelectivePriorCalibrator] = field(default_factory=dict, repr=False)

    @classmethod
    def of_run(cls, folder: Path, **settings: Any) -> StudyInputs:
        """Read what a run folder holds; only its score table must be there."""
        path = folder / "scores.parquet"
        if not path.exists():
            raise UnpriorError(f"{folder}: there is no scores.parquet; `unprior run --out {folder}` makes one")
        table = read_scores(path)
        answers = folder / "baselines.parquet"
        baselines: list[MethodAnswers] = []
        if answers.exists() and "test" in table.column("split"):
            baselines = read_answers(answers, table.where(split="test"))
        variants = {each.stem: read_scores(each) for each in sorted((folder / VARIANTS).glob("*.parquet"))}
        external = {}
        for each in sorted((folder / EXTERNAL).glob("*/scores.parquet")):
            scores, others = judged_rows(read_scores(each)), each.parent / "baselines.parquet"
            answered = tuple(read_answers(others, scores)) if others.exists() else ()
            external[each.parent.name] = External(scores, answered)
        costs = read_references(answers) if answers.exists() else {}
        return cls(table, variants, external, tuple(baselines), costs, **settings)

    @property
    def development(self) -> ScoreTable:
        """Rows to fit on."""
        return self.table.where(split="dev")

    @property
    def test(self) -> ScoreTable:
        """Rows to judge on."""
        return self.table.where(split="test")

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of the test rows."""
        return tuple(sorted({str(task) for task in self.test.column("task")}))

    def fitted(self, epsilon: float | None = None, *, uncertainty: bool = False) -> SelectivePriorCalibrator:
        """SPC fitted on the development rows; the same fit is made once for all studies."""
        key = (self.epsilon if epsilon is None else epsilon, uncertainty)
        if key not in self._fits:
            calibrator = SelectivePriorCalibrator(epsilon_cs=key[0], uncertainty=uncertainty)
            self._fits[key] = calibrator.fit(self.development, split=None)
        return self._fits[key]

    def decisions(self, epsilon: float | None = None, *, uncertainty: bool = False) -> Decisions:
        """What SPC decides about the test rows."""
        return self.fitted(epsilon, uncertainty=uncertainty).predict(self.test)

    def missing(self, need: str) -> tuple[str, ...]:
        """What is lacking for a need of a study; nothing when it is met."""
        return NEEDS[need].missing(self)


def judged_rows(table: ScoreTable) -> ScoreTable:
    """The rows that methods answer: those of split ``test`` where there are splits, else all."""
    return table.where(split="test") if "test" in table.column("split") else table


@dataclass(frozen=True, slots=True)
class Need:
    """Something a study is computed from, beside the plain scores."""

    about: str
    """What it is, for people."""
    missing: Callable[[StudyInputs], tuple[str, ...]]


def _splits(inputs: StudyInputs) -> tuple[str, ...]:
    present = set(inputs.table.column("split"))
    lacking = tuple(split for split in ("dev", "test") if split not in present)
    return lacking if lacking or inputs.table.is_paired.all() else ("pairs",)


def _views(inputs: StudyInputs) -> tuple[str, ...]:
    stored = [dict(entry or ()) for entry in inputs.table.column("views")]
    return tuple(view for view in ("white", "black", "mean") if not all(view in entry for entry in stored))


NEEDS: dict[str, Need] = {
    "scores": Need("scores with development and test pairs", _splits),
    "views": Need("prior scores from white, black and mean images", _views),
    "orders": Need(
        "multiple choice with the options in three other orders",
        lambda inputs: tuple(name for name in ORDERS if name not in inputs.variants),
    ),
    "forms": Need(
        "yes/no questions in four forms and both claim orders",
        lambda inputs: () if FORMS in inputs.variants else (FORMS,),
    ),
    "baselines": Need("answers of other methods", lambda inputs: () if inputs.baselines else ("baselines",)),
    "revis": Need(
        "answers of REVIS",
        lambda inputs: () if any(each.info.name == "revis" for each in inputs.baselines) else ("revis",),
    ),
    "external": Need("other benchmarks", lambda inputs: () if inputs.external else ("external",)),
}
"""Everything that studies may need, by name."""

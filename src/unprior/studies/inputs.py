"""What studies are computed from: the scores of one model, its variants, and answers of other methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unprior._files import is_parquet, open_to_read
from unprior._text import one_line
from unprior.baselines.answers import Cost, MethodAnswers, read_answers, read_references
from unprior.benchmarks.variants import GIVEN
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.calibration.certificate import Retention
from unprior.calibration.selection import Ties
from unprior.calibration.stable import CANONICAL_VIEWS
from unprior.errors import UnpriorError, format_option
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.scores import ScoreTable, read_scores
from unprior.scores.pairs import PairCheck, sound_pairs, warnings_about
from unprior.scores.provenance import Provenance, compare_provenance

VARIANTS = "variants"
EXTERNAL = "external"
ORDERS = ("order-1230", "order-2301", "order-3210")
FORMS = "forms"
OPEN_FOLDER = "open"
"""Where a run folder keeps open questions with all candidates, and the answers of other methods to them."""


def wide_limit(epsilon: float) -> float:
    """The second, wider limit beside a primary one: the paper's 0.10, or twice the primary limit.

    >>> wide_limit(0.04), wide_limit(0.2)
    (0.1, 0.4)
    """
    return 0.10 if epsilon < 0.10 else min(1.0, 2 * epsilon)


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
    open: External | None = None
    """Open questions with all that the model proposed, and the answers of other methods to their test rows."""
    baselines: tuple[MethodAnswers, ...] = ()
    """Answers of other methods to the test rows."""
    costs: dict[str, Cost] = field(default_factory=dict)
    """Of the original answers and of SPC, measured together with the baselines."""
    epsilon: float = 0.04
    """The paper's primary limit of commonsense loss."""
    wide_epsilon: float = 0.10
    """The paper's second limit."""
    ties: Ties = "first"
    """Which of equally good settings of standard SPC is chosen."""
    resamples: int = BOOTSTRAP_RESAMPLES
    seed: int = BOOTSTRAP_SEED
    uncertainty: bool = False
    """Whether the version under study is the uncertainty-aware one."""
    promise: dict[str, Any] = field(default_factory=dict)
    """Parameters of calibrators with a certificate: ``delta``, ``strength``, ``target_mixture``."""
    folder: Path | None = None
    """The run folder that it was read from."""
    problems: list[str] = field(default_factory=list)
    """Files of the run folder that could not be used, and why."""
    _fits: dict[bool, SelectivePriorCalibrator] = field(default_factory=dict, repr=False)
    _certified: dict[str, SelectivePriorCalibrator] = field(default_factory=dict, repr=False)
    _closed: StudyInputs | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse limits that are not two different shares of accuracy."""
        if not (0.0 <= self.epsilon < self.wide_epsilon <= 1.0 or self.epsilon == self.wide_epsilon == 1.0):
            limits = {"epsilon_cs": self.epsilon, "wide_epsilon_cs": self.wide_epsilon}
            told = " and ".join(format_option(name, value) for name, value in limits.items())
            raise UnpriorError(f"{told}: give shares of accuracy between 0 and 1, the second larger than the first")

    @classmethod
    def from_run(cls, folder: Path, **settings: Any) -> StudyInputs:
        """Read what a run folder holds; only its score table must be there and whole."""
        path = folder / "scores.parquet"
        if folder.is_file():
            raise UnpriorError(f"{folder}: this is a file; give the folder of a run")
        if not path.exists():
            raise UnpriorError(f"{folder}: there is no scores.parquet; `unprior run --out {folder}` makes one")
        table, check = sound_pairs(_read_table(path))
        if len(table) == 0:
            check.refuse(str(path))
        inputs = cls(table, folder=folder, **settings)
        inputs._note(path, check)
        answers = folder / "baselines.parquet"
        if answers.exists() and "test" in inputs.table.column("split"):
            with inputs._reading():
                inputs.baselines = tuple(read_answers(answers, inputs.test))
                inputs.costs = read_references(answers)
        for each in sorted((folder / VARIANTS).glob("*.parquet")):
            with inputs._reading():
                scores, check = sound_pairs(_read_table(each))
                inputs._refuse_other_model(each, scores)
                inputs.variants[each.stem] = scores
                inputs._note(each, check)
        inputs.find_open()
        for each in sorted((folder / EXTERNAL).glob("*/scores.parquet")):
            with inputs._reading():
                scores, others = _read_table(each), each.parent / "baselines.parquet"
                inputs._refuse_other_model(each, scores)
                if "test" in scores.column("split"):
                    scores = scores.where(split="test")  # the rows that methods answer
                answered = tuple(read_answers(others, scores)) if others.exists() else ()
                inputs.external[each.parent.name] = External(scores, answered)
        return inputs

    def find_open(self) -> None:
        """Read the open questions with all candidates, if the run folder has them."""
        folder = None if self.folder is None else self.folder / OPEN_FOLDER
        if folder is None or not (folder / "scores.parquet").exists():
            return
        with self._reading():
            path, others = folder / "scores.parquet", folder / "baselines.parquet"
            scores, check = sound_pairs(_read_table(path))
            self._refuse_other_model(path, scores)
            if other := compare_provenance(self.table.provenance, scores.provenance).refused:
                raise UnpriorError(
                    f"{path}: not made as the scores of the run: {'; '.join(other)}. Make it again with "
                    f"`unprior run --task both --out {self.folder}`"
                )
            self._note(path, check)
            self.open = External(scores)
            if others.exists():
                self.open = External(scores, tuple(read_answers(others, scores.where(split="test"))))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What cannot be used is noted, and the studies that do not need it go on."""
        try:
            yield
        except UnpriorError as error:
            self.problems.append(str(error))

    def _refuse_other_model(self, path: Path, scores: ScoreTable) -> None:
        """Scores of another model than the run's say nothing about it."""
        found = self.other_model(_models(scores))
        if found:
            raise UnpriorError(
                f"{path}: not of the model of the run: {found}. Move it away, and make another with "
                f"`unprior study all --run {self.folder} --prepare`"
            )

    def other_model(self, records: Sequence[Provenance]) -> str:
        """What tells the model of other scores from that of the run; empty if it is the same."""
        return "; ".join(compare_provenance(_models(self.table), records).refused)

    def _note(self, path: Path, check: PairCheck) -> None:
        """Pairs that lost a side, because an image of theirs could not be scored, are left out of every study."""
        if check.total:
            self.problems.append(f"{check.total:,} pairs of {path} that are not sound, such as {check.problems[0]}")

    @property
    def model(self) -> str | None:
        """The model whose scores these are, as tables and figures name it."""
        name: str | None = self.table.arrow.column("model")[0].as_py()
        return name and one_line(name)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader should know before relying on the numbers."""
        return (*(f"left aside: {each}" for each in self.problems), *warnings_about(self.development, self.epsilon))

    @property
    def development(self) -> ScoreTable:
        """Rows to fit on."""
        return self.table.where(split="dev")

    @property
    def test(self) -> ScoreTable:
        """Rows to judge on."""
        return self.table.where(split="test")

    def closed(self) -> StudyInputs:
        """The same without open questions; made once, so that its fits are, too."""
        is_open = self.table.is_open
        if not is_open.any():
            return self
        if is_open.all():
            raise UnpriorError("this study is about questions with options, and all of these are open")
        if self._closed is None:
            of_test = ~self.test.is_open
            self._closed = replace(
                self,
                table=self.table.take(~is_open),
                baselines=tuple(each.take(of_test) for each in self.baselines),
                _fits={},
                _certified={},
            )
        return self._closed

    def fitted(self, epsilon: float | None = None, *, uncertainty: bool | None = None) -> SelectivePriorCalibrator:
        """SPC fitted on the development rows, the version under study unless another is asked for.

        The same fit is made once for all studies.
        """
        uncertainty = self.uncertainty if uncertainty is None else uncertainty
        if uncertainty not in self._fits:
            calibrator = SelectivePriorCalibrator(uncertainty=uncertainty, ties=self.ties)
            self._fits[uncertainty] = calibrator.fit(self.development, split=None)
        return self._fits[uncertainty].reselect(self.epsilon if epsilon is None else epsilon)

    def certified(self, retention: Retention = "certified") -> SelectivePriorCalibrator:
        """SPC with a promise about new pairs, fitted on the development rows with the primary limit."""
        if retention not in self._certified:
            calibrator = SelectivePriorCalibrator(epsilon_cs=self.epsilon, retention=retention, **self.promise)
            self._certified[retention] = calibrator.fit(self.development, split=None)
        return self._certified[retention]

    def decisions(self, epsilon: float | None = None, *, uncertainty: bool | None = None) -> Decisions:
        """What SPC decides about the test rows."""
        return self.fitted(epsilon, uncertainty=uncertainty).predict(self.test)

    def missing(self, need: str) -> tuple[str, ...]:
        """What is lacking for a need of a study; nothing when it is met."""
        return NEEDS[need].missing(self)


def _models(table: ScoreTable) -> list[Provenance]:
    """Whose scores a table holds; one model may have two names, and is known by its weights then."""
    noted = [Provenance(model=each.model, weights=each.weights) for each in table.provenance]
    return noted or [Provenance(model=name) for name in sorted(filter(None, table.values_of("model")))]


def _read_table(path: Path) -> ScoreTable:
    with open_to_read(path) as stream:
        if not is_parquet(stream):
            raise UnpriorError(f"{path}: not a Parquet file; it may be broken, make it again")
    return read_scores(path)


@dataclass(frozen=True, slots=True)
class Need:
    """Something a study is computed from, beside the plain scores."""

    about: str
    """What it is, for people."""
    missing: Callable[[StudyInputs], tuple[str, ...]]


def _splits(inputs: StudyInputs) -> tuple[str, ...]:
    present = set(inputs.table.column("split"))
    lacking = [f"rows of split {split}" for split in ("dev", "test") if split not in present]
    return (*lacking, *([] if inputs.table.is_paired.all() else ["the side (cf or cs) of every row"]))


def _views(inputs: StudyInputs) -> tuple[str, ...]:
    stored = [dict(entry or ()) for entry in inputs.table.column("views")]
    return tuple(view for view in ("white", "black", "mean") if not all(view in entry for entry in stored))


def _has_canonical(inputs: StudyInputs) -> bool:
    if FORMS not in inputs.variants:
        return False
    stored = [dict(entry or ()) for entry in inputs.variants[FORMS].column("views")]
    return all(view in entry for entry in stored for view in CANONICAL_VIEWS)


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
    "canonical": Need(
        "these questions scored for the canonical prior",
        lambda inputs: () if _has_canonical(inputs) else ("canonical",),
    ),
    "open": Need("open questions", lambda inputs: () if inputs.open is not None else ("open questions",)),
    "open-methods": Need(
        "answers of other methods to open questions",
        lambda inputs: () if inputs.open is not None and inputs.open.baselines else ("open-methods",),
    ),
    GIVEN: Need(
        "open questions with the benchmark's options as candidates",
        lambda inputs: () if GIVEN in inputs.variants else (GIVEN,),
    ),
    "baselines": Need("answers of other methods", lambda inputs: () if inputs.baselines else ("baselines",)),
    "revis": Need(
        "answers of REVIS",
        lambda inputs: () if any(each.info.name == "revis" for each in inputs.baselines) else ("revis",),
    ),
    "external": Need("other benchmarks", lambda inputs: () if inputs.external else ("external",)),
}
"""Everything that studies may need, by name."""

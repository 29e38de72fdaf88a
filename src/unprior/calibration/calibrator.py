"""The estimator: fit on paired development data, decide for any example."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from unprior._files import as_path
from unprior.calibration.certificate import Certificate, Retention
from unprior.calibration.decisions import Decision, Decisions
from unprior.calibration.features import ALL_FEATURES
from unprior.calibration.fitting import fit_state
from unprior.calibration.gate import CONDITIONS, Condition, Settings, StrengthModel
from unprior.calibration.ladder import DELTA
from unprior.calibration.open_answers import DEFAULT, OpenAnswers
from unprior.calibration.parameters import Parameters, Sides
from unprior.calibration.pretrained import Pretrained
from unprior.calibration.selection import Grid, Selection, Ties
from unprior.calibration.stable import Prior
from unprior.calibration.state import FittedState, FittedStrength
from unprior.calibration.strength_rules import StrengthRule
from unprior.errors import InvalidScoresError, UnpriorError, require_type
from unprior.scores import ScoreTable
from unprior.scores.provenance import Differences, Provenance, compare_provenance


class NotFittedError(UnpriorError, AttributeError):
    """A calibrator was asked for something that only a fit can give."""


class SelectivePriorCalibrator(Pretrained):
    """Selective Prior Calibration (SPC): subtract the prior where it misleads, keep it where it helps.

    Parameters
    ----------
    epsilon_cs
        Largest loss of commonsense accuracy that selection may accept on any development task.
    uncertainty
        Use the uncertainty-aware version: averages over plausible strengths, and also asks that the
        proposal is stable and the scores are not unlike the development data.
    grid
        The settings to choose from; the default is the paper's.
    ties
        Which of equally good settings to choose: ``first`` in loop order, or, as in the authors' released scripts of
        the standard version, the one whose JSON text sorts first (``released``).
    strength
        Where the correction strength comes from: ``Learned()`` from the features of each example, ``Constant()``, one
        fitted strength for all examples, or ``Fixed(value)``, a given one. With a certificate it is ``Split()``, one
        strength fitted on pairs set aside, or ``Fixed(value)``. None takes ``Learned()`` or ``Split()``.
    features
        Features that strength and distance may depend on; ``IMAGE_FEATURES`` leaves out those of the prior.
    conditions
        Support conditions that permit a revision. None asks for none, and a proposal that meets none is then reported
        as a conflict.
    fit_on
        Whether the strength is fitted on both sides of the pairs (``both``) or on counterfactual images alone (``cf``).
    select_on
        Whether settings are chosen on both sides or on counterfactual images alone. With ``cf``, ΔCS has no part in
        the choice: a setting is feasible when ΔCF ≥ 0, and the best one has the largest mean ΔCF, then the most tasks
        with ΔCF > 0, then the fewest changed answers.
    retention
        What keeps commonsense answers. ``paper``: settings lose at most ε on the development pairs; on new pairs they
        often lose more. ``certified``: with probability 1 − δ over the draw of the development pairs, at most a share ε
        of the commonsense answers to new pairs is harmed, in every task. ``expected``: that share is at most ε on
        average over draws of the development pairs.
    delta
        δ: how often a certified promise may break.
    target_mixture
        Share of every subcategory among the pairs that the promise is to hold for; None for the mixture of the
        development pairs.
    prior
        The prior of yes/no questions about two claims. ``plain``: as the question is asked. ``symmetric``: over both
        claim orders. ``canonical``: one form in both claim orders, with and without the image, where a prior between
        the two claims as options agrees; see :mod:`unprior.calibration.stable`.
    strict
        With ``canonical``: start from the answer that the image supports in the canonical form, so that the answer
        does not depend on how the question was asked. A promise about new pairs counts what this change alone
        harms.
    open_answers
        How the scores of open answers are brought to the scale of the method: at which τ nats below its top the prior
        may be clipped, and the temperature T, fitted unless it is given; see :mod:`unprior.calibration.open_answers`.

    Open questions (task ``open``) and questions with options are fitted apart, each on rows of its own, and kept
    together. With a promise about new pairs they share its thresholds' one chain, so that it holds for all tasks at
    once.

    Attributes
    ----------
    state_
        All that was fitted, frozen; the other attributes are views of it. Parameters that are set after a fit take
        effect in the next one.
    settings_
        The chosen settings, or None when nothing was feasible and the calibrator abstains.
    model_
        The fitted strength model (θ, standardisation, and Σ when uncertainty-aware).
    selection_
        The search's outcome: development changes by task, number of feasible settings.
    loss_, gradient_norm_
        Objective and length of its gradient at the fitted θ.
    candidate_counts_
        The set of K seen in development; other K are never revised.
    model_name_
        The vision-language model that the development scores came from.
    provenance_
        How the development scores were made, as far as their table knows.
    development_rows_
        How many rows the strength was fitted on.
    fits_
        One fit per ρ (from a file of version 1 just the chosen one).
    certificate_
        What is promised about new pairs, and what the promise rests on; None under the paper's rule.
    open_
        The part for open answers, as a calibrator of its own; the other attributes are about questions with options
        where both were fitted.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
    >>> decisions = calibrator.predict(table.where(split="test"))
    >>> len(decisions)
    920
    """

    def __init__(
        self,
        *,
        epsilon_cs: float = 0.04,
        uncertainty: bool = False,
        grid: Grid | None = None,
        ties: Ties = "first",
        strength: StrengthRule | None = None,
        features: tuple[str, ...] = ALL_FEATURES,
        conditions: tuple[Condition, ...] | None = CONDITIONS,
        fit_on: Sides = "both",
        select_on: Sides = "both",
        retention: Retention = "paper",
        delta: float = DELTA,
        target_mixture: Mapping[str, float] | None = None,
        prior: Prior = "plain",
        strict: bool = False,
        open_answers: OpenAnswers = DEFAULT,
    ) -> None:
        """Keep the parameters; they are checked in :meth:`fit`."""
        self.epsilon_cs = epsilon_cs
        self.uncertainty = uncertainty
        self.grid = grid
        self.ties = ties
        self.strength = strength
        self.features = features
        self.conditions = conditions
        self.fit_on = fit_on
        self.select_on = select_on
        self.retention = retention
        self.delta = delta
        self.target_mixture = target_mixture
        self.prior = prior
        self.strict = strict
        self.open_answers = open_answers

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name, as scikit-learn's ``clone`` expects them."""
        return {
            name: getattr(self, name) for name in inspect.signature(type(self).__init__).parameters if name != "self"
        }

    def set_params(self, **parameters: Any) -> Self:
        """Change constructor arguments by name; they take effect in the next :meth:`fit`.

        >>> SelectivePriorCalibrator().set_params(epsilon_cs=0.1)
        SelectivePriorCalibrator(epsilon_cs=0.1)
        """
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise UnpriorError(f"no parameter {name!r}; there are {', '.join(known)}")
            setattr(self, name, value)
        return self

    def clone(self, **changes: Any) -> Self:
        """An unfitted calibrator of the same kind, with the same parameters but those given.

        >>> SelectivePriorCalibrator(epsilon_cs=0.1).clone(uncertainty=True)
        SelectivePriorCalibrator(epsilon_cs=0.1, uncertainty=True)
        """
        return type(self)(**self.get_params() | changes)

    def __repr__(self) -> str:
        """Show the parameters that differ from the defaults."""
        shown = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = getattr(self, name)
            if value != parameter.default:
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def fit(self, table: ScoreTable, *, split: str | None = "dev") -> Self:
        """Learn the strength and choose the settings on the rows of one split.

        Parameters
        ----------
        table
            Scores with answers; both sides of every task must be present.
        split
            Which rows to use. The default leaves test rows alone even in a full table; None uses all.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> SelectivePriorCalibrator(uncertainty=True).fit(synthesize(seed=0)).selection_.searched
        8640
        """
        self._state = fit_state(self.parameters, table, split)
        return self

    def reselect(self, epsilon_cs: float) -> Self:
        """The same fit with its settings chosen under another limit; what is fitted does not depend on it.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> table = synthesize(seed=0)
        >>> fitted = SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
        >>> fitted.reselect(0.1).settings_ == SelectivePriorCalibrator(epsilon_cs=0.1).fit(table).settings_
        True
        """
        return self.from_state(self.state_.reselect(epsilon_cs))

    @classmethod
    def from_state(cls, state: FittedState) -> Self:
        """A calibrator with a state that was fitted or read before."""
        calibrator = cls(**{field.name: getattr(state.parameters, field.name) for field in fields(Parameters)})
        calibrator._state = state
        return calibrator

    @property
    def state_(self) -> FittedState:
        """All that was fitted."""
        try:
            return self._state
        except AttributeError:
            raise NotFittedError("this calibrator is not fitted; call fit(table) or load(path) first") from None

    @property
    def settings_(self) -> Settings | None:
        """The chosen settings; None when the calibrator abstains."""
        return self.state_.settings

    @property
    def model_(self) -> StrengthModel:
        """The fitted strength model."""
        return self.state_.chosen.model

    @property
    def selection_(self) -> Selection:
        """The search's outcome."""
        return self.state_.selection

    @property
    def loss_(self) -> float:
        """The objective at the fitted θ."""
        return self.state_.chosen.loss

    @property
    def gradient_norm_(self) -> float:
        """Length of the objective's gradient there."""
        return self.state_.chosen.gradient_norm

    @property
    def candidate_counts_(self) -> tuple[int, ...]:
        """The set of K seen in development."""
        return self.state_.candidate_counts

    @property
    def model_name_(self) -> str | None:
        """The vision-language model that was scored."""
        return self.state_.model_name

    @property
    def provenance_(self) -> tuple[Provenance, ...]:
        """How the development scores were made."""
        return self.state_.provenance

    @property
    def development_rows_(self) -> int:
        """How many rows the strength was fitted on."""
        return self.state_.development_rows

    @property
    def fits_(self) -> tuple[FittedStrength, ...]:
        """One fit per ρ."""
        return self.state_.fits

    @property
    def certificate_(self) -> Certificate | None:
        """What is promised about new pairs; None under the paper's rule.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> SelectivePriorCalibrator(retention="certified").fit(synthesize(seed=0)).certificate_.label
        'exact'
        """
        return self.state_.certificate

    @property
    def open_(self) -> Self:
        """The part for open answers, as a calibrator of its own.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> fitted = SelectivePriorCalibrator().fit(synthesize(seed=0, open_questions=True))
        >>> fitted.development_rows_, fitted.open_.development_rows_, fitted.open_.state_.scale.clip
        (280, 139, 7.0)
        """
        part = self.state_.open_part
        if part is None:
            raise NotFittedError(
                "this calibrator was fitted on no open question; fit it on rows of task open "
                "(`unprior score --task open` makes them)"
            )
        return self.from_state(part)

    @property
    def made_with(self) -> dict[str, Any]:
        """What decisions note about the calibrator that made them."""
        return self.state_.made_with

    def predict(self, table: ScoreTable) -> Decisions:
        """Decide for every row of a table; rows need no answer.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> table = synthesize(seed=0)
        >>> decisions = SelectivePriorCalibrator().fit(table).predict(table)
        >>> bool((decisions.final_positions[~decisions.revised] == table.original_positions[~decisions.revised]).all())
        True
        """
        return self.state_.predict(table)

    def decide(
        self,
        candidates: Sequence[str],
        image_scores: Sequence[float],
        prior_scores: Sequence[float],
        original: str | None,
        *,
        task: str | None = None,
        views: Mapping[str, Sequence[float]] | None = None,
    ) -> Decision:
        """Decide for one example.

        ``task`` is ``qa`` for yes and no and ``mc`` otherwise, unless another is given, such as ``open`` for answers
        that the model itself proposed; ``views`` are what a stable prior needs, by name.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> calibrator = SelectivePriorCalibrator().fit(synthesize(seed=0))
        >>> decision = calibrator.decide(["five", "six"], [-0.6, -0.9], [-0.02, -4.0], original="five")
        >>> decision.final
        'six'
        """
        require_type("candidates", candidates, (list, tuple, np.ndarray), "a list of possible answers")
        require_type("views", views, Mapping | None, "scores by the name of a view")
        row = {
            "pair_id": 0,
            "task": task or ("qa" if {"yes", "no"} == set(candidates) else "mc"),
            "views": None if views is None else {name: np.asarray(each).tolist() for name, each in views.items()},
            "candidates": list(candidates),
            "image_scores": np.asarray(image_scores).tolist(),
            "prior_scores": np.asarray(prior_scores).tolist(),
            "original": original,
        }
        try:
            table = ScoreTable.from_rows([row], require_answers=False)
        except InvalidScoresError as error:
            raise UnpriorError(f"this example cannot be decided: {error.problems[0].reason}") from None
        return self.predict(table)[0]

    def save(self, path: str | Path) -> None:
        """Write all that was fitted, with its parameters, as readable, versioned JSON."""
        from unprior.calibration.storage import save_state

        save_state(self.state_, as_path("path", path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a calibrator that :meth:`save` wrote; predictions are identical.

        >>> import tempfile
        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     SelectivePriorCalibrator().fit(synthesize(seed=0)).save(f"{folder}/calibrator.json")
        ...     SelectivePriorCalibrator.load(f"{folder}/calibrator.json").candidate_counts_
        (2, 4)
        """
        from unprior.calibration.storage import load_state

        return cls.from_state(load_state(as_path("path", path)))

    def differences(self, made: Sequence[Provenance], models: Iterable[str | None] = ()) -> Differences:
        """What differs between the scores this was fitted on and others that it is to be applied to.

        Parameters
        ----------
        made
            How the others were made.
        models
            Their models; a note need not cover all rows.
        """
        own = self.provenance_ or (Provenance(model=self.model_name_),)
        noted = {record.model for record in made}
        unnoted = [Provenance(model=name) for name in sorted(filter(None, models)) if name not in noted]
        return compare_provenance(own, [*made, *unnoted])

    @property
    def promise_parameters(self) -> dict[str, Any]:
        """Parameters that only matter for a promise about new pairs; those of the paper's rule have no part in it."""
        strength = None if self.retention == "paper" else self.strength
        own = {"delta": self.delta, "strength": strength, "target_mixture": self.target_mixture}
        return own | {"prior": self.prior, "strict": self.strict}

    def check_parameters(self) -> None:
        """Refuse parameters that cannot be fitted with; :meth:`fit` does this, too."""
        self.parameters.check()

    @property
    def parameters(self) -> Parameters:
        """The constructor arguments together, as a fit keeps them."""
        values = {field.name: getattr(self, field.name) for field in fields(Parameters)}
        plain = {name: value.item() for name, value in values.items() if isinstance(value, np.generic)}
        return Parameters(**values | plain)

    def _repr_html_(self) -> str:
        """Parameters, chosen settings and development outcome, for notebooks."""
        from unprior.calibration.show import calibrator_html

        return calibrator_html(self)

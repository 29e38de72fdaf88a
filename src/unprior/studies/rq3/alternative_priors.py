"""RQ3: does SPC depend on how the prior is estimated?"""

from __future__ import annotations

from dataclasses import dataclass

from unprior.calibration import SelectivePriorCalibrator
from unprior.scores import ScoreTable
from unprior.scores.priors import COMBINATIONS, VIEWS, with_prior
from unprior.studies.common.variants import Variants
from unprior.studies.study import Study
from unprior.tables.format import format_count, format_list

LABELS = {
    "text": "Text only (image removed)",
    "white": "White image",
    "black": "Black image",
    "mean": "Mean development image",
    "median": "Median of normalised scores",
    "median3": "Median of text, white and black",
    "adjusted": "25 % adjustment towards the median",
    "weighted": "Adjustment weighted by disagreement",
}
"""Estimates of the prior in the order of the paper, as people call them."""


@dataclass(frozen=True, slots=True)
class AlternativePriors(Variants):
    """One calibrator, fitted with the text-only prior, applied to every estimate of the prior.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> result = study_alternative_priors(calibrator, table.where(split="test"), estimates=["text"])
    >>> result.best("mc")
    ('text',)
    """

    title = "Alternative estimates of the prior"
    differ_in = "Input to estimate the prior"
    caption = "The settings selected with the text-only prior are kept."

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which estimate serves best, and whether any gives a higher ΔCF than the text-only one."""
        if self.rows[0].abstains:
            return (f"{self.method} abstains, so no estimate of the prior changes an answer.",)
        sentences = []
        for task in self.tasks:
            best = [LABELS[name] for name in self.best(task)]
            top = self.of(self.best(task)[0]).on(task)
            others = [each for each in self.rows if each.name != "text"]
            text = self.of("text").on(task)
            more = sum(each.on(task).cf.delta > text.cf.delta for each in others)
            gaining = sum(each.on(task).cf.delta > 0 for each in self.rows)
            sentences += [
                f"On {task.upper()} U of {self.method} is highest with "
                f"{format_list([f'“{label}”' for label in best])} ({top.changes}).",
                f"On {task.upper()} ΔCF of {self.method} is positive with {gaining or 'none'} of "
                f"{format_count(len(self.rows), 'estimate')}, and higher than with text only ({text.changes}) with "
                f"{more or 'none'} of {format_count(len(others), 'other')}.",
            ]
        return tuple(sentences)


def study_alternative_priors(
    calibrator: SelectivePriorCalibrator, test: ScoreTable, *, estimates: tuple[str, ...] | list[str] | None = None
) -> AlternativePriors:
    """Apply a calibrator, as it is, to test rows whose prior scores come from other inputs.

    The text-only prior is always among the ``estimates``; by default they are all of the paper.
    """
    chosen = (*VIEWS, *COMBINATIONS) if estimates is None else tuple(dict.fromkeys(("text", *estimates)))
    rows = ((name, LABELS[name], calibrator.predict(with_prior(test, name))) for name in chosen)
    return AlternativePriors.from_decisions(rows)


STUDY = Study(
    name="alternative-priors",
    title="Alternative estimates of the prior",
    asks="Does the repair depend on removing the image, or do blank images estimate the prior as well?",
    how="Standard SPC is fitted with the text-only prior (ε = {epsilon}); its strength model and settings stay fixed "
    "while the prior scores of the test rows are replaced by those of a white, black or mean image or of a "
    "combination.",
    needs=("scores", "views"),
    run=lambda inputs: study_alternative_priors(inputs.fitted(uncertainty=False), inputs.test),
    label="tab:neutral-prior-controls",
)

"""What a study is: a question of the paper, what it needs, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult
from unprior.tables.format import format_limit

QUESTIONS = {
    "rq1": "Do errors converge on the answer that the prior favours?",
    "rq2": "How much does SPC repair, and what does it retain, beside other methods?",
    "rq3": "What does each part of SPC contribute?",
    "rq4": "Does SPC generalise?",
    "rq5": "Where does correction by the prior end?",
}
"""The research questions of the paper."""


@dataclass(frozen=True, slots=True)
class Study:
    """One experiment: one table, and a figure where the paper has one."""

    name: str
    """As the command line calls it, and as its files are called."""
    question: str
    """``rq1`` … ``rq5``."""
    title: str
    asks: str
    """The question it answers, in one sentence."""
    how: str
    """How the numbers are computed; ``{epsilon}`` and ``{wide_epsilon}`` stand for the limits, see ``explained``."""
    needs: tuple[str, ...]
    """Names of ``unprior.studies.inputs.NEEDS``."""
    run: Callable[[StudyInputs], StudyResult]

    def explained(self, epsilon: float = 0.04, wide_epsilon: float = 0.10) -> str:
        """How the numbers are computed, with the limits of commonsense loss in place.

        >>> from unprior.studies.registry import STUDIES
        >>> STUDIES["support-conditions"].explained(wide_epsilon=0.2)[:22]
        'Standard SPC, ε = 0.20'
        """
        return self.how.format(epsilon=format_limit(epsilon), wide_epsilon=format_limit(wide_epsilon))

    def missing(self, inputs: StudyInputs) -> tuple[str, ...]:
        """Names of needs that are not met."""
        return tuple(need for need in self.needs if inputs.missing(need))

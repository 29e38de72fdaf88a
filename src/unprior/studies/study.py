"""What a study is: a question of the paper, what it needs, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from unprior.studies.common.variants import spc_name
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult
from unprior.tables.format import format_limit, format_list

QUESTIONS = {
    "rq1": "Do errors converge on the answer that the prior favours?",
    "rq2": "How much does SPC repair, and what does it retain, beside other methods?",
    "rq3": "What does each part of SPC contribute?",
    "rq4": "Does SPC generalise?",
    "rq5": "Where does correction by the prior end?",
    "beyond": "What goes beyond the paper?",
}
"""The research questions of the paper, and what is not in it."""


@dataclass(frozen=True, slots=True)
class Study:
    """One experiment: one table, and a figure where the paper has one."""

    name: str
    """As the command line calls it, and as its files are called."""
    title: str
    asks: str
    """The question it answers, in one sentence."""
    how: str
    """How the numbers are computed; what stands in braces is filled in by ``explained``."""
    run: Callable[[StudyInputs], StudyResult]
    needs: tuple[str, ...] = ("scores",)
    """Names of ``unprior.studies.inputs.NEEDS`` without which there is no result."""
    wants: tuple[str, ...] = ()
    """Names of ``NEEDS`` that add to the result where they are met."""
    takes_open: bool = False
    """Whether open questions belong to it; otherwise it is about questions with options alone."""
    label: str = ""
    """The label of its table in the paper, such as ``tab:main``; by default made of the name."""
    figure: str = ""
    """The label of its figure in the paper, such as ``fig:rq1-matrix``; by default made of the name."""
    question: str = ""
    """A key of ``QUESTIONS``; the registry takes it from the study's folder."""

    @property
    def latex_label(self) -> str:
        """The label of its table in LaTeX."""
        return self.label or f"tab:{self.name}"

    @property
    def figure_label(self) -> str:
        """The label of its figure in LaTeX, where it has one."""
        return self.figure or f"fig:{self.name}"

    def explained(self, epsilon: float = 0.04, wide_epsilon: float = 0.10, *, uncertainty: bool = False) -> str:
        """How the numbers are computed, for the version of SPC under study and its limits of commonsense loss.

        ``{epsilon}`` and ``{wide_epsilon}`` stand for the limits, ``{method}`` and ``{wide_method}`` for the version
        under study with each, ``{versions}`` for all that :func:`~unprior.studies.common.versions.spc_versions` lists.

        >>> from unprior.studies.registry import STUDIES
        >>> STUDIES["main-comparison"].explained(0.1, uncertainty=True)[:33]
        'SPC (uncertainty-aware, ε = 0.10)'
        """
        method, wide_method = (spc_name(limit, uncertainty=uncertainty) for limit in (epsilon, wide_epsilon))
        versions = dict.fromkeys((method, wide_method, spc_name(wide_epsilon, uncertainty=True)))
        limits = {"epsilon": format_limit(epsilon), "wide_epsilon": format_limit(wide_epsilon)}
        return self.how.format(**limits, method=method, wide_method=wide_method, versions=format_list(list(versions)))

    def record(self, runs: Sequence[StudyInputs] = ()) -> dict[str, Any]:
        """Plain values; ``ready`` says whether these runs have all it needs, and is None without any."""
        ready = not any(self.missing(inputs) for inputs in runs) if runs else None
        told = {"name": self.name, "question": self.question, "title": self.title}
        return {**told, "needs": list(self.needs), "ready": ready}

    def missing(self, inputs: StudyInputs, *, wanted: bool = False) -> tuple[str, ...]:
        """Names of needs that are not met; ``wanted`` includes those that only add to the result."""
        return tuple(need for need in (*self.needs, *(self.wants if wanted else ())) if inputs.missing(need))

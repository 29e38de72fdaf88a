"""All studies by name, in the order of the paper; a new study is one file and one line here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module

from unprior.errors import UnpriorError, did_you_mean
from unprior.scores import ScoreTable
from unprior.studies.study import QUESTIONS, Study

_FILES = (
    "rq1.attraction",
    "rq2.main_comparison",
    "rq2.methods",
    "rq2.revis_direction",
    "rq2.significance",
    "rq2.settings",
    "rq2.cost",
    "rq3.components",
    "rq3.prior_controls",
    "rq3.alternative_priors",
    "rq3.prior_agreement",
    "rq3.paired_fitting",
    "rq3.score_normalization",
    "rq3.repairs",
    "rq3.frontier",
    "rq3.revision_rules",
    "rq3.less_or_shifted",
    "rq3.strengths",
    "rq3.support_conditions",
    "rq3.development_size",
    "rq3.joint_fitting",
    "rq3.stable_ranges",
    "rq4.held_out:CATEGORIES",
    "rq4.held_out:SUBCATEGORIES",
    "rq4.repeated_splits",
    "rq4.option_orders",
    "rq4.external",
    "rq4.transfer",
    "rq5.answer_directions",
    "rq5.claim_order",
    "rq5.prior_direction",
    "rq5.question_forms",
    "rq5.prior_favours_ordinary",
    "rq5.image_free_policies",
    "beyond.promises",
    "beyond.certified_retention",
    "beyond.prior_trust",
    "beyond.stable_prior",
    "beyond.open_answers",
)


def _load(place: str) -> Study:
    module, _, name = place.partition(":")
    study: Study = getattr(import_module(f"unprior.studies.{module}"), name or "STUDY")
    return replace(study, question=module.partition(".")[0])


STUDIES: dict[str, Study] = {study.name: study for study in map(_load, _FILES)}
"""Every study."""

PRESETS = {
    "run": (
        "main-comparison", "promises", "attraction", "components", "methods", "frontier", "strengths", "stable-ranges",
    )
}  # fmt: skip
"""Studies that belong together; ``run`` is what `unprior run` shows."""


def studies_of_run(*tables: ScoreTable) -> tuple[Study, ...]:
    """What `unprior run` shows: the preset, without what is about options where there are none, and open answers.

    >>> from unprior import synthesize
    >>> asked = synthesize(seed=0, open_questions=True)
    >>> studies_of_run(asked)[-1].name, [study.name for study in studies_of_run(asked.where(task="open"))]
    ('open-answers', ['main-comparison', 'promises', 'attraction', 'open-answers'])
    """
    preset = tuple(STUDIES[name] for name in PRESETS["run"])
    if all(table.is_open.all() for table in tables):
        preset = tuple(study for study in preset if study.takes_open)
    return (*preset, STUDIES["open-answers"]) if any(table.is_open.any() for table in tables) else preset


def choose_studies(names: Sequence[str]) -> tuple[Study, ...]:
    """Studies by name, by research question, or all; in the order of the paper.

    >>> [study.name for study in choose_studies(["rq1"])]
    ['attraction']
    """
    questions = [question for question in QUESTIONS if any(study.question == question for study in STUDIES.values())]
    known = ("all", *questions, *STUDIES)
    for name in names:
        if name not in known:
            choice = f"choose all, {', '.join(questions)}, or some of {', '.join(STUDIES)}"
            if name in QUESTIONS:
                raise UnpriorError(f"no study answers {name!r} ({QUESTIONS[name]}) so far; {choice}")
            raise UnpriorError(f"no study {name!r}{did_you_mean(name, known)}; {choice}")
    return tuple(study for study in STUDIES.values() if {"all", study.question, study.name} & set(names))

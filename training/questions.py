"""What the embedded model is asked while it learns: any question of the microworld, with its answer."""

from __future__ import annotations

import random
from dataclasses import dataclass
from string import ascii_uppercase

from recipe import Recipe
from unprior.benchmarks.forms import FORMS
from unprior.benchmarks.microworld.benchmark import presence_question
from unprior.benchmarks.microworld.concepts import Concept
from unprior.benchmarks.microworld.options import OPTION_COUNTS, distractors, draw_options
from unprior.benchmarks.microworld.world import CONCEPTS, OBJECTS, absent_objects
from unprior.prompts import YES_NO, PromptLayout

CAPTION_REQUEST = "Describe the image."
LETTERS = ascii_uppercase[: max(OPTION_COUNTS)]
_LAYOUT = PromptLayout()
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True, slots=True)
class Lesson:
    """One question with its answer."""

    concept: int
    state: int
    """What is the case; also in a lesson without an image, where it was drawn from the prior."""
    kind: str
    text: str
    """The user's turn."""
    answer: str
    options: tuple[str, ...] = ()
    """The options of a choice, in order; the training-only loss asks at each whether it is true."""


def draw_lesson(
    rng: random.Random, recipe: Recipe, ordinary_share: dict[str, float] | float, *, without_image: bool = False
) -> Lesson:
    """A random question about a random concept, ordinary with the given probability.

    Whether a thing is there has no ordinary answer, so presence questions are about balanced states.
    """
    place = rng.randrange(len(CONCEPTS))
    concept = CONCEPTS[place]
    kind = rng.choices(tuple(recipe.shares), tuple(recipe.shares.values()))[0]
    share = ordinary_share if isinstance(ordinary_share, float) else ordinary_share[concept.name]
    share = recipe.balanced_share if kind == "presence" else share
    state = 0 if rng.random() < share else rng.randrange(1, len(concept.states))
    options: tuple[str, ...] = ()
    if kind == "choice":
        count = rng.choices(OPTION_COUNTS, recipe.option_count_weights)[0]
        options = draw_options(concept, state or rng.randrange(1, len(concept.states)), count, rng)
        answer = LETTERS[options.index(concept.states[state])]
        text = _LAYOUT.user_text(concept.question, LETTERS[:count], options)
    elif kind == "open":
        text, answer = _LAYOUT.user_text(concept.question, (), None), concept.states[state]
        if answer[0].isdigit() and rng.random() < recipe.number_words:
            answer = in_words(answer)
    elif kind == "caption":
        text, answer = CAPTION_REQUEST, concept.caption.format(state=concept.states[state])
    else:
        question, truth = _yes_no(rng, concept, state, kind, without_image)
        text, answer = _LAYOUT.user_text(question, YES_NO, None), "yes" if truth else "no"
    if kind != "caption" and rng.random() < recipe.final_answer_line:
        text += _LAYOUT.scoring_suffix
    return Lesson(place, state, kind, text, answer, options)


def in_words(counted: str) -> str:
    """A counted state with its number in words.

    >>> in_words("6 fingers")
    'six fingers'
    """
    return _NUMBER_WORDS[int(counted[0])] + counted[1:]


def _yes_no(rng: random.Random, concept: Concept, state: int, kind: str, without_image: bool) -> tuple[str, bool]:
    if kind == "presence":
        there = rng.random() < 0.5
        return presence_question(rng.choice(concept.objects if there else absent_objects(concept))), there
    # The other claim is what the image shows, if that is not the ordinary state; sometimes a third state.
    other = state if state and rng.random() < 0.85 else rng.randrange(1, len(concept.states))
    first, second = 0, other
    if kind == "reversed-claim" or (kind == "form" and rng.random() < 0.5):
        first, second = other, 0
    if kind == "form":
        # The form that SPC is fitted on is the commonest, as plain wording is in the world. What to presume in the form
        # “choice” is the hardest to learn.
        form = rng.choices(tuple(FORMS), (3, 2, 4, 2) if without_image else (4, 2, 2, 2))[0]
        question = FORMS[form].format(
            question=concept.question, first=concept.states[first], second=concept.states[second]
        )
    else:
        question = concept.claim.format(first=concept.states[first], second=concept.states[second])
    return question, state == first


def all_texts() -> list[str]:
    """Every sentence of the world once, for the tokenizer."""
    texts = []
    for concept in CONCEPTS:
        options = (*concept.states, *distractors(concept)[:2])
        texts.append(_LAYOUT.user_text(concept.question, LETTERS, options) + _LAYOUT.scoring_suffix)
        for state in concept.states:
            texts += [in_words(state)] if state[0].isdigit() else []
            texts.append(concept.caption.format(state=state))
            texts.append(concept.claim.format(first=concept.ordinary, second=state))
            texts += [
                form.format(question=concept.question, first=concept.ordinary, second=state) for form in FORMS.values()
            ]
    return texts + [presence_question(name) for name in OBJECTS]

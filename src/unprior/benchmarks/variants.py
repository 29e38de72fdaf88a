"""Constructed tests: options in another order or left out, the two claims in both orders and four question forms."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from unprior.benchmarks.aliases import aliases_of
from unprior.benchmarks.entry import Variant
from unprior.benchmarks.forms import CLAIM_ORDERS, FITTED_FORM, FORMS, ask_claim
from unprior.benchmarks.schema import OPEN, Benchmark, Example
from unprior.errors import UnpriorError
from unprior.prompts import YES_NO

GIVEN = "given"
"""The variant of open questions whose possible answers are known."""
OPTION_ORDERS: tuple[tuple[int, ...], ...] = ((1, 2, 3, 0), (2, 3, 0, 1), (3, 2, 1, 0))
"""The paper's three orders: which old option stands at each new place."""
_CLOSING = re.compile(
    r"(?<=[.?!])\s+(?:choose|select|pick) (?:one|the (?:best|correct|right) (?:answer|one|option))[.!]?\s*$",
    re.IGNORECASE,
)
_SPEAKS_OF_OPTIONS = re.compile(
    r"\b(?:options?|choices|alternatives|statements?|of the following|(?:which|what|best|correct) description|"
    r"what is true)\b",
    re.IGNORECASE,
)


class Claims(NamedTuple):
    """The two answers that exclude each other."""

    ordinary: str
    atypical: str


def reorder_options(benchmark: Benchmark, order: tuple[int, ...]) -> Benchmark:
    """The multiple-choice questions with their options in another order, the labels moved along.

    >>> from pathlib import Path
    >>> one = Example("1", Path("a.png"), "How many?", "mc", tuple("ABCD"), ("two", "three", "four", "five"), "A")
    >>> moved = reorder_options(Benchmark("mine", [one]), (1, 2, 3, 0)).examples[0]
    >>> moved.texts, moved.answer
    (('three', 'four', 'five', 'two'), 'D')
    """
    examples = []
    for example in _choices(benchmark):
        if example.texts is None or len(example.texts) != len(order):
            raise UnpriorError(
                f"benchmark {benchmark.name}: example {example.example_id} does not have {len(order)} options that can "
                f"change places"
            )
        texts = tuple(example.texts[old] for old in order)
        answer = None
        if example.answer is not None:
            answer = example.labels[order.index(example.labels.index(example.answer))]
        examples.append(replace(example, texts=texts, answer=answer))
    return benchmark.with_examples(examples)


def ask_claims(
    benchmark: Benchmark,
    forms: Iterable[str] = tuple(FORMS),
    orders: Iterable[str] = CLAIM_ORDERS,
    claims: Mapping[int | str, Claims] | None = None,
) -> Benchmark:
    """Yes/no questions from the multiple-choice ones: is it the one answer rather than the other?

    The ordinary claim is the option that is right on the commonsense image, the atypical one that of the
    counterfactual image. “Yes” is right when the first claim is what the image shows.

    Parameters
    ----------
    benchmark
        Pairs with a multiple-choice question for both images.
    forms, orders
        Which question forms and claim orders to ask; all of them by default.
    claims
        The answers of pairs whose labels do not tell them apart.
    """
    forms, orders = tuple(forms), tuple(orders)
    found = _claims(benchmark, claims or {})
    examples = []
    for example in _choices(benchmark):
        if example.pair_id not in found:
            raise UnpriorError(
                f"benchmark {benchmark.name}: example {example.example_id} has no pair to make claims of"
            )
        ordinary, atypical = found[example.pair_id]
        for form in forms:
            for order in orders:
                supported = (example.side == "cs") == (order == "ordinary-first")
                examples.append(
                    replace(
                        example,
                        example_id=f"{example.pair_id}-{example.side}-{form}-{order}",
                        question=ask_claim(form, example.question, ordinary, atypical, order),
                        task="qa",
                        labels=YES_NO,
                        texts=None,
                        answer="yes" if supported else "no",
                        instruction=None,
                        form=form,
                        claim_order=order,
                        claims=(ordinary, atypical) if order == "ordinary-first" else (atypical, ordinary),
                        open_question=example.question,
                    )
                )
    return benchmark.with_examples(examples)


def ask_openly(benchmark: Benchmark, claims: Mapping[int | str, Claims] | None = None) -> Benchmark:
    """The multiple-choice questions without their options; the right answer is the text of the right option.

    A closing “Choose one.” is left out. Questions that speak of their options (“which of the following”), or list them
    themselves, make no sense without them and are left out whole. The synonyms of the benchmark's card, and short forms
    such as the bare number of a counted answer, are aliases.

    Parameters
    ----------
    benchmark
        Multiple-choice questions, of pairs or not.
    claims
        The answers of pairs whose labels do not tell them apart.

    >>> from pathlib import Path
    >>> one = Example("1-mc", Path("a.png"), "How many legs? Choose one.", "mc", ("A", "B"), ("2 legs", "4 legs"), "B")
    >>> asked = ask_openly(Benchmark("mine", [one])).examples[0]
    >>> asked.question, asked.answer, asked.aliases
    ('How many legs?', '4 legs', ('4',))
    """
    synonyms = () if benchmark.card is None else benchmark.card.synonyms
    given = claims or {}
    examples = []
    taken = {example.example_id for example in benchmark}
    for example in _choices(benchmark):
        question = _CLOSING.sub("", example.question)
        if example.texts is None or _SPEAKS_OF_OPTIONS.search(question):
            continue
        answer = None if example.answer is None else example.texts[example.labels.index(example.answer)]
        if example.pair_id is not None and example.pair_id in given:
            answer = given[example.pair_id].atypical if example.side == "cf" else given[example.pair_id].ordinary
        examples.append(
            replace(
                example,
                example_id=_new_id(example.example_id.removesuffix("-mc"), taken),
                question=question,
                task=OPEN,
                labels=(),
                texts=None,
                answer=answer,
                instruction=None,
                aliases=() if answer is None else aliases_of(question, answer, example.texts, synonyms),
            )
        )
    if not examples:
        raise UnpriorError(
            f"benchmark {benchmark.name}: all questions speak of their options; none can be asked openly"
        )
    return benchmark.with_examples(examples)


def _new_id(name: str, taken: set[str]) -> str:
    """The name of an open question, which no other example has.

    >>> taken = {"1-open"}
    >>> _new_id("1", taken), _new_id("2", taken)
    ('1-open-2', '2-open')
    """
    numbered = (f"{name}-{OPEN}{more}" for more in ("", *(f"-{number}" for number in range(2, len(taken) + 3))))
    found = next(each for each in numbered if each not in taken)
    taken.add(found)
    return found


def ask_given(benchmark: Benchmark, claims: Mapping[int | str, Claims] | None = None) -> Benchmark:
    """The open questions with the texts of the options as their only candidates, which the model is not shown.

    What SPC could do with open answers if it knew the possible ones.
    """
    texts = {(each.pair_id, each.side, each.image, each.line): each.texts or () for each in _choices(benchmark)}
    return benchmark.with_examples(
        [
            replace(each, given=tuple(dict.fromkeys(texts[each.pair_id, each.side, each.image, each.line])))
            for each in ask_openly(benchmark, claims)
        ]
    )


def constructed(claims: Mapping[int | str, Claims] | None = None) -> dict[str, Variant]:
    """The paper's constructed tests for a benchmark of pairs with four options, and the same as open questions.

    >>> list(constructed())[:5], list(constructed())[-2:]
    (['order-1230', 'order-2301', 'order-3210', 'claim-order', 'forms'], ['open', 'given'])
    """
    variants = {
        f"order-{''.join(map(str, order))}": Variant(
            f"the options in the order {', '.join('ABCD'[old] for old in order)}",
            lambda benchmark, order=order: reorder_options(benchmark, order),  # type: ignore[misc]
        )
        for order in OPTION_ORDERS
    }

    def asked(about: str, forms: Collection[str], orders: Collection[str]) -> Variant:
        return Variant(about, lambda benchmark: ask_claims(benchmark, forms, orders, claims))

    variants["claim-order"] = asked(f"both claim orders in the {FITTED_FORM} form", [FITTED_FORM], CLAIM_ORDERS)
    variants["forms"] = asked("all four question forms in both claim orders", FORMS, CLAIM_ORDERS)
    for form in FORMS:
        for order in CLAIM_ORDERS:
            variants[f"{form}-{order}"] = asked(
                f"the {form} form, {order.replace('-first', '')} claim first", [form], [order]
            )
    variants[OPEN] = Variant(
        "the choices without options, answered in the model's own words; questions that speak of options are left out",
        lambda benchmark: ask_openly(benchmark, claims),
    )
    variants[GIVEN] = Variant(
        "the open questions, with the texts of the options as candidates that the model is not shown",
        lambda benchmark: ask_given(benchmark, claims),
    )
    return variants


def relabelled(pairs: Collection[int | str]) -> Variant:
    """Yes/no labels of some pairs exchanged, where the published ones are the wrong way round."""
    other = {"yes": "no", "no": "yes"}

    def make(benchmark: Benchmark) -> Benchmark:
        return benchmark.with_examples(
            [
                replace(example, answer=other[str(example.answer)])
                if example.task == "qa" and example.pair_id in pairs
                else example
                for example in benchmark
            ]
        )

    return Variant(f"the yes/no labels of {len(pairs)} pairs exchanged, which are published the wrong way round", make)


def _choices(benchmark: Benchmark) -> list[Example]:
    choices = [example for example in benchmark if example.task == "mc"]
    if not choices:
        raise UnpriorError(
            f"benchmark {benchmark.name} has no multiple-choice questions to make this variant of; choose "
            f"another variant or task, or add questions with options"
        )
    return choices


def _claims(benchmark: Benchmark, given: Mapping[int | str, Claims]) -> dict[int | str | None, Claims]:
    """The ordinary and the atypical answer of every pair, from the right options of its two sides."""
    right: dict[int | str | None, dict[str, str]] = {}
    for example in _choices(benchmark):
        if example.pair_id is None or example.texts is None or example.answer is None or example.side is None:
            continue
        text = example.texts[example.labels.index(example.answer)]
        right.setdefault(example.pair_id, {})[example.side] = text
    found: dict[int | str | None, Claims] = {}
    for pair, texts in right.items():
        claims = given.get(pair) if pair is not None else None
        if claims is None and len(texts) == 2:
            claims = Claims(ordinary=texts["cs"], atypical=texts["cf"])
        if claims is None:
            continue
        if claims.ordinary == claims.atypical:
            raise UnpriorError(
                f"benchmark {benchmark.name}: both images of pair {pair} have the answer {claims.ordinary!r}, so there "
                f"are no two claims to ask about"
            )
        found[pair] = claims
    return found

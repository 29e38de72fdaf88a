"""The search for whole answers against exhaustive enumeration, on small made-up distributions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from unprior.engines.transformers.beam_search import Found, Width, search_answers

WORDS = (0, 1, 2, 3)
END, OTHER_END, CONTROL = 4, 5, 6
SIZE = 8  # the last token is one that the tokenizer does not know
ALLOWED = torch.tensor([token in WORDS for token in range(SIZE - 1)])
LONGEST = 3

Tokens = tuple[int, ...]


@dataclass
class Tabled:
    """A model whose next token depends on all before it, by chance."""

    seeds: list[int]
    """One per row."""
    peak: float = 1.0
    hopes: float = 0.0
    """Added to the logits of the end."""
    steps: int = 0
    most: int = 0
    """Most beams at once."""
    beams: list[tuple[int, Tokens]] = field(init=False)

    def __post_init__(self) -> None:
        self.beams = [(seed, ()) for seed in self.seeds]

    def distribution(self, seed: int, tokens: Tokens) -> torch.Tensor:
        logits = self.peak * np.random.default_rng([seed, *tokens, len(tokens)]).normal(size=SIZE)
        logits[END] += self.hopes
        return torch.log_softmax(torch.tensor(logits), dim=-1)

    def log_probabilities(self) -> torch.Tensor:
        self.most = max(self.most, len(self.beams))
        return torch.stack([self.distribution(*beam) for beam in self.beams])

    def follow(self, parents: list[int], tokens: list[int]) -> None:
        self.steps += 1
        self.beams = [
            (self.beams[parent][0], (*self.beams[parent][1], token))
            for parent, token in zip(parents, tokens, strict=True)
        ]

    def score(self, seed: int, tokens: Tokens, end: int) -> float:
        whole = (*tokens, end)
        return sum(float(self.distribution(seed, whole[:place])[token]) for place, token in enumerate(whole))


def spelled(_row: int, tokens: Tokens) -> str | None:
    return "".join("abcd"[token] for token in tokens) or None


def width(count: int, *ends: int, most: int = LONGEST) -> Width:
    return Width(count, most, ends or (END,), ALLOWED)


def everything(model: Tabled, seed: int, ends: Tokens = (END,), most: int = LONGEST) -> list[tuple[float, Tokens]]:
    """All answers, by the score with their best end."""
    answers = [tokens for length in range(1, most + 1) for tokens in itertools.product(WORDS, repeat=length)]
    return sorted(((max(model.score(seed, each, end) for end in ends), each) for each in answers), reverse=True)


def plain_beam_search(model: Tabled, seed: int, count: int) -> list[Tokens]:
    """Nothing is given up early."""
    running, ended = [(0.0, ())], []
    for _ in range(LONGEST):
        longer = [
            (score + float(model.distribution(seed, tokens)[token]), (*tokens, token))
            for score, tokens in running
            for token in WORDS
        ]
        running = sorted(longer, reverse=True)[:count]
        ended += [(score + float(model.distribution(seed, tokens)[END]), tokens) for score, tokens in running]
    return [tokens for _, tokens in sorted(ended, reverse=True)[:count]]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ends", [(END,), (END, OTHER_END)])
def test_a_search_that_can_hold_everything_finds_the_best_answers(seed: int, ends: Tokens) -> None:
    model = Tabled([seed], hopes=-1.0)
    count = len(WORDS) ** LONGEST
    found = search_answers(model, 1, width(count, *ends), spelled)[0]
    best = everything(model, seed, ends)[:count]
    assert [each.tokens for each in found] == [tokens for _, tokens in best]
    for each in found:
        assert each.score == pytest.approx(model.score(seed, each.tokens, END), abs=1e-9)
        assert each.text == spelled(0, each.tokens)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_given_up_early_would_not_have_been_found(seed: int, count: int) -> None:
    for hopes in (-2.0, 0.0, 2.0):
        model = Tabled([seed], peak=2.0, hopes=hopes)
        found = search_answers(model, 1, width(count), spelled)[0]
        assert [each.tokens for each in found] == plain_beam_search(model, seed, count)
        assert model.most <= count


def test_a_search_ends_when_no_beam_can_win() -> None:
    sure, unsure = (Tabled([0], hopes=hopes) for hopes in (4.0, -60.0))
    for model in (sure, unsure):
        search_answers(model, 1, width(3, most=20), spelled)
    assert sure.steps < 4
    assert unsure.steps == 20


def test_rows_do_not_know_of_each_other() -> None:
    seeds = [3, 1, 4, 1]
    together = Tabled(seeds, peak=2.0)
    found = search_answers(together, len(seeds), width(3), spelled)
    for seed, answers in zip(seeds, found, strict=True):
        assert answers == search_answers(Tabled([seed], peak=2.0), 1, width(3), spelled)[0]
    assert together.most <= 3 * len(seeds)


def test_one_text_is_found_once_with_its_best_tokens() -> None:
    """The first two tokens are written alike."""

    def alike(_row: int, tokens: Tokens) -> str | None:
        return "".join("aacd"[token] for token in tokens) or None

    model, count = Tabled([2]), 200
    found = search_answers(model, 1, width(count), alike)[0]
    best: dict[str, tuple[float, Tokens]] = {}
    for score, tokens in everything(model, 2):
        best.setdefault(str(alike(0, tokens)), (score, tokens))
    assert [(each.text, each.tokens) for each in found] == [(text, tokens) for text, (_, tokens) in best.items()]


def test_answers_that_are_not_accepted_leave_their_place_to_others() -> None:
    def without_a(row: int, tokens: Tokens) -> str | None:
        return None if 0 in tokens else spelled(row, tokens)

    model = Tabled([5])
    found = search_answers(model, 1, width(64), without_a)[0]
    assert [each.tokens for each in found] == [tokens for _, tokens in everything(model, 5) if 0 not in tokens]
    assert search_answers(model, 1, width(64), lambda *_: None) == [[]]


def test_without_room_nothing_is_found() -> None:
    model = Tabled([0])
    assert search_answers(model, 1, width(3, most=0), spelled) == [[]]
    assert model.steps == 0


def test_what_is_impossible_is_not_tried() -> None:
    class OneWay(Tabled):
        def distribution(self, seed: int, tokens: Tokens) -> torch.Tensor:
            values = torch.full((SIZE,), -math.inf, dtype=torch.float64)
            values[[1, END, CONTROL]] = math.log(1 / 3)
            return values

    found = search_answers(OneWay([0]), 1, width(5), spelled)[0]
    expected = [Found("b" * n, (1,) * n, pytest.approx((n + 1) * math.log(1 / 3))) for n in (1, 2, 3)]
    assert found == expected

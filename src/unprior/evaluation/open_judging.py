"""Raw answers to open questions: each is brought to the right answer it is a form of, by exact match or by a judge."""

from __future__ import annotations

from collections.abc import Iterable

from unprior.answer_forms import is_accepted, normalize_answer, read_open_answer
from unprior.benchmarks.schema import Example
from unprior.scores.judge import Judge, ask_judge, judge_name


class OpenJudging:
    """Reads the answers to some open questions; what it counts is about those that it has read.

    Parameters
    ----------
    examples
        The open questions, with their right answers; the two sides of a pair know the right answer of the other.
    judge
        Asked about answers that are neither empty nor a form of a right one; None: exact match alone.
    thinking
        Whether the answers are those of a thinking model.

    >>> from pathlib import Path
    >>> one = Example("1", Path("a.png"), "How many fingers?", "open", (), answer="6 fingers", aliases=("6",))
    >>> reading = OpenJudging([one])
    >>> reading.label(one, "Six."), reading.label(one, "5 fingers"), reading.label(one, " ")
    ('6 fingers', '5 fingers', None)
    """

    def __init__(self, examples: Iterable[Example], judge: Judge | None = None, *, thinking: bool = False) -> None:
        """Remember which right answers belong together."""
        self.judge, self.thinking = judge, thinking
        self.asked = self.accepted = 0
        """Answers that the judge was asked about, and those that it accepted."""
        self._together: dict[tuple[object, str], list[Example]] = {}
        for example in examples:
            self._together.setdefault((example.pair_id, example.question), []).append(example)

    @property
    def name(self) -> str | None:
        """What the judge is called; None without one."""
        return None if self.judge is None else judge_name(self.judge)

    def label(self, example: Example, text: str | None) -> str | None:
        """The right answer, that of the pair's other side, or the text itself; None where there is none."""
        given = None if text is None else read_open_answer(text, thinking=self.thinking)
        if given is None:
            return None
        if is_accepted(given, str(example.answer), example.aliases) or self._is_accepted(example, given.strip()):
            return example.answer
        others = (each.answer for each in self._others(example) if is_accepted(given, str(each.answer), each.aliases))
        return next(others, given.strip())

    def candidates(self, example: Example, label: str | None) -> list[str]:
        """What a table of such answers offers: the right answers of the pair and what was answered, each once."""
        texts = list(dict.fromkeys([str(example.answer), *(str(each.answer) for each in self._others(example))]))
        if label is not None and label not in texts:
            texts.append(label)
        return texts if len(texts) > 1 else [*texts, f"not {texts[0]}"]  # a table wants two

    def _others(self, example: Example) -> list[Example]:
        if example.pair_id is None:
            return []
        together, own = self._together[example.pair_id, example.question], normalize_answer(str(example.answer))
        return [each for each in together if each.side != example.side and normalize_answer(str(each.answer)) != own]

    def _is_accepted(self, example: Example, text: str) -> bool:
        if self.judge is None:
            return False
        verdict = ask_judge(self.judge, text, str(example.answer), example.aliases, example.question)
        self.asked += 1
        self.accepted += verdict
        return verdict

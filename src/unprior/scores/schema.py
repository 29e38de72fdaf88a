"""The columns of a score table and the checks that every row must pass."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from unprior.answer_forms import normalize_answer
from unprior.prompts import YES_NO

SIDES = ("cf", "cs")
OPEN = "open"
"""The task of questions without options: candidates come from the model itself."""
_TASK = r"^[a-z][a-z0-9_-]{0,31}$"

_INT64 = 2**63
MAX_SCORE = 1e6
"""Beyond it, centring would lose the differences between scores."""
NO_ANSWER = -1
"""Position of an answer that there is none of, or that is not known."""
OTHER_ANSWER = -2
"""Position of an answer that is not among the candidates."""
OTHER_RIGHT_ANSWER = -3
"""Position of a given answer that is not among the candidates of an open question, and is right."""
OTHER_ORDINARY_ANSWER = -4
"""Position of a wrong answer that is not among the candidates, and is right on the commonsense image of the pair."""


def _encodable(text: str) -> str:
    """JSON can spell half of a character (a lone surrogate), which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("has a character that is not valid Unicode") from None
    return text


Text = Annotated[str, AfterValidator(_encodable)]


def _number_as_text(value: Any) -> Any:
    """An answer such as 5 is meant as it is written; true and false are no numbers."""
    return json.dumps(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Name = Annotated[Text, BeforeValidator(_number_as_text)]
"""Text that a file may also hold as a number: answers, candidates, names of examples."""


def _check_task(name: str) -> str:
    if re.match(_TASK, name) is None:
        raise ValueError("must be mc, qa or another short name of small letters and digits")
    return name


class ScoreRow(BaseModel):
    """One example: an image, a question, its candidates and their scores with and without the image.

    >>> ScoreRow.model_validate({
    ...     "pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"],
    ...     "image_scores": [-0.3, -1.4], "prior_scores": [-0.1, -2.4], "original": "yes", "answer": "no",
    ... }).side
    'cf'
    """

    model_config = ConfigDict(strict=True, extra="ignore")

    model: Text | None = None
    """The vision-language model that was scored."""
    benchmark: Text | None = None
    """Where the question comes from."""
    pair_id: int | Text
    """The pair of a counterfactual and a commonsense image."""
    side: Literal["cf", "cs"] | None = None
    """Counterfactual (``cf``) or commonsense (``cs``) image; null where images are not paired."""
    task: Annotated[str, AfterValidator(_check_task)]
    """Multiple choice (``mc``), yes/no (``qa``), an open question (``open``), or a short name of your own; limits are
    kept in every task."""
    category: Text | None = None
    """Broad category of the pair; never seen by the method."""
    subcategory: Text | None = None
    """Subcategory of the pair; never seen by the method."""
    split: Text | None = None
    """``dev`` for fitting and selection, ``test`` for evaluation."""
    candidates: list[Name]
    """The possible answers, in file order; ties go to the first. Of an open question: answers that the model proposes;
    written forms of one answer are merged on the way in (:mod:`unprior.scores.open_rows`)."""
    image_scores: list[float]
    """Summed token log-probability of each candidate given image and question."""
    prior_scores: list[float]
    """The same without the image."""
    original: Name | None
    """The model's own answer, one of the candidates; null when nothing could be parsed."""
    answer: Name | None = None
    """The visually correct candidate; may be missing only where it is not needed (``apply``). Of an open question it
    is a text that need not be among the candidates."""
    views: dict[Text, list[float]] | None = None
    """Other estimates of the prior scores, and scores of the same claims asked in another way, by name."""
    original_text: Text | None = None
    """What the model wrote before parsing."""
    token_counts: list[Annotated[int, Field(ge=0, lt=_INT64)]] | None = None
    """Number of tokens of each candidate."""
    example_id: Name | None = None
    """A name of the example, when pair, side and task do not identify it."""
    censored: list[bool] | None = None
    """Candidates with a score, here or in the prior, that is only an upper bound; null when all are exact."""
    form: Text | None = None
    """Question form of a constructed question about two claims, such as ``contrastive``."""
    claim_order: Text | None = None
    """Which of its two claims comes first: ``ordinary-first`` or ``atypical-first``."""
    claims: list[Text] | None = None
    """The two answers that exclude each other, of a yes/no question; the one that “yes” stands for first."""
    aliases: list[Name] | None = None
    """Other texts that are right as well, of an open question."""
    sources: list[Text] | None = None
    """Who proposed each candidate of an open question: ``original``, ``text``, ``image``, joined by +."""
    matched: bool | None = None
    """False for a row of no matched pair, as from a log: ``pair_id`` then names what it was drawn with, its image."""


SCHEMA = pa.schema(
    [
        ("model", pa.string()),
        ("benchmark", pa.string()),
        ("pair_id", pa.string()),
        ("side", pa.string()),
        ("task", pa.string()),
        ("category", pa.string()),
        ("subcategory", pa.string()),
        ("split", pa.string()),
        ("candidates", pa.list_(pa.string())),
        ("image_scores", pa.list_(pa.float64())),
        ("prior_scores", pa.list_(pa.float64())),
        ("original", pa.string()),
        ("answer", pa.string()),
        ("views", pa.map_(pa.string(), pa.list_(pa.float64()))),
        ("original_text", pa.string()),
        ("token_counts", pa.list_(pa.int64())),
        ("example_id", pa.string()),
        ("censored", pa.list_(pa.bool_())),
        ("form", pa.string()),
        ("claim_order", pa.string()),
        ("claims", pa.list_(pa.string())),
        ("aliases", pa.list_(pa.string())),
        ("sources", pa.list_(pa.string())),
        ("matched", pa.bool_()),
    ]
)
"""Arrow types of the columns; ``pair_id`` may also be int64 and then stays a number."""

REQUIRED = ("pair_id", "task", "candidates", "image_scores", "prior_scores", "original")
_NEVER_NULL = tuple(name for name in REQUIRED if name != "original")

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
CodeArray = NDArray[np.int8]


def rows_to_arrow(rows: list[ScoreRow]) -> pa.Table:
    """Turn parsed rows into columns.

    >>> row = ScoreRow(pair_id=3, side="cs", task="qa", candidates=["yes", "no"], original=None,
    ...                image_scores=[0.0, -1.0], prior_scores=[0.0, -1.0], answer="yes")
    >>> rows_to_arrow([row]).column("pair_id").to_pylist()
    [3]
    """
    columns: dict[str, pa.Array] = {}
    for field in SCHEMA:
        values: list[Any] = [getattr(row, field.name) for row in rows]
        if field.name == "pair_id":
            columns["pair_id"] = _pair_id_column(values)
            continue
        if field.name == "views":
            values = [None if value is None else list(value.items()) for value in values]
        columns[field.name] = pa.array(values, type=field.type)
    return pa.table(columns)


def _pair_id_column(values: list[Any]) -> pa.Array:
    """Numbers stay numbers; a mixture becomes text."""
    if all(isinstance(value, int) and -_INT64 <= value < _INT64 for value in values):
        return pa.array(values, type=pa.int64())
    return pa.array([str(value) for value in values], type=pa.string())


def list_offsets(column: pa.ListArray) -> IntArray:
    """Start of every row in the flattened values (one more entry than rows), counted from 0.

    >>> list_offsets(pa.array([["a", "b"], ["c"]])).tolist()
    [0, 2, 3]
    """
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def position_in_row(column: pa.Array, candidates: pa.ListArray) -> IntArray:
    """Position of each row's value among that row's candidates: -1 for null, -2 for one that is none of them.

    >>> position_in_row(pa.array(["b", None, "x"]), pa.array([["a", "b"], ["a", "b"], ["a", "b"]])).tolist()
    [1, -1, -2]
    """
    offsets = list_offsets(candidates)
    row_of_value = np.repeat(np.arange(len(column)), np.diff(offsets))
    equal = pc.equal(candidates.flatten(), column.take(pa.array(row_of_value)))
    hits = np.flatnonzero(pc.fill_null(equal, False).to_numpy(zero_copy_only=False))
    position = np.where(pc.is_null(column).to_numpy(zero_copy_only=False), NO_ANSWER, OTHER_ANSWER)
    position = position.astype(np.int64)
    # Backwards, so that of two equal candidates (refused elsewhere) the first one is kept.
    position[row_of_value[hits[::-1]]] = hits[::-1] - offsets[row_of_value[hits[::-1]]]
    return position


def find_problems(table: pa.Table, *, require_answers: bool) -> dict[int, str]:
    """First reason why a row is invalid, by row position; valid rows do not appear.

    >>> row = ScoreRow(pair_id=1, side="cf", task="qa", candidates=["yes", "yes"], original=None,
    ...                image_scores=[0.0, -1.0], prior_scores=[0.0, -1.0], answer="yes")
    >>> find_problems(rows_to_arrow([row]), require_answers=True)
    {0: "candidate 'yes' appears twice"}
    """
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    checks = [_missing(columns[name], name) for name in _NEVER_NULL]
    checks += [_unknown(columns["side"], "side", SIDES), _unnamed(columns["task"])]
    is_open = open_rows(columns["task"])
    checks += _candidate_checks(columns["candidates"], is_open)
    counts = _lengths(columns["candidates"])
    checks += [_unequal(columns[name], name, counts) for name in ("image_scores", "prior_scores", "token_counts")]
    checks += [_not_counts(columns["token_counts"])]
    checks += [_unequal(columns[name], name, counts) for name in ("censored", "sources")]
    checks += [_unmarked(columns[name], name) for name in ("censored", "sources")]
    checks += [_unusable(columns[name], name) for name in ("image_scores", "prior_scores")]
    checks += [_view_problems(columns["views"], counts)]
    checks += _claim_checks(columns["claims"], columns["candidates"])
    checks += [_stranger(columns[name], name, columns["candidates"], ~is_open) for name in ("original", "answer")]
    checks += _open_checks(columns, is_open)
    if require_answers:
        checks.append(_missing(columns["answer"], "answer", " (fitting and evaluation need it)"))
    problems: dict[int, str] = {}
    for wrong, reason in checks:
        for row in np.flatnonzero(wrong).tolist():
            if row not in problems:
                problems[row] = reason(row)
    return problems


Check = tuple[BoolArray, Callable[[int], str]]
"""Which rows are wrong, and what to say of one of them."""


def _missing(column: pa.Array, name: str, why: str = "") -> Check:
    return _is_null(column), lambda _: f"{name} is missing{why}"


def _unknown(column: pa.Array, name: str, allowed: tuple[str, ...]) -> Check:
    known = pc.is_in(column, value_set=pa.array(allowed)).to_numpy(zero_copy_only=False)
    return ~(
        known | _is_null(column)
    ), lambda row: f"{name} is {column[row].as_py()!r}, expected {' or '.join(allowed)}"


def _unnamed(column: pa.Array) -> Check:
    named = pc.fill_null(pc.match_substring_regex(column, _TASK), True).to_numpy(zero_copy_only=False)
    return (
        ~named,
        lambda row: (
            f"task is {column[row].as_py()!r}, expected mc, qa or another short name of small letters and digits"
        ),
    )


def _unequal(column: pa.ListArray, name: str, counts: IntArray) -> Check:
    lengths = _lengths(column)
    wrong = ~_is_null(column) & (lengths != counts)
    return wrong, lambda row: f"{name} has {lengths[row]} values for {counts[row]} candidates"


def _not_counts(column: pa.ListArray) -> Check:
    values = column.flatten()
    negative = pc.fill_null(pc.less(values, 0), True).to_numpy(zero_copy_only=False)
    return _any_in_row(negative, list_offsets(column)), lambda _: "token_counts has a value that is missing or negative"


def _unmarked(column: pa.ListArray, name: str) -> Check:
    absent = _any_in_row(_is_null(column.flatten()), list_offsets(column))
    return absent, lambda _: f"{name} has a value that is missing"


def _unusable(column: pa.ListArray, name: str) -> Check:
    wrong = _any_in_row(_bad_scores(column.flatten()), list_offsets(column))
    return wrong, lambda row: f"{name} {_score_complaint(column[row].as_py())}"


def _stranger(column: pa.Array, name: str, candidates: pa.ListArray, rows: BoolArray) -> Check:
    wrong = rows & (position_in_row(column, candidates) == OTHER_ANSWER)
    return wrong, lambda row: f"{name} {column[row].as_py()!r} is not one of the candidates"


def open_rows(task: pa.Array | pa.ChunkedArray) -> BoolArray:
    """Which rows are open questions.

    >>> open_rows(pa.array(["mc", "open"])).tolist()
    [False, True]
    """
    mask: BoolArray = pc.fill_null(pc.equal(task, OPEN), False).to_numpy(zero_copy_only=False)
    return mask


def _open_checks(columns: Mapping[str, pa.Array], is_open: BoolArray) -> list[Check]:
    """What open questions must have; written forms of an answer are equal here."""
    aliases = columns["aliases"]
    given = _lengths(aliases) > 0
    checks: list[Check] = [(given & ~is_open, lambda _: f"aliases are for open questions, those of task {OPEN}")]
    if not is_open.any():
        return checks
    blank = {
        name: is_open & _any_in_row(_is_blank(columns[name].flatten()), list_offsets(columns[name]))
        for name in ("candidates", "aliases")
    }
    strange = np.zeros(len(is_open), dtype=np.bool_)
    read = np.flatnonzero(is_open & ~_is_null(columns["original"]) & ~blank["candidates"])
    originals, offered = (columns[name].take(pa.array(read)).to_pylist() for name in ("original", "candidates"))
    strange[read] = [
        normalize_answer(original) not in map(normalize_answer, texts or ())
        for original, texts in zip(originals, offered, strict=True)
    ]
    return [
        *checks,
        (blank["candidates"], lambda _: "a candidate is empty"),
        (blank["aliases"], lambda _: "an alias is empty"),
        (is_open & ~_is_null(columns["answer"]) & _is_blank(columns["answer"]), lambda _: "answer is empty"),
        (given & is_open & _is_null(columns["answer"]), lambda _: "there are aliases but no answer"),
        (strange, lambda row: f"original {columns['original'][row].as_py()!r} is no form of any candidate"),
    ]


def _is_blank(texts: pa.Array) -> BoolArray:
    blank: BoolArray = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(texts), ""), True).to_numpy(zero_copy_only=False)
    return blank


def _candidate_checks(candidates: pa.ListArray, is_open: BoolArray) -> list[Check]:
    counts, offsets = _lengths(candidates), list_offsets(candidates)
    encoded = candidates.flatten().dictionary_encode()
    codes = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    distinct = len(encoded.dictionary) + 1
    keys = np.sort(np.repeat(np.arange(len(candidates)), counts) * distinct + codes)
    twice = np.zeros(len(candidates), dtype=np.bool_)
    twice[keys[1:][keys[1:] == keys[:-1]] // distinct] = True
    has_null = _any_in_row(_is_null(candidates.flatten()), offsets)

    def first_repeated(row: int) -> str:
        names = candidates[row].as_py()
        return f"candidate {next(name for name in names if names.count(name) > 1)!r} appears twice"

    fewest = np.where(is_open, 1, 2)  # an open question may have a single answer, which is then kept
    return [
        (
            counts < fewest,
            lambda row: (
                f"K is {counts[row]}, at least {fewest[row]} candidate{'s are' if fewest[row] > 1 else ' is'} needed"
            ),
        ),
        (has_null, lambda _: "a candidate is null"),
        (twice & ~is_open, first_repeated),
    ]


def _view_problems(views: pa.MapArray, counts: IntArray) -> Check:
    # A map is a list of (key, value) structs; as such it can be flattened with its offsets.
    entries = views.cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.list_(pa.float64()))])))
    names, scores = entries.flatten().field("key"), entries.flatten().field("value")
    row_of_view = np.repeat(np.arange(len(views)), np.diff(list_offsets(entries)))
    lengths = _lengths(scores)
    unusable = _any_in_row(_bad_scores(scores.flatten()), list_offsets(scores))
    reasons: dict[int, str] = {}
    for view in np.flatnonzero((lengths != counts[row_of_view]) | unusable).tolist():
        row = int(row_of_view[view])
        if lengths[view] != counts[row]:
            what = f"has {lengths[view]} values for {counts[row]} candidates"
        else:
            what = _score_complaint(scores[view].as_py())
        reasons.setdefault(row, f"view {names[view]} {what}")
    wrong = np.zeros(len(views), dtype=np.bool_)
    wrong[list(reasons)] = True
    return wrong, reasons.__getitem__


def _claim_checks(claims: pa.ListArray, candidates: pa.ListArray) -> list[Check]:
    counts = _lengths(claims)
    return [
        (~_is_null(claims) & (counts != 2), lambda row: f"claims has {counts[row]} texts, two are needed"),
        (_any_in_row(_is_blank(claims.flatten()), list_offsets(claims)), lambda _: "a claim is empty"),
        (_in_two(claims, pc.equal), lambda row: f"both claims are {claims[row][0].as_py()!r}"),
        (
            ~_is_null(claims) & ~_in_two(candidates, _are_yes_no),
            lambda row: f"claims are for the candidates yes and no, in this order, not {candidates[row].as_py()}",
        ),
    ]


def _are_yes_no(first: pa.Array, second: pa.Array) -> pa.Array:
    return pc.and_(pc.equal(first, YES_NO[0]), pc.equal(second, YES_NO[1]))


def _in_two(column: pa.ListArray, holds: Callable[[pa.Array, pa.Array], pa.Array]) -> BoolArray:
    """Which rows have two values of which something holds."""
    texts, starts, two = column.flatten(), list_offsets(column)[:-1], _lengths(column) == 2
    first, second = (texts.take(pa.array(starts[two] + place)) for place in (0, 1))
    found = np.zeros(len(column), dtype=np.bool_)
    found[two] = pc.fill_null(holds(first, second), False).to_numpy(zero_copy_only=False)
    return found


def _is_null(column: pa.Array) -> BoolArray:
    mask: BoolArray = pc.is_null(column).to_numpy(zero_copy_only=False)
    return mask


def _lengths(column: pa.ListArray) -> IntArray:
    lengths: IntArray = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return lengths


def _bad_scores(values: pa.Array) -> BoolArray:
    """Not finite, or so large that differences between candidates drown in rounding.

    Nulls inside a list arrive as NaN and are as wrong as one.
    """
    scores = values.to_numpy(zero_copy_only=False).astype(np.float64)
    return np.asarray(~(np.abs(scores) <= MAX_SCORE))


def _score_complaint(scores: list[float | None]) -> str:
    if all(score is not None and math.isfinite(score) for score in scores):
        return f"has a value beyond ±{MAX_SCORE:g}, which is no log-probability"
    return "has a value that is not a finite number"


def _any_in_row(wrong: BoolArray, offsets: IntArray) -> BoolArray:
    totals = np.concatenate([[0], np.cumsum(wrong)])
    return np.asarray(totals[offsets[1:]] > totals[offsets[:-1]])

"""From a log of decisions to labels and back: what `unprior label` does."""

from __future__ import annotations

import json
import os
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from unprior._files import as_path, check_output_file, exists, refuse_overwriting, replacing
from unprior.errors import RowProblem, UnpriorError, format_names, format_option, warn
from unprior.images import pixel_digest
from unprior.scores.logged import derived_side, is_decision
from unprior.scores.schema import SIDES
from unprior.serving.errors import RequestError
from unprior.serving.images import ImageLimits, read_image
from unprior.serving.label_log import LogFile, LoggedExample, fate, read_log
from unprior.serving.label_page import label_page
from unprior.serving.label_sheet import BETWEEN, NONE, SKIP, Label, read_labels, sheet
from unprior.tables.format import format_count
from unprior.tables.model import Table

AnyPath = str | PathLike[str]
TEST_SHARE = 0.5
_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
_SHOWN = 30


@dataclass(frozen=True, slots=True)
class WrittenSheet:
    """A file to fill in."""

    out: Path
    examples: int
    images: int
    shown: int
    """Images that were found in the folder of images."""
    saved: str
    """Name of the file with the labels: the table itself, or what the page has the browser save."""


def write_label_file(
    log: AnyPath,
    out: AnyPath | None = None,
    *,
    page: bool = False,
    images: AnyPath | None = None,
    sample: int | None = None,
    show_answers: bool = False,
) -> WrittenSheet:
    """Write a table (CSV) or a page (HTML) in which the right answers to logged questions are filled in.

    Parameters
    ----------
    log, out
        The log, and the file to write; by default it stands beside the log.
    page
        A page that shows questions and images, and saves the labels; otherwise a table for a spreadsheet.
    images
        A folder with images; those that were asked about are found by what they show.
    sample
        So many images, drawn by chance, with all questions about them; by default all.
    show_answers
        Whether the table also has what was answered and decided, in its last columns. Who sees an answer tends to
        agree with it, so by default it has not; the page has it folded away.
    """
    log = as_path("log", log)
    kind = ".html" if page else ".csv"
    out = log.with_name(f"{log.stem}.labels{kind}") if out is None else as_path("out", out)
    if out.suffix.lower() != kind:
        raise UnpriorError(f"{out}: {'a page' if page else 'a table'} is written as {kind}; choose another name")
    if sample is not None and (isinstance(sample, bool) or sample < 1):
        raise UnpriorError(f"{format_option('sample', sample)}: give a number of images, 1 or more")
    if page and show_answers:
        raise UnpriorError("show_answers is for the table; the page has the answers folded away under each question")
    _check_new(out)
    found = read_log(log)
    found.warn_about_mixtures()
    examples = found.drawn(sample)
    wanted = {each.image for each in examples}
    paths = {} if images is None else _find_images(as_path("images", images), wanted)
    if page:
        name = _readable(log.name)
        content, saved = label_page(name, examples, paths).encode(), f"{Path(name).stem}.labels.csv"
    else:
        places = {digest: _readable(os.path.relpath(path, out.parent)) for digest, path in paths.items()}
        # With the mark by which spreadsheets know UTF-8.
        content, saved = sheet(examples, places, show_answers=show_answers).encode("utf-8-sig"), str(out)
    with replacing(out) as temporary:
        temporary.write_bytes(content)
    return WrittenSheet(out, len(examples), len(wanted), len(paths), saved)


def _readable(name: str) -> str:
    """The name of a file as text, with a sign in the place of bytes that are none."""
    return os.fsencode(name).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class TakenLabels:
    """A log with labels."""

    out: Path
    examples: int
    labelled: int
    none: int
    """Examples of which no candidate is right; they teach nothing."""
    counts: Mapping[tuple[str, str, str], tuple[int, int]]
    """Examples and images by task, split and side."""

    @property
    def unlabelled(self) -> int:
        """Examples without a label."""
        return self.examples - self.labelled - self.none

    @property
    def table(self) -> Table:
        """Labelled examples by task, split and side."""
        rows = [(*key, f"{examples:,}", f"{images:,}") for key, (examples, images) in sorted(self.counts.items())]
        return Table.plain(
            "Labelled decisions",
            ("Task", "Split", "Side", "Examples", "Images"),
            rows,
            f"cs: the right answer is the one that the model prefers without the image; cf: it is another one. A "
            f"promise counts images with a cs question. Without a label: {self.unlabelled:,}; none of the candidates "
            f"is right: {self.none:,}.",
        )

    def record(self) -> dict[str, Any]:
        """Plain values."""
        counts = [
            dict(zip(("task", "split", "side"), key, strict=True)) | {"examples": examples, "images": images}
            for key, (examples, images) in sorted(self.counts.items())
        ]
        own = {name: getattr(self, name) for name in ("examples", "labelled", "none", "unlabelled")}
        return {"out": str(self.out)} | own | {"counts": counts}


def take_labels(
    log: AnyPath, labels: AnyPath, out: AnyPath | None = None, *, test_share: float = TEST_SHARE
) -> TakenLabels:
    """Put labels into the records of a log; any mistake is told with its line, and then nothing is written.

    Parameters
    ----------
    log, labels, out
        The log, the file that was filled in, and the labelled log to write; by default it stands beside the log.
    test_share
        Share of the images, drawn by chance, whose questions get the split ``test``; the others get ``dev``.
    """
    log, labels = as_path("log", log), as_path("labels", labels)
    out = log.with_name(f"{log.stem}.labelled.jsonl") if out is None else as_path("out", out)
    if out.suffix.lower() != ".jsonl":
        raise UnpriorError(f"{out}: a labelled log is written as .jsonl; choose another name")
    if not 0.0 <= test_share <= 1.0:
        raise UnpriorError(f"{format_option('test_share', test_share)}: give a share from 0 to 1")
    refuse_overwriting(out, log, labels)
    _check_new(out)
    found = read_log(log)
    found.warn_about_mixtures()  # a label of a line that was left out is refused, and this tells why
    given = read_labels(labels)
    chosen = _matched(found, given, labels)
    _warn_about_changes(found, chosen)
    taken = _count(found, chosen, out, test_share)
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for _, record in found.lines:
            new = {}
            if is_decision(record):
                split = _split(str(record["image_digest"]), test_share)
                new = chosen.get(str(record["example_id"]), {}) | {"split": split}
            stream.write(json.dumps(record | new, ensure_ascii=False) + "\n")
    return taken


def _split(image: str, test_share: float) -> str:
    return "test" if fate("test", image) < test_share else "dev"


def _count(log: LogFile, chosen: Mapping[str, dict[str, Any]], out: Path, test_share: float) -> TakenLabels:
    examples: Counter[tuple[str, str, str]] = Counter()
    images: dict[tuple[str, str, str], set[str]] = {}
    labelled = none = 0
    for example in log.examples:
        record = example.record | chosen.get(example.name, {})
        none += record.get("label") == "none"
        if record.get("answer") is None:
            continue
        labelled += 1
        side = record.get("side") or derived_side(
            record["task"], example.candidates, record["image_scores"], record["prior_scores"], str(record["answer"]),
            record.get("aliases"),
        )  # fmt: skip
        key = (record["task"], _split(example.image, test_share), side)
        examples[key] += 1
        images.setdefault(key, set()).add(example.image)
    counts = {key: (count, len(images[key])) for key, count in examples.items()}
    return TakenLabels(out, len(log.examples), labelled, none, counts)


def _matched(log: LogFile, labels: Sequence[Label], source: Path) -> dict[str, dict[str, Any]]:
    """What labels add to records, by the name of every request; all mistakes are told at once."""
    by_id = {name: example for example in log.examples for name in example.ids}
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    problems: list[RowProblem] = []
    for label in labels:
        try:
            example = by_id.get(label.example)
            if example is None:
                told = f"there is no example {label.example!r} in {log.path.name}"
                raise UnpriorError(f"{told}; labels belong to the log that their file was made from")
            if label.answer.casefold() in ("", SKIP) and label.answer not in example.candidates:
                if label.side:
                    raise UnpriorError(f"side {label.side!r} without an answer; give the answer, too")
                continue
            new = _label_fields(example, label)
            line, earlier = found.setdefault(example.name, (label.line, new))
            if earlier != new:
                raise UnpriorError(
                    f"example {label.example} is labelled {_shown(earlier)} at line {line} and {_shown(new)} here; "
                    f"keep one of them"
                )
        except UnpriorError as error:
            problems.append(RowProblem(label.line, str(error)))
    if problems:
        shown = [f"  {each}" for each in problems[:_SHOWN]]
        more = [f"  … and {len(problems) - _SHOWN:,} more"] if len(problems) > _SHOWN else []
        head = f"{source}: {len(problems):,} of {format_count(len(labels), 'label')} cannot be taken"
        raise UnpriorError("\n".join([head, *shown, *more, "Correct them; nothing was written."]))
    if not found:
        raise UnpriorError(f"{source}: no row has an answer; fill in the column answer, then take the labels again")
    return {name: fields for example in log.examples if example.name in found
            for fields in (found[example.name][1],) for name in example.ids}  # fmt: skip


def _label_fields(example: LoggedExample, label: Label) -> dict[str, Any]:
    side = label.side.casefold() or None
    if side not in (None, *SIDES):
        raise UnpriorError(f"side {label.side!r}: write cf, cs, or nothing")
    if label.aliases and not example.is_open:
        raise UnpriorError("aliases are for open questions; write one of the candidates as answer")
    if "\n" in label.answer:
        raise UnpriorError("the answer has several lines; is a quote opened and not closed?")
    if label.answer.casefold() == NONE and label.answer not in example.candidates:
        return {"answer": None, "label": "none"}
    answer = _candidate(example, label.answer)
    if answer is None:
        if not example.is_open:
            raise UnpriorError(
                f"answer {label.answer!r} is none of the candidates: {BETWEEN.join(example.candidates)}; write one of "
                f"them, {NONE} if none is right, or leave it empty"
            )
        answer = label.answer
    fields: dict[str, Any] = {"answer": answer, "side": side, "label": None}
    return fields | ({"aliases": list(label.aliases)} if label.aliases else {})


def _candidate(example: LoggedExample, answer: str) -> str | None:
    """The candidate that is meant: the very text, or the only one that differs in case or spaces alone."""
    if answer in example.candidates:
        return answer
    alike = [each for each in example.candidates if _plain(each) == _plain(answer)]
    return alike[0] if len(alike) == 1 else None


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split()).casefold()


def _shown(fields: Mapping[str, Any]) -> str:
    side = f" ({fields['side']})" if fields.get("side") else ""
    return NONE if fields["answer"] is None else f"{fields['answer']!r}{side}"


def _warn_about_changes(log: LogFile, chosen: Mapping[str, dict[str, Any]]) -> None:
    """A log may have labels already; what replaces another one is told."""
    changed = [
        str(example.lines[0])
        for example in log.examples
        if example.record.get("answer") is not None
        and example.name in chosen
        and chosen[example.name]["answer"] != example.record["answer"]
    ]
    if changed:
        warn(f"{log.path}: {len(changed):,} earlier answers are replaced (lines {format_names(changed)})")


def _check_new(out: Path) -> None:
    if exists(out):
        raise UnpriorError(f"{out} is there already and may hold labels; choose another --out, or move it away")
    check_output_file(out)


def _find_images(folder: Path, wanted: set[str]) -> dict[str, Path]:
    """Where the images with some digests are; they are decoded as the server does it."""
    if not folder.is_dir():
        raise UnpriorError(f"{folder}: no such folder of images")
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in _SUFFIXES or not path.is_file():
            continue
        try:
            digest = pixel_digest(read_image(path.read_bytes(), ImageLimits(), str(path)))
        except (RequestError, OSError):
            continue  # the server would not have taken it either
        if digest in wanted:
            found.setdefault(digest, path)
    if len(found) < len(wanted):
        warn(f"{folder}: {len(found):,} of {len(wanted):,} images were found; a server knows them by their pixels")
    return found

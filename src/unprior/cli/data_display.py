"""How `unprior data` shows a benchmark, a check, and the progress of a download."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unprior.cli.console import errors, output

if TYPE_CHECKING:
    from unprior.benchmarks.check import CheckResult
    from unprior.benchmarks.download import Fetched
    from unprior.benchmarks.entry import Entry
    from unprior.benchmarks.schema import Benchmark

_SHOWN = 20
_PLAIN_SECONDS = 10.0


def print_card(entry: Entry, benchmark: Benchmark | None, variants: dict[str, str]) -> None:
    """What is known of a benchmark, a sample of what was found, its variants and its flaws."""
    from rich.text import Text

    from unprior.tables.terminal import plain_table

    card = entry.card
    facts = plain_table(f"{card.name}: {card.about}")
    facts.show_header = False
    facts.add_column("", no_wrap=True)
    facts.add_column("")
    numbers = ", ".join(f"{number:,} {name}" for name, number in card.counts.items())
    rows = [("Published", card.published), ("Revision", card.revision), ("Licence", card.licence),
            ("Cite", card.citation), ("Counts", numbers), ("By hand", card.by_hand),
            ("Synonyms", ", ".join("/".join(group) for group in card.synonyms))]  # fmt: skip
    if benchmark is not None:
        found = ", ".join(f"{number:,} {name}" for name, number in benchmark.counts().items())
        rows.append(("Here", f"{found}; {len(benchmark.missing_images()):,} images missing"))
        sample = benchmark.examples[0]
        candidates = " / ".join(sample.text(label) for label in sample.labels) or "(open)"
        right = " / ".join([sample.text(sample.answer), *sample.aliases])
        rows.append(("Sample", f"{sample.example_id}: {sample.question} {candidates} → {right}"))
    for key, value in rows:
        if value:
            facts.add_row(key, Text(value))
    output.print(facts)
    for title, header, lines in (
        ("Variants (--variant)", "Name", list(variants.items())),
        ("Known flaws", "Pairs", [(_pairs(flaw.pairs), f"{flaw.what}: {flaw.treatment}") for flaw in card.flaws]),
    ):
        if lines:
            table = plain_table(title)
            table.add_column(header, no_wrap=header == "Name", max_width=28)
            table.add_column("")
            for left, right in lines:
                table.add_row(Text(left), Text(right))
            output.print(table)


def _pairs(pairs: tuple[int | str, ...]) -> str:
    return ", ".join(map(str, pairs)) or "all"


def print_check(result: CheckResult) -> None:
    """Counts, what is missing or broken, and the known flaws."""
    from unprior.tables.terminal import plain_table

    numbers = ("Published", "Found", "")
    table = plain_table(f"{result.benchmark.name}: as published and as found", ("Count", *numbers), right=numbers)
    for count in result.counts:
        mark = "✓" if count.published == count.found else "✗"
        table.add_row(count.name, f"{count.published:,}", f"{count.found:,}", mark)
    if result.counts:
        output.print(table)
    for title, names in (
        ("Missing images", result.missing),
        ("Unreadable images", result.unreadable),
        ("Downloaded files that are gone or changed", result.changed),
        ("Problems of pairs", result.pairs.problems),
    ):
        if names:
            output.print(f"{title} ({len(names):,}):", soft_wrap=True)
            for name in names[:_SHOWN]:
                output.print(f"  {name}", soft_wrap=True)
            if len(names) > _SHOWN:
                output.print(f"  … and {len(names) - _SHOWN:,} more (--json lists all)")
    flaws = () if result.benchmark.card is None else result.benchmark.card.flaws
    if flaws:
        output.print("Known flaws of the published files:")
        for flaw in flaws:
            output.print(f"  {_pairs(flaw.pairs)}: {flaw.what}; {flaw.treatment}", soft_wrap=True)
    images = len(result.benchmark.images())
    opened = "its image opens" if images == 1 else f"all {images:,} images open"
    output.print(f"Everything is there, and {opened}." if result.sound else "Incomplete.")


@contextmanager
def download_progress() -> Iterator[Callable[[Fetched], None]]:
    """A bar in a terminal, a plain line now and then elsewhere."""
    if not errors.is_terminal:
        printed = time.monotonic()

        def print_line(fetched: Fetched) -> None:
            nonlocal printed
            if time.monotonic() - printed >= _PLAIN_SECONDS:
                printed = time.monotonic()
                where = f"file {fetched.number:,} of {fetched.files:,}: {fetched.file}"
                errors.print(f"{where} ({fetched.done:,} bytes)", soft_wrap=True)

        yield print_line
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task("Downloading", total=None)
        current = [""]

        def show(fetched: Fetched) -> None:
            if fetched.file != current[0]:
                current[0] = fetched.file
                bar.reset(task)
            name = f"{fetched.number:,}/{fetched.files:,} {fetched.file.rpartition('/')[2]}"
            bar.update(task, description=name, completed=fetched.done, total=fetched.size)

        yield show

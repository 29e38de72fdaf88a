"""Score tables: ``read_scores``, ``fit``, ``predict``, ``evaluate`` and the commands around them."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz import plain_rows
from fuzz.case import Case, Target, require
from fuzz.commands import command
from fuzz.mutate import changed_bytes, changed_json, dumps
from fuzz.plain_rows import Row
from straightforward import Model, decide
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, evaluate, read_scores, synthesize
from unprior.scores.published import published_from_row

_PAIRS = 10
_NEAR = 1e-7  # two ways to compute a margin may differ by this much and decide otherwise
_COMPARED = 12  # rows of a table that are also decided one by one


def make(folder: Path) -> Target:
    """Fit calibrators, and keep the rows that cases are made of."""
    return _Tables(folder).run


class _Tables:
    def __init__(self, folder: Path) -> None:
        table = synthesize(seed=0)
        self.rows = _plain(table.arrow.to_pylist())
        self.calibrators = {
            uncertain: SelectivePriorCalibrator(uncertainty=uncertain).fit(table) for uncertain in (False, True)
        }
        self.files = {}
        for uncertain, calibrator in self.calibrators.items():
            self.files[uncertain] = folder / f"calibrator-{uncertain}.json"
            calibrator.save(self.files[uncertain])

    def run(self, case: Case) -> bool:
        random = case.random
        first = random.randrange(300 - _PAIRS)
        rows = [row for row in self.rows if first < row["pair_id"] <= first + _PAIRS]
        if random.random() < 0.3:  # several splits are there only around some pairs
            for row in rows:
                row["split"] = "dev"
        kind = random.choice(("neutral", "neutral", "lines", "lines", "bytes", "published", "columns", "parquet"))
        case.note(f"{kind}, pairs {first + 1} to {first + _PAIRS}")
        if kind == "neutral":
            return self._neutral(case, rows)
        path = self._damaged(case, rows, kind)
        return self._read(case, path)

    def _damaged(self, case: Case, rows: list[Row], kind: str) -> Path:
        random = case.random
        if kind == "columns":
            return case.write("scores.parquet", _strange_columns(random, rows, case))
        if kind == "parquet":
            return case.write("scores.parquet", changed_bytes(random, _parquet(random, rows)))
        records: list[Any] = [published_from_row(row) for row in rows] if kind == "published" else list(rows)
        if kind != "bytes":
            for position in random.sample(range(len(records)), random.choice((1, 1, 2, 5))):
                records[position], note = changed_json(random, records[position])
                case.note(f"row {position + 1}: {note}")
        content = b"\n".join(dumps(record) for record in records)
        return case.write("scores.jsonl", changed_bytes(random, content) if kind == "bytes" else content)

    def _read(self, case: Case, path: Path) -> bool:
        random = case.random
        skip = random.random() < 0.5
        plain = plain_rows.read_parquet(path) if path.suffix == ".parquet" else plain_rows.read_lines(path.read_bytes())
        try:
            table = read_scores(path, skip_invalid=skip, require_answers=False)
        except UnpriorError:
            self._command(case, path, None)
            return False
        require(plain is not None, "a file is accepted that Arrow cannot give as rows")
        assert plain is not None
        read = dict(zip(table.lines, _plain(table.arrow.to_pylist()), strict=True))
        lost = set(plain) - set(read) - {problem.line for problem in table.skipped}
        require(not lost, f"rows vanished without a word: {sorted(lost)[:5]}")
        require(skip or len(read) == len(plain), "rows are left out although nobody asked for it")
        for line, row in read.items():
            _same_row(line, row, plain[line])
        expected = self._decide(random, table, [valid for line in read if (valid := plain[line]) is not None])
        self._evaluate(table, expected)
        if not table.skipped:
            self._command(case, path, expected)
        return True

    def _decide(self, random: Random, table: ScoreTable, rows: list[Row]) -> list[str | None]:
        """Decisions, which must be those of the row-by-row implementation and of one row alone."""
        uncertain = random.random() < 0.5
        calibrator = self.calibrators[uncertain]
        decisions = calibrator.predict(table)
        final: list[str | None] = decisions.to_arrow().column("final").to_pylist()
        model = _straightforward(calibrator)
        assert calibrator.settings_ is not None
        require(len(rows) == len(final), f"{len(final)} decisions for {len(rows)} rows")
        for place in random.sample(range(len(rows)), min(_COMPARED, len(rows))):
            row, name, one = rows[place], final[place], decisions[place]
            alone = calibrator.decide(row["candidates"], row["image_scores"], row["prior_scores"], row["original"])
            require(
                (alone.final, alone.revised) == (name, one.revised) == (one.final, one.revised),
                f"a row alone is decided otherwise: {alone.final!r}, in the table {name!r}, row {row}",
            )
            plain = decide(model, row)
            if plain["final"] != name and not _close_call(one, plain):
                require(False, f"the straightforward way decides otherwise: {plain}, {one}, row {row}")
        return final

    def _evaluate(self, table: ScoreTable, final: list[str | None]) -> None:
        """Evaluation either refuses or counts what a loop counts."""
        positions = np.array(
            [
                -1 if name is None else row.index(name)
                for row, name in zip(table.column("candidates"), final, strict=True)
            ],
            dtype=np.int64,
        )
        try:
            result = evaluate(table, positions, resamples=20)
        except UnpriorError:
            return
        for task in result.tasks:
            members = [
                place
                for place, values in enumerate(
                    zip(*(table.column(name) for name in ("model", "benchmark", "task")), strict=True)
                )
                if values == (task.model, task.benchmark, task.task)
            ]
            sides, original, answer = table.column("side"), table.column("original"), table.column("answer")
            for side, outcome in (("cf", task.cf), ("cs", task.cs)):
                rows = [place for place in members if sides[place] == side]
                repairs = sum(original[place] != answer[place] and final[place] == answer[place] for place in rows)
                harms = sum(original[place] == answer[place] and final[place] != answer[place] for place in rows)
                found = (outcome.change.repairs, outcome.change.harms)
                require(found == (repairs, harms), f"repairs and harms are {found}, counted: {(repairs, harms)}")

    def _command(self, case: Case, path: Path, expected: list[str | None] | None) -> None:
        """One of the commands on the same file; ``expected`` are final answers, None if the file must be refused."""
        random = case.random
        what = random.choice(("apply", "fit", "evaluate", "convert", "nothing", "nothing"))
        skip = ["--skip-invalid"] if random.random() < 0.4 else []
        out = case.folder / random.choice(("out.jsonl", "out.parquet"))
        if what == "convert":
            ran = command("convert", path, "--out", out, *skip)
            if ran.accepted and expected is not None:
                again = _plain(read_scores(out, require_answers=False).arrow.to_pylist())
                for line, (row, old) in enumerate(
                    zip(again, _plain(read_scores(path, require_answers=False).arrow.to_pylist()), strict=True), start=1
                ):
                    require(row == old, f"conversion changes a row: line {line}: {old} becomes {row}")
        elif what == "apply":
            uncertain = random.random() < 0.5
            ran = command(
                "apply", self.files[uncertain], path, "--out", out, *random.choice(([], ["--explain"])), *skip
            )
            if ran.accepted and expected is not None:
                read = read_scores(path, require_answers=False)
                finals = self.calibrators[uncertain].predict(read).to_arrow().column("final").to_pylist()
                require(_written(out) == finals, "the command writes other decisions than the library makes")
        elif what == "fit":
            ran = command(
                "fit", path, "--out", case.folder / "fitted.json", "--split", random.choice(("dev", "all")),
                *random.choice(([], ["--uncertainty"])), *skip,
            )  # fmt: skip
            if ran.accepted:
                SelectivePriorCalibrator.load(case.folder / "fitted.json")
        elif what == "evaluate":
            made = self._some_decisions(case, path)
            ran = command("evaluate", path, made, "--split", "all", "--resamples", "20", *skip)
        else:
            return
        if not skip:
            require(expected is not None or not ran.accepted, f"{what} accepts what read_scores refuses")

    def _some_decisions(self, case: Case, path: Path) -> Path:
        """Decisions about the file, or about its rows before they were damaged; sometimes damaged themselves."""
        out = case.folder / "decisions.jsonl"
        try:
            self.calibrators[False].predict(read_scores(path, require_answers=False)).write(out)
        except UnpriorError:
            self.calibrators[False].predict(ScoreTable.from_rows(self.rows[:40])).write(out)
        if case.random.random() < 0.5:
            out.write_bytes(changed_bytes(case.random, out.read_bytes()))
        return out

    def _neutral(self, case: Case, rows: list[Row]) -> bool:
        """Other spellings of the same rows give the same decisions, row by row."""
        random = case.random
        order = random.sample(range(len(rows)), len(rows)) if random.random() < 0.5 else list(range(len(rows)))
        moved = [rows[place] for place in order]
        case.note(f"order {order}")
        if random.random() < 0.5:
            path = case.write("scores.jsonl", _respelled(random, moved))
        else:
            path = case.write("scores.parquet", _parquet(random, moved))
        calibrator = self.calibrators[random.random() < 0.5]
        before = calibrator.predict(ScoreTable.from_rows(rows)).to_arrow().to_pylist()
        after = calibrator.predict(read_scores(path)).to_arrow().to_pylist()
        for place, found in zip(order, after, strict=True):
            wanted = before[place]
            same = all(_equal(wanted[name], found[name]) for name in wanted if name != "pair_id")
            require(same, f"another spelling changes a decision: {wanted} becomes {found}")
        if random.random() < 0.3:
            self._refit(case, rows, path)
        return True

    def _refit(self, case: Case, rows: list[Row], path: Path) -> None:
        """Fitted on the same rows in another spelling and order, a calibrator decides the same."""
        uncertain = case.random.random() < 0.5
        try:
            one = SelectivePriorCalibrator(uncertainty=uncertain).fit(ScoreTable.from_rows(rows), split=None)
        except UnpriorError:
            return
        other = SelectivePriorCalibrator(uncertainty=uncertain).fit(read_scores(path), split=None)
        table = ScoreTable.from_rows(self.rows[:200])
        first, second = (fitted.predict(table).to_arrow().to_pylist() for fitted in (one, other))
        differing = [
            place
            for place, (left, right) in enumerate(zip(first, second, strict=True))
            if left["final"] != right["final"] and abs(left["margin"] - right["margin"]) > _NEAR
        ]
        require(
            not differing,
            f"a fit depends on the order of its rows: {one.settings_}, {other.settings_}, rows {differing[:5]}",
        )


def _plain(records: list[Row]) -> list[Row]:
    """Rows as dictionaries: views by name, nothing that is null."""
    rows = []
    for record in records:
        row = {name: value for name, value in record.items() if value is not None or name == "original"}
        if "views" in row:
            row["views"] = dict(row["views"])
        rows.append(row)
    return rows


def _same_row(line: int, read: Row, plain: Row | None) -> None:
    require(plain is not None, f"an invalid row is accepted: line {line}, {read}")
    assert plain is not None
    for name, wanted in plain.items():
        found = str(read[name]) if name == "pair_id" else read.get(name)
        require(
            _equal(wanted, found), f"a row is read otherwise: line {line}, {name} is {found!r} instead of {wanted!r}"
        )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def _written(path: Path) -> list[str | None]:
    if path.suffix == ".parquet":
        names: list[str | None] = pq.read_table(path).column("final").to_pylist()
        return names
    return [json.loads(line)["final"] for line in path.read_text(encoding="utf-8").split("\n") if line]


def _straightforward(calibrator: SelectivePriorCalibrator) -> Model:
    """The same fitted numbers in the row-by-row implementation."""
    model, settings = calibrator.model_, calibrator.settings_
    assert settings is not None
    precision = np.eye(12) if model.precision is None else model.precision
    names = ("rho", "max_strength", "min_margin", "conflict_support", "absorption_support", "max_distance")
    return Model(
        uncertainty=calibrator.uncertainty,
        feature_mean=model.standardisation.mean,
        feature_scale=model.standardisation.scale,
        distance_precision=precision,
        distances=[],
        candidate_counts=set(calibrator.candidate_counts_),
        theta_by_rho={settings.rho: model.theta},
        settings={name: value for name in names if (value := getattr(settings, name)) is not None},
        covariance=model.covariance,
    )


def _close_call(one: Any, plain: dict[str, Any]) -> bool:
    """Whether rounding may decide: a margin, support or distance at its threshold, or two candidates that tie."""
    settings = one.settings
    gaps = [abs(one.margin - settings.min_margin), one.margin, plain["margin"]]
    if one.support is not None:
        gaps += [abs(one.support - limit) for limit in (settings.conflict_support, settings.absorption_support)]
        gaps.append(abs(one.distance - settings.max_distance))
    return bool(min(gaps) < _NEAR)


def _respelled(random: Random, rows: list[Row]) -> bytes:
    """JSON lines that say the same: key order, white space, escapes, unknown fields, empty lines."""
    lines = []
    for row in rows:
        record: Any = row
        if random.random() < 0.2 and row.get("views") is None and row.get("example_id") is None:
            record = published_from_row(row)
        keys = random.sample(list(record), len(record)) if random.random() < 0.5 else list(record)
        record = {key: record[key] for key in keys}
        if random.random() < 0.3:
            record["unknown"] = random.choice((None, 1, "x", [1, {"y": 2}]))
        spelled = random.choice(
            ({}, {"separators": (",", ":")}, {"separators": (" , ", "\t: ")}, {"ensure_ascii": False})
        )
        lines.append(dumps(record, **spelled))
        if random.random() < 0.05:
            lines.append(random.choice((b"", b"  ", b"\t")))
    return random.choice((b"\n", b"\r\n")).join(lines) + random.choice((b"", b"\n", b"\n\n"))


def _columns(rows: list[Row]) -> pa.Table:
    return ScoreTable.from_rows(rows).arrow


def _parquet(random: Random, rows: list[Row]) -> bytes:
    """The same rows in Parquet: chunks, dictionaries, wide types, unknown and reordered columns."""
    table = _columns(rows)
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_string(column.type) and random.random() < 0.4:
            table = _with(table, name, random.choice((column.dictionary_encode(), column.cast(pa.large_string()))))
        elif pa.types.is_list(column.type) and random.random() < 0.3:
            table = _with(table, name, column.cast(pa.large_list(column.type.value_type)))
        elif name == "pair_id" and pa.types.is_integer(column.type) and random.random() < 0.4:
            table = _with(table, name, column.cast(random.choice((pa.int32(), pa.uint64(), pa.int16()))))
        if column.null_count == len(column) and name not in ("original",) and random.random() < 0.4:
            table = table.drop_columns([name])
    if random.random() < 0.3:
        table = table.append_column("unknown", pa.array([{"a": index} for index in range(len(table))]))
    if random.random() < 0.4:
        table = table.select(random.sample(table.column_names, len(table.column_names)))
    if random.random() < 0.4:
        cut = random.randrange(len(table))
        table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    sink = io.BytesIO()
    compression = random.choice(("snappy", "zstd", "gzip", "none"))
    pq.write_table(
        table, sink, row_group_size=random.choice((1, 3, 1000)), compression=compression,
        use_dictionary=random.random() < 0.5, data_page_version=random.choice(("1.0", "2.0")),
        store_schema=random.random() < 0.8,
    )  # fmt: skip
    return sink.getvalue()


def _with(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _strange_columns(random: Random, rows: list[Row], case: Case) -> bytes:
    """Parquet whose columns have other types, holes, or text that is not Unicode."""
    table = _columns(rows)
    for _ in range(random.choice((1, 1, 2))):
        name = random.choice(table.column_names)
        column = table.column(name).combine_chunks()
        changed, note = _strange_column(random, column)
        case.note(f"column {name}: {note}")
        table = table.drop_columns([name]) if changed is None else _with(table, name, changed)
    if random.random() < 0.1:
        table = table.append_column(random.choice(table.column_names), table.column(0))  # a name twice
        case.note("a column twice")
    if random.random() < 0.1:
        table = table.slice(0, 0)
        case.note("no rows")
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _strange_column(random: Random, column: Any) -> tuple[Any, str]:
    values = column.to_pylist()
    kind = random.choice(("gone", "null", "hole", "not unicode", "cast", "value", "binary", "all null", "constant"))
    if kind == "gone":
        return None, kind
    if kind == "all null":
        return pa.nulls(len(values), random.choice((column.type, pa.null()))), kind
    if kind == "constant":
        constant = random.choice((0, 1.5, "A", True, ["A", "B"], [0.0, -1.0], b"\xff", None))
        return pa.array([constant] * len(values)), f"{kind} {constant!r}"
    place = random.randrange(len(values))
    if kind == "null":
        values[place] = None
        return pa.array(values, column.type), f"{kind} in row {place + 1}"
    if kind == "cast":
        targets = (
            pa.string(), pa.large_string(), pa.binary(), pa.float32(), pa.float64(), pa.int64(), pa.int8(), pa.bool_(),
            pa.list_(pa.float32()), pa.list_(pa.float16()), pa.list_(pa.string()), pa.list_(pa.int64()),
            pa.list_(pa.float64(), 2), pa.large_list(pa.float64()), pa.list_(pa.large_string()), pa.list_(pa.binary()),
            pa.list_(pa.dictionary(pa.int32(), pa.string())), pa.string_view(), pa.list_(pa.decimal128(30, 12)),
        )  # fmt: skip
        target = random.choice(targets)
        try:
            return column.cast(target, safe=False), f"cast to {target}"
        except pa.ArrowException:
            return column, "as it was"
    if kind in ("not unicode", "binary") and pa.types.is_string(column.type):
        raw = [None if value is None else value.encode() for value in values]
        raw[place] = random.choice((b"\xff", b"A\xc3", b"\xed\xa0\x80", b""))
        binary = pa.array(raw, pa.binary())
        if kind == "binary":
            return binary, kind
        return pa.StringArray.from_buffers(
            len(raw), *binary.buffers()[1:], binary.buffers()[0]
        ), f"{kind} in row {place + 1}"
    if pa.types.is_list(column.type) and values[place]:
        inner: Any = random.choice((None, 0, 1e300, float("nan"), float("inf"), -1, 2**40))
        text = pa.types.is_string(column.type.value_type)
        values[place] = [*values[place][:-1], (None if inner is None else str(inner)) if text else inner]
        if random.random() < 0.3:
            values[place] = values[place][: random.randrange(len(values[place]))]
        try:
            if kind == "not unicode" and text:
                return _list_not_unicode(column, place), f"{kind} in a list"
            return pa.array(values, column.type), f"{inner} in row {place + 1}"
        except (pa.ArrowException, TypeError, ValueError):
            return column, "as it was"
    return column, "as it was"


def _list_not_unicode(column: Any, place: int) -> Any:
    inner = [value.encode() for values in column.to_pylist() for value in values]
    inner[place] = b"\xff\xfe"
    binary = pa.array(inner, pa.binary())
    text = pa.StringArray.from_buffers(len(inner), *binary.buffers()[1:])
    return pa.ListArray.from_arrays(column.offsets, text)

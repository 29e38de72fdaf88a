"""Calibrator files: ``SelectivePriorCalibrator.load`` and ``unprior apply``."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from fuzz.case import Case, Target, require
from fuzz.commands import command
from fuzz.mutate import changed_bytes, changed_json, dumps
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.calibration import IMAGE_FEATURES, Constant, Fixed, Grid

_VERSION_1 = Path(__file__).parent.parent / "tests" / "calibration" / "version_1"


def make(folder: Path) -> Target:
    """Fit and save calibrators of every kind."""
    return _Calibrators(folder).run


class _Calibrators:
    def __init__(self, folder: Path) -> None:
        table = synthesize(seed=0)
        small = Grid(rho=(0.1,), max_strength=(1.0,), min_margin=(0.0, 0.1), support=(0.5,), distance_quantile=(0.95,))
        self.table = ScoreTable.from_arrow(table.arrow.slice(0, 60))
        self.scores = folder / "scores.jsonl"
        self.table.write(self.scores)
        fitted = [
            SelectivePriorCalibrator().fit(table),
            SelectivePriorCalibrator(uncertainty=True).fit(table),
            SelectivePriorCalibrator(uncertainty=True, grid=small).fit(table),
            SelectivePriorCalibrator(epsilon_cs=0.0).fit(table.where(task="qa")),
            SelectivePriorCalibrator(strength=Fixed(0.8), conditions=None).fit(table),
            SelectivePriorCalibrator(strength=Constant(), uncertainty=True, grid=small, select_on="cf").fit(table),
            SelectivePriorCalibrator(features=IMAGE_FEATURES, fit_on="cf").fit(table),
        ]
        self.files = []
        for number, calibrator in enumerate(fitted):
            path = folder / f"{number}.json"
            calibrator.save(path)
            self.files.append((path.read_bytes(), _decided(SelectivePriorCalibrator.load(path), self.table)))
            document = json.loads(path.read_bytes())
            require(document["checksum"] == _checksum(document), "the checksum is not computed as it used to be")
        for path in sorted(_VERSION_1.glob("*.json")):
            self.files.append((path.read_bytes(), _decided(SelectivePriorCalibrator.load(path), self.table)))

    def run(self, case: Case) -> bool:
        random = case.random
        content, decided = random.choice(self.files)
        kind = random.choice(("bytes", "values", "values", "refreshed", "refreshed", "refreshed", "respelled"))
        case.note(kind)
        if kind == "bytes":
            content = changed_bytes(random, content)
        elif kind == "respelled":
            document = json.loads(content)
            names = random.sample(list(document), len(document))
            content = dumps({name: document[name] for name in names}, indent=random.choice((None, 1, "\t")))
        else:
            document, note = changed_json(random, json.loads(content))
            case.note(note)
            content = dumps(_refreshed(document) if kind == "refreshed" else document)
        path = case.write("calibrator.json", content)
        try:
            loaded = SelectivePriorCalibrator.load(path)
        except UnpriorError:
            require(kind != "respelled", "the same calibrator in another spelling is refused")
            self._apply(case, path, None)
            return False
        found = _decided(loaded, self.table)
        if kind != "refreshed":
            require(found == decided, "a changed calibrator is accepted and decides otherwise")
        _sensible(found)
        loaded.save(case.folder / "again.json")
        again = SelectivePriorCalibrator.load(case.folder / "again.json")
        require(_decided(again, self.table) == found, "saved and loaded, a calibrator decides otherwise")
        try:
            _sensible(_decided(loaded.reselect(random.choice((0.0, 0.1, 1.0))), self.table))
        except UnpriorError:
            require(json.loads(content)["version"] == 1, "settings cannot be chosen again")
        self._apply(case, path, found)
        return True

    def _apply(self, case: Case, path: Path, expected: list[dict[str, Any]] | None) -> None:
        if case.random.random() > 0.4:
            return
        out = case.folder / "decisions.jsonl"
        ran = command("apply", path, self.scores, "--out", out, *case.random.choice(([], ["--explain"], ["--json"])))
        require(expected is not None or not ran.accepted, "apply accepts what load refuses")
        if ran.accepted and expected is not None:
            written = [json.loads(line)["final"] for line in out.read_text(encoding="utf-8").splitlines()]
            require(written == [row["final"] for row in expected], "the command decides otherwise than the library")


def _decided(calibrator: SelectivePriorCalibrator, table: ScoreTable) -> list[dict[str, Any]]:
    """Everything about the decisions; what is not a number is equal to itself."""
    rows: list[dict[str, Any]] = calibrator.predict(table).to_arrow(explanations=True).to_pylist()
    return [{name: None if value != value else value for name, value in row.items()} for row in rows]  # noqa: PLR0124


def _sensible(rows: list[dict[str, Any]]) -> None:
    """Whatever the numbers of a calibrator: strengths and margins are numbers, and what is revised has a reason."""
    for row in rows:
        for name in ("strength", "margin", "support", "distance"):
            value = row.get(name, 0.0)
            require(value is not None and math.isfinite(value), f"a decision has no finite {name}: {row}")
        require(-1e-9 <= row["margin"] <= 1 + 1e-9, f"a margin is no difference of probabilities: {row}")
        require(row["strength"] >= 0, f"a strength is negative: {row}")
        require(row["revised"] == (row["final"] != row["original"]), f"revised or not does not fit the answer: {row}")


def _refreshed(document: Any) -> Any:
    """With the checksum of the changed contents, as somebody who edits on purpose would write it."""
    if isinstance(document, dict):
        document = json.loads(dumps(document)) if _readable(document) else document
        try:
            document["checksum"] = _checksum(document)
        except (ValueError, UnicodeError):
            document["checksum"] = "sha256:" + "0" * 64
    return document


def _readable(document: Any) -> bool:
    try:
        json.loads(dumps(document))
    except (ValueError, RecursionError):
        return False
    return True


def _checksum(document: dict[str, Any]) -> str:
    content = {name: value for name, value in document.items() if name != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

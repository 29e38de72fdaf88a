"""Do two states of the package give the same results? Runs both and compares every number that they leave in files.

Each state scores the embedded model with all baselines, runs every study, and fits, applies and studies two synthetic
tables. Then report.json, the JSON of every study, decisions and calibrators are compared value by value.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

SEEDS = (3, 7)
RENAMED = {"main": "main-comparison", "sum-or-mean": "score-normalization", "ranges": "stable-ranges"}
"""Studies that have another name now."""
CLOCK = re.compile(r"(^|_)(seconds|date|times)(_|$)|^(made_by|unprior|checksum)$")
"""Fields that differ from run to run: what was measured by the clock, and who made the file when."""
EXPECTED = (
    ("report.json", r"studies\.frontier", "these are the study's own records now, with more rows"),
    ("methods.json|report.json", r"holm|best_utility", "controls stand in the same table, so Holm's family is larger"),
    ("study/.*json|report.json", r"(^|\.)(sentences|how|asks|title|name|label|version|method|group|headline|notes)\b",
     "texts name version and ε"),
    ("", r"\.(fingerprint|revision)$", "prompts belong to the fingerprint, and the seed to the revision"),
    ("(cost|methods|report).json", r"passes", "prompts are read up to where they part, and then on"),
)  # fmt: skip
"""Values that differ on purpose: in which file, at which places, and why."""
WITHOUT_TORCHVISION = "import sys; sys.modules['torchvision'] = None; "
"""States before the extra of that name cannot load any model beside it and a torch for CPUs."""
_TOLERANCE, _SCORED = 1e-12, 1e-5  # of the same scores, and where both states compute the scores themselves
_SHOWN = 12


def make_results(source: Path, folder: Path) -> None:
    """Let the package in ``source`` make everything that is compared."""
    environment = os.environ | {"PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"}

    def unprior(*arguments: str | Path) -> None:
        command = [sys.executable, "-c", f"{WITHOUT_TORCHVISION}from unprior.cli import main; main()"]
        command += map(str, arguments)
        print(f"{source.name}: unprior {' '.join(map(str, arguments))}", flush=True)
        subprocess.run(command, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "embedded" / "study" / "index.html").exists():
        unprior("run", "--out", "embedded", "--baselines", "all")
        unprior("study", "all", "--run", "embedded", "--prepare")
    for seed in SEEDS:
        run = folder / f"synthetic-{seed}"
        if (run / "study" / "index.html").exists():
            continue
        run.mkdir(exist_ok=True)
        unprior("synth", "--seed", str(seed), "--out", run / "scores.parquet")
        for name, options in (("standard", ()), ("uncertain", ("--uncertainty", "--epsilon-cs", "0.1"))):
            unprior("fit", run / "scores.parquet", *options, "--out", run / f"{name}.calibrator.json")
            unprior("apply", run / f"{name}.calibrator.json", run / "scores.parquet", "--out", run / f"{name}.jsonl")
        unprior("study", "all", "--run", run)


def read_results(folder: Path) -> dict[str, Any]:
    """Every file that is compared, by its name without the folder; studies by their present names."""
    found: dict[str, Any] = {}
    for path in sorted([*folder.rglob("*.json"), *folder.rglob("*.jsonl")]):
        name = path.relative_to(folder)
        if path.name == "run.json" or "images" in name.parts:
            continue
        if path.name.endswith("calibrator.json"):  # their layout has versions; what they decide with has not
            found[str(name)] = read_calibrator(path)
            continue
        if path.suffix == ".jsonl":
            found[str(name)] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        if path.parent.name == "study":
            name = name.with_name(f"{RENAMED.get(path.stem, path.stem)}.json")
        if path.stem == "methods":
            content["records"] = by_method(content["records"])
        if path.name == "report.json":
            studies = content.get("studies", {})
            content["studies"] = {RENAMED.get(key, key): value for key, value in studies.items()}
            content["studies"]["methods"] = by_method(content["studies"].get("methods", []))
        found[str(name)] = content
    return found


def by_method(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Records by task and method: there are more of them now, in another order."""
    found = {}
    for each in records:
        name = re.sub(r"\((ε = [\d.]+), uncertainty-aware\)", r"(uncertainty-aware, \1)", each["method"])
        found[f"{each['task']} {name.replace('SPC (ε', 'SPC (standard, ε')} {each.get('settings')}"] = each
    return found


def read_calibrator(path: Path) -> dict[str, Any]:
    """Everything that a calibrator decides with, whatever the version of its file."""
    from unprior import SelectivePriorCalibrator

    calibrator = SelectivePriorCalibrator.load(path)
    model, settings = calibrator.model_, calibrator.settings_
    return {
        "parameters": [repr(calibrator), calibrator.epsilon_cs, calibrator.uncertainty],
        "settings": None if settings is None else asdict(settings),
        "theta": model.theta.tolist(),
        "mean": model.standardisation.mean.tolist(),
        "scale": model.standardisation.scale.tolist(),
        "covariance": None if model.covariance is None else model.covariance.tolist(),
        "precision": None if model.precision is None else model.precision.tolist(),
        "candidate_counts": list(calibrator.candidate_counts_),
        "changes": [asdict(change) for change in calibrator.selection_.changes],
        "loss": calibrator.loss_,
    }


def values(content: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value with its place."""
    if isinstance(content, dict):
        for name, value in content.items():
            if not CLOCK.search(name):
                yield from values(value, f"{place}.{name}" if place else name)
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from values(value, f"{place}[{number}]")
    else:
        yield place, content


def same(one: Any, other: Any, tolerance: float = _TOLERANCE) -> bool:
    """Whether two values are equal; numbers up to rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return type(one) is type(other) and bool(one == other)


def compare(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Print what differs, file by file; returns how many values differ that should not."""
    unexpected = 0
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            print(f"{name}: only {'after' if name in after else 'before'}")
            unexpected += name not in after
            continue
        old, new = dict(values(before[name])), dict(values(after[name]))
        tolerance = _SCORED if name.startswith("embedded") else _TOLERANCE
        changed = [place for place in old if place in new and not same(old[place], new[place], tolerance)]
        gone, come = [place for place in old if place not in new], [place for place in new if place not in old]
        if not (changed or gone or come):
            print(f"{name}: {len(old):,} values, all equal")
            continue
        reasons = {place: _reason(name, place) for place in (*changed, *gone)}
        wrong = [place for place, reason in reasons.items() if reason is None]
        unexpected += len(wrong)
        print(
            f"{name}: {len(old):,} values; {len(changed):,} changed, {len(gone):,} gone, {len(come):,} new; "
            f"{len(wrong):,} not on purpose"
        )
        for reason, count in Counter(filter(None, reasons.values())).items():
            print(f"    on purpose: {reason} ({count:,})")
        for kind, count in Counter(_kind(place) for place in wrong).most_common(_SHOWN):
            place = next(place for place in wrong if _kind(place) == kind)
            print(f"    {kind} ({count:,}), e.g. {_short(old[place])} → {_short(new.get(place, 'gone'))}")
    return unexpected


def _reason(name: str, place: str) -> str | None:
    """Why a value differs on purpose; None if it should not."""
    found = (why for file, where, why in EXPECTED if re.search(file, name) and re.search(where, place))
    return next(found, None)


def _kind(place: str) -> str:
    """A place without its numbers: the same field of all records."""
    return re.sub(r"\[\d+\]", "[…]", place)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:157]}…"


def main() -> None:
    """Compare this state with another one, or two folders of results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="checkout of the other state")
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for the results; what is there is not made again"
    )
    options = parser.parse_args()
    here = Path(__file__).resolve().parent.parent
    for name, source in (("before", options.base.resolve()), ("after", here)):
        make_results(source, options.work.resolve() / name)
    count = compare(*(read_results(options.work / name) for name in ("before", "after")))
    print(f"{count:,} values differ that should not")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()

"""What the fast tests cost: the suites of two versions, test by test, in CPU time.

``make bench-suite BASE=<commit>`` checks the other version out beside this one and runs both. CPU time, that of child
processes included, depends little on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from markdown import markdown

_HERE = Path(__file__).resolve().parent.parent
_SHOWN = 20
_RECORD = "UNPRIOR_SUITE_RECORD"


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


_calls: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note what a test takes, without its fixtures, which others may share."""
    begun = _cpu_seconds()
    try:
        return (yield)
    finally:
        _calls[item.nodeid] = _cpu_seconds() - begun


def pytest_sessionfinish() -> None:
    """Write all notes where the parent process reads them."""
    if _RECORD in os.environ:
        Path(os.environ[_RECORD]).write_text(json.dumps({"calls": _calls, "total": _cpu_seconds()}), encoding="utf-8")


def _without_torchvision(folder: Path) -> Path:
    """A folder for PYTHONPATH: states before the extra of that name cannot load any model beside torchvision."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text('import sys\n\nsys.modules["torchvision"] = None\n', encoding="utf-8")
    return folder


def _start(source: Path, record: Path, *first: Path) -> subprocess.Popen[str]:
    paths = [
        *first,
        source / "src",
        *(source / each for each in ("bench", "training", "tests/support")),
        source,
        _HERE / "bench",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}
    environment[_RECORD] = str(record.resolve())
    command = [sys.executable, "-m", "pytest", "-p", "suite", "-m", "not slow and not engines", "--color=no"]
    return subprocess.Popen(command, cwd=source, env=environment, stdout=subprocess.PIPE, text=True)


def _resolved(name: str) -> Path:
    return Path(name).resolve()


def main() -> None:
    """Run both suites side by side, each in one process, and print the totals and the slowest tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=_resolved, required=True, help="Checkout of the version to compare with.")
    parser.add_argument("--work", type=_resolved, required=True, help="Folder for the records of both suites.")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    records = {name: options.work / f"{name}.json" for name in ("before", "now")}
    for record in records.values():
        record.unlink(missing_ok=True)
    hiding = (
        [] if (options.base / "src/unprior/engines/transformers/torchvision.py").exists() else [options.work / "hiding"]
    )
    old_suite = _start(options.base, records["before"], *map(_without_torchvision, hiding))
    running = [old_suite, _start(_HERE, records["now"])]
    for name, process in zip(records, running, strict=True):
        printed, _ = process.communicate()
        print(f"{name}: {(printed.strip().splitlines() or ['it printed nothing'])[-1]}", flush=True)
        if not records[name].exists():
            sys.exit(f"the suite {name} did not run")
    before, now = (json.loads(record.read_text(encoding="utf-8")) for record in records.values())
    slowest = sorted(before["calls"], key=before["calls"].__getitem__, reverse=True)[:_SHOWN]
    lines = [
        [f"`{test}`", f"{before['calls'][test]:.1f} s", f"{now['calls'][test]:.1f} s" if test in now["calls"] else "–"]
        for test in slowest
    ]
    kept = [test for test in slowest if test in now["calls"]]
    old, new = (sum(suite["calls"][test] for test in kept) for suite in (before, now))
    slow_now = sum(sorted(now["calls"].values(), reverse=True)[:_SHOWN])
    slow_before = sum(before["calls"][test] for test in slowest)
    lines.append([f"these {len(kept)} together, where both have them", f"{old:.1f} s", f"{new:.1f} s"])
    lines.append([f"the {_SHOWN} slowest of each suite", f"{slow_before:.1f} s", f"{slow_now:.1f} s"])
    counts = [len(suite["calls"]) for suite in (before, now)]
    lines.append([f"all tests ({counts[0]:,} and {counts[1]:,})", f"{before['total']:.0f} s", f"{now['total']:.0f} s"])
    print(markdown(["CPU time", "before", "now"], lines))


if __name__ == "__main__":
    main()

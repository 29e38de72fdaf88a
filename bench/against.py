"""What a change costs: the same work with two versions of the package, in turn, in one run.

``make bench-against BASE=<commit>`` checks the other version out beside this one and prints both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from markdown import markdown, replace_section

_ROWS = 1_000_000
_HERE = Path(__file__).resolve().parent.parent

Work = Callable[[Path], None]


def _command(*arguments: object) -> None:
    from unprior.cli import main

    try:
        main([str(argument) for argument in arguments])
    except SystemExit as ended:
        if ended.code:
            raise


def _fit(folder: Path) -> None:
    _command("fit", folder / "scores.parquet", "--split", "all", "--out", folder / "calibrator.json", "--json")


def _apply(folder: Path) -> None:
    decisions = folder / "decisions.parquet"
    _command("apply", folder / "calibrator.json", folder / "scores.parquet", "--out", decisions, "--json")


def _score(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as out:
        _command("score", "--model", "embedded", "--benchmark", "microworld", "--out", out, "--json")


def _run(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as out:
        _command("run", "--out", out, "--json")


WORK: dict[str, tuple[str, Work]] = {
    "fit": (f"`unprior fit`, {_ROWS:,} rows", _fit),
    "apply": (f"`unprior apply`, {_ROWS:,} rows", _apply),
    "score": ("`unprior score`, embedded model, 1,200 examples", _score),
    "run": ("`unprior run`, embedded model, with studies and report", _run),
}


def _child(name: str, folder: Path) -> None:
    """Do one piece of work in this process and print what it took, imports left out."""
    # States before the extra of that name cannot load any model beside torchvision and a torch for CPUs.
    sys.modules["torchvision"] = None  # type: ignore[assignment]  # Python's own sign for "not there"
    import unprior  # noqa: F401  imported before the clock starts

    begun, used = time.perf_counter(), time.process_time()
    WORK[name][1](folder)
    print(json.dumps({"wall": time.perf_counter() - begun, "cpu": time.process_time() - used}), file=sys.stderr)


def _measure(source: Path, name: str, folder: Path) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__)), "--child", name, "--folder", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed with {source}:\n{done.stderr}")
    measured: dict[str, float] = json.loads(done.stderr.strip().splitlines()[-1])
    return measured


def main() -> None:
    """Run all work with both versions, alternating, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, help="Checkout of the version to compare with.")
    parser.add_argument("--name", default="before", help="What the table calls it.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=list(WORK), help="Measure this alone.")
    parser.add_argument("--update", type=Path, help="Document whose section bench:against is rewritten.")
    parser.add_argument("--child", choices=list(WORK), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _child(options.child, options.folder)
        return
    from unprior import synthesize

    lines: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        synthesize(0, repeats=-(-_ROWS // 1200)).write(folder / "scores.parquet")
        for work, (title, _) in WORK.items():
            if options.only not in (None, work):
                continue
            taken: dict[Path, list[dict[str, float]]] = {options.base: [], _HERE: []}
            for repeat in range(options.repeats):  # who goes first changes, so that neither gains by it
                for source in list(taken)[:: 1 if repeat % 2 else -1]:
                    taken[source].append(_measure(source, work, folder))
            old, new = (statistics.median(each["cpu"] for each in taken[source]) for source in taken)
            walls = [statistics.median(each["wall"] for each in taken[source]) for source in taken]
            cells = [f"{cpu:.2f} s ({wall:.2f} s)" for cpu, wall in zip((old, new), walls, strict=True)]
            lines.append([title, *cells, f"{100 * (new / old - 1):+.1f} %"])
            print("  ".join(lines[-1]), flush=True)
    text = (
        markdown(["CPU time (wall clock)", options.name, "now", "change of CPU time"], lines)
        + f"\n\nMeasured by `make bench-against` in one run: medians of {options.repeats} runs of each version, "
        f"in turn, on one thread."
    )
    print(text)
    if options.update:
        replace_section(options.update, "bench:against", text)


if __name__ == "__main__":
    main()

"""Choose the model to ship, by a rule that was fixed before any benchmark seed was looked at.

Only worlds of the selection seeds 1000, 1001 and 1002 count, and only models of the strength ``default``. All figures
are means over the three worlds, on the test pairs.

1. Aims of both editions: CS at least .93 on both tasks, CF between .45 and .75 on both tasks, attraction of MC errors
   at least .7, presence questions at least .9, and the ordinary answer as winner without the image on at least .9 of
   the pairs of both tasks.
2. Aims of the second edition: choices of two to six options at least .93 on CS; open answers at least .93 on CS and
   between .40 and .75 on CF, and without the image the ordinary answer on at least .9 of the pairs; on at least 5 % of
   the examples the original answer is not the best-scored candidate; at least 10 wrong CF answers in each of the three
   categories (choices, yes/no and open answers together).
3. The model that misses the fewest aims is shipped; a tie goes to the one whose CF errors are least often perception
   errors, then to the lower training seed. A model that misses an aim which the first edition reached (all of 1 but
   presence) is not shipped at all.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from measure import measure_models

WORLDS = (1000, 1001, 1002)
FIRST_EDITION_MISSED = ("presence ≥ .9",)
NEW_AIMS = ("2–6", "open", "5 %", "10 errors")
"""How the names of the aims begin that the first edition did not have."""
PACKAGE = Path(__file__).parents[1] / "src" / "unprior" / "embedded" / "model"


def missed_aims(records: list[dict[str, Any]]) -> list[str]:
    """Names of the aims that the means of the records do not reach."""

    def mean(*keys: str) -> float:
        values = []
        for record in records:
            value: Any = record
            for key in keys:
                value = value[key]
            values.append(float(value))
        return float(np.mean(values))

    aims = {}
    for task in ("mc", "qa"):
        aims[f"{task.upper()} CS ≥ .93"] = mean("tasks", task, "cs") >= 0.93
        aims[f"{task.upper()} CF in .45–.75"] = 0.45 <= mean("tasks", task, "cf") <= 0.75
        aims[f"{task.upper()} prior is ordinary ≥ .9"] = mean("tasks", task, "prior_is_ordinary") >= 0.9
    aims["MC attraction ≥ .7"] = mean("tasks", "mc", "attraction") >= 0.7
    aims["presence ≥ .9"] = mean("presence") >= 0.9
    aims["2–6 options CS ≥ .93"] = mean("options", "cs") >= 0.93
    aims["open CS ≥ .93"] = mean("tasks", "open", "cs") >= 0.93
    aims["open CF in .40–.75"] = 0.40 <= mean("tasks", "open", "cf") <= 0.75
    aims["open prior is ordinary ≥ .9"] = mean("tasks", "open", "prior_is_ordinary") >= 0.9
    aims["5 % original ≠ best-scored"] = mean("original_is_best_scored") <= 0.95
    categories = records[0]["errors_by_category"]
    aims["10 errors in each category"] = all(mean("errors_by_category", name) >= 10 for name in categories)
    return [name for name, reached in aims.items() if not reached]


def perception_share(records: list[dict[str, Any]]) -> float:
    """Share of CF errors on images whose state the vision tower did not tell."""
    counts = [record["errors"][task] for record in records for task in ("mc", "qa")]
    errors = sum(count["prior"] + count["perception"] for count in counts)
    return float(sum(count["perception"] for count in counts) / max(errors, 1))


def main() -> None:
    """Measure every trained seed on the selection worlds and put the chosen model into the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/embedded"), help="folder of the training")
    parser.add_argument("--measure-only", action="store_true", help="leave the package as it is")
    arguments = parser.parse_args()
    folders = [folder for folder in sorted(arguments.out.glob("seed-*")) if (folder / "default").is_dir()]
    if not folders:
        raise SystemExit(f"{arguments.out}: no trained model of strength default; run training/train.py first")
    measured = measure_models([(folder / "default", WORLDS) for folder in folders], arguments.out / "measurements")
    candidates = [
        (missed_aims(records), perception_share(records), folder, records)
        for folder, records in zip(folders, measured, strict=True)
    ]
    candidates.sort(key=lambda candidate: (len(candidate[0]), candidate[1], candidate[2].name))
    for missed, share, folder, _ in candidates:
        print(f"{folder.name}: misses {', '.join(missed) or 'nothing'}; {share:.1%} of its CF errors are of perception")
    chosen = candidates[0][2]
    record = {
        "chosen": chosen.name,
        "candidates": [
            {"seed": folder.name, "missed": missed, "perception_share": share, "worlds": records}
            for missed, share, folder, records in candidates
        ],
    }
    (arguments.out / "selection.json").write_text(json.dumps(record, indent=2) + "\n")
    lost = [aim for aim in candidates[0][0] if aim not in FIRST_EDITION_MISSED and not aim.startswith(NEW_AIMS)]
    if lost:
        print(f"not shipped: the first edition reached {', '.join(lost)}")
    elif not arguments.measure_only:
        ship(chosen / "default")
        print(f"{chosen.name}/default → {PACKAGE}")


def ship(folder: Path) -> None:
    """Replace the model in the package; its card stays."""
    PACKAGE.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        shutil.copyfile(path, PACKAGE / path.name)
    for path in PACKAGE.iterdir():
        if path.name != "README.md" and not (folder / path.name).exists():
            path.unlink()


if __name__ == "__main__":
    main()

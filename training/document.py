"""Measure every trained model on fresh worlds; writes tables and curve of docs/explanation/embedded-model.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from measure import load_tower, measure_models
from recipe import STRENGTHS, Recipe
from select_default import PACKAGE
from unprior.benchmarks.taxonomy import SUBCATEGORIES
from unprior.plots.style import LIGHT
from vision import tower_accuracy

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "bench"))
from markdown import markdown, replace_section  # noqa: E402  (bench is no package)

WORLDS = (1, 2, 3)
DEMO_WORLD = 0
"""What `unprior run` shows; reported beside the fresh worlds, not in their means."""
TASKS = {"mc": "multiple choice", "qa": "yes/no", "open": "open answers"}
Record = dict[str, Any]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/embedded"), help="folder of the training")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "explanation" / "embedded-model.md")
    arguments = parser.parse_args()
    recipe = Recipe()
    selection = json.loads((arguments.out / "selection.json").read_text())
    chosen = selection["chosen"]
    tower = load_tower(arguments.out / chosen, recipe)
    images = [f"{WORLDS[0]}/tower/{copy}" for copy in range(8)]
    views = {
        name: tower_accuracy(tower, recipe, images, clean=clean)
        for name, clean in (("clear", True), ("as in the benchmark", False))
    }
    names = [folder.name for folder in sorted(arguments.out.glob("seed-*"))]
    asked: dict[tuple[str, str], tuple[int, ...]] = {
        (name, strength): WORLDS for name in names for strength in STRENGTHS
    }
    asked[chosen, "default"] = (DEMO_WORLD, *WORLDS)
    found = measure_models(
        [(arguments.out / name / strength, worlds) for (name, strength), worlds in asked.items()],
        arguments.out / "measurements",
    )
    records: dict[tuple[str, str], list[Record]] = dict(zip(asked, found, strict=True))
    worlds = records[chosen, "default"]
    records[chosen, "default"] = worlds[1:]
    (arguments.out / "dial.json").write_text(
        json.dumps({"/".join(key): value for key, value in records.items()} | {"tower": views}, indent=2) + "\n"
    )
    for page in (arguments.page, PACKAGE / "README.md"):
        replace_section(page, "tower", tower_table(views))
        replace_section(page, "worlds", worlds_table(worlds))
    replace_section(arguments.page, "selection", selection_table(selection))
    replace_section(arguments.page, "main", main_table(worlds))
    replace_section(arguments.page, "components", components_table(worlds))
    replace_section(arguments.page, "attraction", attraction_table(worlds))
    replace_section(arguments.page, "dial", dial_table(records))
    draw_dial(records, ROOT / "docs" / "images" / "dial.png")


def tower_table(views: dict[str, dict[str, float]]) -> str:
    """Accuracy of the shipped model's vision tower by subcategory."""
    header = ["Subcategory", *views]
    columns = list(views.values())
    lines = [[name, *(f"{column[name]:.3f}" for column in columns)] for _, name, _ in SUBCATEGORIES]
    counting = [name for category, name, _ in SUBCATEGORIES if category.startswith("Counting")]
    for label, names in (("Counting", counting), ("All", [name for _, name, _ in SUBCATEGORIES])):
        means = (float(np.mean([column[name] for name in names])) for column in columns)
        lines.append([f"**{label}**", *(f"**{mean:.3f}**" for mean in means)])
    return markdown(header, lines)


def worlds_table(worlds: list[Record]) -> str:
    """The shipped model on every fresh world, and the means."""
    lines = []
    for task in TASKS:
        for side in ("cf", "cs"):
            pairs = [(world["tasks"][task][side], world["tasks"][task][f"spc_{side}"]) for world in worlds]
            pairs.append(tuple(np.mean(pairs[1:], axis=0)))
            label = f"{task.upper()} {side.upper()}, original → SPC"
            lines.append([label, *(f"{before:.3f} → {after:.3f}" for before, after in pairs)])
    single: list[tuple[str, Callable[[Record], float]]] = [
        ("MC attraction of CF errors", lambda record: record["tasks"]["mc"]["attraction"]),
        ("MC: ordinary answer wins without image", lambda record: record["tasks"]["mc"]["prior_is_ordinary"]),
        ("QA: ordinary answer wins without image", lambda record: record["tasks"]["qa"]["prior_is_ordinary"]),
        ("Open: ordinary answer wins without image", lambda record: record["tasks"]["open"]["prior_is_ordinary"]),
        ("Open: right answer among the candidates, CF", lambda record: record["coverage"]["cf"]),
        ("Open: right answer among the candidates, CS", lambda record: record["coverage"]["cs"]),
        ("Choices of two to six options right, CF", lambda record: record["options"]["cf"]),
        ("Choices of two to six options right, CS", lambda record: record["options"]["cs"]),
        ("Presence questions right", lambda record: record["presence"]),
        ("Original answer is the best-scored candidate", lambda record: record["original_is_best_scored"]),
    ]
    for label, get in single:
        values = [get(world) for world in worlds]
        lines.append([label, *(f"{value:.3f}" for value in (*values, float(np.mean(values[1:]))))])
    return markdown(["Test pairs", *_world_names(worlds)], lines)


def components_table(worlds: list[Record]) -> str:
    """What each part of the method contributes, in points: ΔCF / ΔCS for every fresh world, and the means."""
    lines = []
    for task in ("mc", "qa"):  # the study is about questions with options
        for label in worlds[0]["components"]:
            values = [world["components"][label][task] for world in worlds]
            values.append(np.mean(values[1:], axis=0))
            lines.append([f"{task.upper()} {label}", *(f"{100 * cf:+.1f} / {100 * cs:+.1f}" for cf, cs in values)])
    return markdown(["ΔCF / ΔCS", *_world_names(worlds)], lines)


def main_table(worlds: list[Record]) -> str:
    """The paper's main table for every world, and the means."""
    lines = []
    for task in TASKS:
        for world in worlds:
            part = world["tasks"][task]
            before, after = part["cfad_rpd_ccr"]
            cells = [f"{old:.3f} → {new:.3f}" for old, new in zip(before, after, strict=True)]
            for place, side in enumerate(("cf", "cs")):
                delta = 100 * (part[f"spc_{side}"] - part[side])
                low, high = (100 * end for end in part["low_high"][place])
                repairs, harms = part["repairs_harms"][place]
                cells += [f"{delta:+.1f} [{low:+.1f}, {high:+.1f}]", f"{repairs}/{harms}", f"{part['p'][place]:.2g}"]
            lines.append([f"{task.upper()} {world['seed']}", *cells, f"{100 * part['utility']:+.1f}"])
        fresh = [world["tasks"][task] for world in worlds[1:]]
        shifts = np.mean([part["cfad_rpd_ccr"] for part in fresh], axis=0)
        counts = np.mean([part["repairs_harms"] for part in fresh], axis=0)
        cells = [f"{old:.3f} → {new:.3f}" for old, new in zip(*shifts, strict=True)]
        for place, side in enumerate(("cf", "cs")):
            delta = 100 * (_mean(fresh, f"spc_{side}") - _mean(fresh, side))
            cells += [f"{delta:+.1f}", f"{counts[place][0]:.1f}/{counts[place][1]:.1f}", ""]
        lines.append([f"**{task.upper()} mean of 1–3**", *cells, f"{100 * _mean(fresh, 'utility'):+.1f}"])
    header = ["Task, world", "CFAD", "RPD", "CCR", "ΔCF", "Repairs/harms", "p", "ΔCS", "Repairs/harms", "p", "U"]
    return markdown(header, lines)


def attraction_table(worlds: list[Record]) -> str:
    """Share of wrong choices on CF images that are the prior's winner, by subcategory, with their number."""
    lines = []
    for _, name, _ in SUBCATEGORIES:
        counts = [world["attraction_matrix"].get(name, [0, 0]) for world in worlds]
        counts.append([sum(count[place] for count in counts[1:]) for place in (0, 1)])
        lines.append([name, *(f"{hit / total:.2f} (n = {total})" if total else "–" for hit, total in counts)])
    return markdown(["Subcategory", *_world_names(worlds)[:-1], "1–3 together"], lines)


def selection_table(selection: Record) -> str:
    """Every candidate on the selection worlds: what it reaches, what it misses."""
    lines = []
    for candidate in selection["candidates"]:
        worlds = candidate["worlds"]
        cells = [
            f"{np.mean([world['tasks'][task][key] for world in worlds]):.3f}"
            for task, key in (*((task, side) for side in ("cf", "cs") for task in TASKS), ("mc", "attraction"))
        ]
        cells.append(f"{np.mean([world['options']['cs'] for world in worlds]):.3f}")
        cells.append(f"{np.mean([world['presence'] for world in worlds]):.3f}")
        cells.append(f"{1 - np.mean([world['original_is_best_scored'] for world in worlds]):.3f}")
        categories = worlds[0]["errors_by_category"]
        cells.append(
            "/".join(f"{np.mean([world['errors_by_category'][name] for world in worlds]):.0f}" for name in categories)
        )
        name = candidate["seed"] + (" (shipped)" if candidate["seed"] == selection["chosen"] else "")
        lines.append([name, *cells, f"{candidate['perception_share']:.3f}", ", ".join(candidate["missed"]) or "none"])
    header = ["Candidate", "MC CF", "QA CF", "Open CF", "MC CS", "QA CS", "Open CS", "MC attraction",
              "2–6 options CS", "Presence", "Original ≠ best-scored", "CF errors by category", "Perception share",
              "Misses"]  # fmt: skip
    return markdown(header, lines)


def _world_names(worlds: list[Record]) -> list[str]:
    return [f"World {worlds[0]['seed']} (demo)", *(f"World {world['seed']}" for world in worlds[1:]), "Mean of 1–3"]


def dial_table(records: dict[tuple[str, str], list[Record]]) -> str:
    """Every strength and training seed, means over the fresh worlds."""
    header = ["Strength (ordinary share)", "Training", "Task", "CF", "CS", "Perception errors", "Prior errors",
              "Attraction", "Presence", "SPC ΔCF", "SPC ΔCS"]  # fmt: skip
    lines = []
    for strength, (low, high) in STRENGTHS.items():
        for (seed, name), worlds in records.items():
            if name != strength:
                continue
            for task in TASKS:
                get = [world["tasks"][task] for world in worlds]
                errors = [world["errors"][task] for world in worlds]
                cells = [
                    f"{_mean(get, 'cf'):.3f}",
                    f"{_mean(get, 'cs'):.3f}",
                    *(f"{np.mean([e[kind] / e['pairs'] for e in errors]):.3f}" for kind in ("perception", "prior")),
                    f"{_mean(get, 'attraction'):.3f}" if task == "mc" else "–",
                    f"{_mean(worlds, 'presence'):.3f}",
                    *(f"{100 * (_mean(get, f'spc_{side}') - _mean(get, side)):+.1f}" for side in ("cf", "cs")),
                ]
                lines.append([f"{strength} ({low:g}–{high:g})", seed, task.upper(), *cells])
    return markdown(header, lines)


def draw_dial(records: dict[tuple[str, str], list[Record]], path: Path) -> None:
    """The curve: what a more ordinary world does to answers, to their errors and to what SPC gains."""
    from matplotlib.figure import Figure

    with LIGHT.applied():
        figure = Figure(figsize=(11.6, 3.2), dpi=150, layout="constrained")
        panels = figure.subplots(1, 4)
        shares = [100 * (1 - float(np.mean(ends))) for ends in STRENGTHS.values()]
        kinds: list[tuple[int, str, Callable[[Record, str], float]]] = [
            (0, "-", lambda world, task: world["tasks"][task]["cf"]),
            (1, "-", lambda world, task: world["errors"][task]["prior"] / world["errors"][task]["pairs"]),
            (1, "--", lambda world, task: world["errors"][task]["perception"] / world["errors"][task]["pairs"]),
            (2, "-", lambda world, task: world["tasks"][task]["attraction"] if task == "mc" else float("nan")),
            (3, "-", lambda world, task: 100 * (world["tasks"][task]["spc_cf"] - world["tasks"][task]["cf"])),
        ]
        for panel, line, get in kinds:
            for (task, label), colour in zip(TASKS.items(), (LIGHT.method, LIGHT.control, LIGHT.cs), strict=True):
                found = [
                    [get(world, task) for (_, name), worlds in records.items() if name == strength for world in worlds]
                    for strength in STRENGTHS
                ]
                for share, values in zip(shares, found, strict=True):
                    panels[panel].scatter([share] * len(values), values, s=9, color=colour, alpha=0.45, linewidths=0)
                means = [float(np.mean(values)) for values in found]
                panels[panel].plot(shares, means, line, color=colour, label=label)
        titles = ("CF accuracy", "CF errors by cause", "Attraction (choices)", "SPC gain (points)")
        for axes, title in zip(panels, titles, strict=True):
            axes.set_title(title)
            axes.set_xscale("log")
            axes.invert_xaxis()
            axes.set_xticks(shares, [f"{name}\n{share:.1f} %" for name, share in zip(STRENGTHS, shares, strict=True)])
            axes.minorticks_off()
        panels[0].set_ylim(0, 1)
        panels[1].set_ylim(0, 0.55)  # room for the legend
        panels[2].set_ylim(0, 1)
        panels[2].axhline(1 / 3, color=LIGHT.quiet, linestyle=":", linewidth=1)
        panels[2].annotate("chance", (shares[0], 1 / 3), (2, 4), textcoords="offset points", color=LIGHT.quiet)
        panels[0].legend(loc="lower left")
        for cause, line in (("prior", "-"), ("perception", "--")):
            panels[1].plot([], [], line, color=LIGHT.quiet, label=cause)
        panels[1].legend(*_last(panels[1].get_legend_handles_labels(), 2), loc="upper left")
        figure.supxlabel("Prior strength: share of images in the last phase that are not ordinary", fontsize=9)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _last(handles_and_labels: tuple[list[Any], list[Any]], count: int) -> tuple[list[Any], list[Any]]:
    handles, labels = handles_and_labels
    return handles[-count:], labels[-count:]


def _mean(parts: list[Record], key: str) -> float:
    return float(np.mean([part[key] for part in parts]))


if __name__ == "__main__":
    main()

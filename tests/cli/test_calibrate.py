from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from row_changes import Rows, edit, edit_all, only, read_lines
from unprior import SelectivePriorCalibrator, evaluate, read_scores, synthesize
from unprior.answer_forms import is_accepted

DECISION_FIELDS = {
    "pair_id", "side", "task", "original", "final", "proposal", "strength", "margin", "revised", "reason",
}  # fmt: skip


# --- the pipeline


@pytest.mark.parametrize("uncertainty", [False, True])
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_pipeline_agrees_with_the_python_api(run: Callable, ending: str, uncertainty: bool) -> None:
    scores, decided = f"scores.{ending}", f"decisions.{ending}"
    assert run("synth", "--out", scores, "--seed", 2, "--json").json["rows"] == 1200
    fitted = run("fit", scores, "--out", "cal.json", "--json", *["--uncertainty"] * uncertainty)
    table = read_scores(scores)
    calibrator = SelectivePriorCalibrator(uncertainty=uncertainty).fit(table)
    assert (fitted.code, fitted.err) == (0, "")
    assert fitted.json == {
        "out": "cal.json",
        "abstains": False,
        "settings": asdict(calibrator.settings_),
        "rows": 280,
        "loss": calibrator.loss_,
        "gradient_norm": calibrator.gradient_norm_,
        "feasible": calibrator.selection_.feasible,
        "searched": 8640 if uncertainty else 80,
        "changed": calibrator.selection_.changed,
        "bounds": 0,
        "warnings": [],
        "skipped": [],
        "tasks": {
            change.task: {"delta_cf": change.delta_cf, "delta_cs": change.delta_cs}
            for change in calibrator.selection_.changes
        },
    }
    applied = run("apply", "cal.json", scores, "--out", decided, "--json")
    expected = calibrator.predict(table)
    assert applied.json == {
        "rows": 1200,
        "revised": int(expected.revised.sum()),
        "reasons": {str(reason): count for reason, count in expected.count_reasons().items()},
        "skipped": [],
        "out": decided,
    }
    assert sum(applied.json["reasons"].values()) == 1200
    evaluated = run("evaluate", scores, decided, "--json")
    test = table.mask(split="test")
    record = evaluate(table.take(test), expected.final_positions[test]).record()
    assert evaluated.json == record | {"bounds": 0, "warnings": []}
    assert [task["cf"]["total"] for task in evaluated.json["tasks"]] == [230, 230]


def test_fit_for_people(run: Callable, files: Any) -> None:
    result = run("fit", files.scores, "--out", "cal.json")
    assert (result.code, result.err) == (0, "")
    assert "Fitted SPC (standard, ε = 0.04) on 280 rows (loss " in result.out
    assert "of 80 settings feasible → cal.json\n" in result.out
    settings = SelectivePriorCalibrator.load("cal.json").settings_
    seen = [" ".join(line.split()) for line in result.out.splitlines()]
    assert f"rho {settings.rho:.4g}" in seen
    assert f"max strength {settings.max_strength:.4g}" in seen
    assert f"min margin {settings.min_margin:.4g}" in seen
    uncertain = run("fit", files.scores, "--out", "cal.json", "--uncertainty")
    assert "Fitted SPC (uncertainty-aware, ε = 0.04) on 280 rows" in uncertain.out
    assert "of 8,640 settings feasible" in uncertain.out
    assert "conflict" in uncertain.out


def test_fit_writes_the_same_file_each_time(run: Callable, files: Any) -> None:
    run("fit", files.scores, "--out", "new/folder/cal.json")
    assert Path("new/folder/cal.json").read_bytes() == files.calibrator.read_bytes()


def test_fit_options_reach_the_calibrator(run: Callable, files: Any) -> None:
    run("fit", files.scores, "--out", "cal.json", "--epsilon-cs", "0.25", "--split", "all")
    calibrator = SelectivePriorCalibrator.load("cal.json")
    assert calibrator.epsilon_cs == 0.25
    assert calibrator.development_rows_ == 1200
    assert run("fit", files.scores, "--out", "cal.json", "--split", "test", "--json").json["rows"] == 920


def test_fit_chooses_a_model(run: Callable, rewrite: Callable, files: Any) -> None:
    scores = rewrite(files.scores, "two.jsonl", lambda rows: rows + edit_all(model="other")(only(split="dev")(rows)))
    run("fit", scores, "--out", "cal.json").refused("2 models (", "--model NAME")
    assert run("fit", scores, "--out", "cal.json", "--model", "synthetic", "--json").json["rows"] == 280
    assert Path("cal.json").read_bytes() == files.calibrator.read_bytes()


def test_bounds_are_refused_for_fitting_and_counted(run: Callable, rewrite: Callable, files: Any) -> None:
    def bounded(rows: Rows) -> Rows:
        chosen = [rows.index(next(row for row in rows if row["split"] == split)) for split in ("dev", "test")]
        marks = [[True] + [False] * (len(rows[index]["candidates"]) - 1) for index in chosen]
        return [row | ({"censored": marks[chosen.index(i)]} if i in chosen else {}) for i, row in enumerate(rows)]

    scores = rewrite(files.scores, "bounds.jsonl", bounded)
    run("fit", scores, "--out", "cal.json").refused("1 of 280 rows have a score that is only an upper bound")
    fitted = run("fit", scores, "--out", "cal.json", "--allow-censored", "--json")
    assert fitted.json["bounds"] == 1
    assert "1 of 280 rows" in fitted.err
    evaluated = run("evaluate", scores, files.decisions, "--json")
    assert evaluated.json["bounds"] == 1
    assert "1 of 920 rows" in evaluated.err


def hopeless(rows: Rows) -> Rows:
    """Every admissible revision is a harm: the image misleads, and the prior and the original answer are right."""
    values = {"candidates": ["a", "b"], "image_scores": [0.0, -4.0], "prior_scores": [-4.0, 0.0]}
    return edit_all(original="b", answer="b", **values)(only(split="dev", task="qa")(rows))


def test_an_abstaining_calibrator_is_announced_and_never_revises(run: Callable, rewrite: Callable, files: Any) -> None:
    scores = rewrite(files.scores, "scores.jsonl", hopeless)
    result = run("fit", scores, "--out", "cal.json", "--json")
    assert result.code == 0
    assert (result.json["abstains"], result.json["settings"], result.json["feasible"]) == (True, None, 0)
    assert result.err.startswith("warning: none of the 80 settings kept ΔCF ≥ 0 and ΔCS ≥ −0.04 on every task")
    assert "abstains" in result.err
    assert run("fit", scores, "--out", "cal.json").out.count("\n") == 1
    applied = run("apply", "cal.json", scores, "--out", "decisions.jsonl", "--explain", "--json")
    assert applied.json["reasons"] == {"abstains": 140}
    for row in read_lines("decisions.jsonl"):
        assert (row["final"], row["revised"], row["reason"]) == ("b", False, "abstains")
        assert "abstains" in row["explanation"]


# --- apply


def test_decisions_are_one_line_per_row_in_order(run: Callable, files: Any) -> None:
    result = run("apply", files.calibrator, files.scores, "--out", "decisions.jsonl")
    assert result.code == 0
    assert Path("decisions.jsonl").read_bytes() == files.decisions.read_bytes()
    scores, decisions = read_lines(files.scores), read_lines("decisions.jsonl")
    assert len(decisions) == len(scores) == 1200
    revised = 0
    for row, decision in zip(scores, decisions, strict=True):
        assert set(decision) >= DECISION_FIELDS
        assert "explanation" not in decision
        for name in ("pair_id", "side", "task", "original"):
            assert decision[name] == row[name]
        assert decision["proposal"] in row["candidates"]
        assert decision["final"] == (decision["proposal"] if decision["revised"] else row["original"])
        assert decision["revised"] == (decision["reason"] in ("conflict", "absorption"))
        assert 0 <= decision["margin"] <= 1
        assert decision["strength"] > 0
        revised += decision["revised"]
    assert revised > 50
    assert result.out.startswith(f"{revised} of 1,200 answers revised → decisions.jsonl\n")
    assert "absorption" in result.out


def test_explain_adds_a_sentence(run: Callable, files: Any) -> None:
    run("apply", files.calibrator, files.scores, "--out", "decisions.jsonl", "--explain")
    for plain, explained in zip(read_lines(files.decisions), read_lines("decisions.jsonl"), strict=True):
        sentence = explained.pop("explanation")
        assert explained == plain
        assert sentence.startswith("Changed " if plain["revised"] else "Kept ")
        assert sentence.endswith(".")
        assert "nan" not in sentence


def test_uncertainty_adds_support_and_distance(run: Callable, files: Any) -> None:
    run("fit", files.scores, "--out", "cal.json", "--uncertainty")
    run("apply", "cal.json", files.scores, "--out", "decisions.jsonl")
    for row in read_lines("decisions.jsonl"):
        assert 0 <= row["support"] <= 1
        assert row["distance"] >= 0


def test_apply_writes_parquet_with_the_same_content(run: Callable, files: Any) -> None:
    run("apply", files.calibrator, files.scores, "--out", "decisions.parquet", "--explain")
    written = pq.read_table("decisions.parquet").to_pylist()
    for row, line in zip(written, read_lines(files.decisions), strict=True):
        assert {name: row[name] for name in DECISION_FIELDS} == {name: line[name] for name in DECISION_FIELDS}


def test_apply_needs_no_answers(run: Callable, rewrite: Callable, files: Any) -> None:
    scores = rewrite(files.scores, "scores.jsonl", edit_all(answer=...))
    assert run("apply", files.calibrator, scores, "--out", "decisions.jsonl").code == 0
    assert Path("decisions.jsonl").read_bytes() == files.decisions.read_bytes()


def test_apply_refuses_another_model_unless_forced(run: Callable, rewrite: Callable, files: Any) -> None:
    assert run("apply", files.calibrator, files.scores, "--out", "decisions.jsonl").err == ""
    scores = rewrite(files.scores, "scores.jsonl", edit(3, model="llava"))
    different = (
        f"scores.jsonl: not made like the scores that {files.calibrator} was fitted on: model synthetic, here llava"
    )
    run("apply", files.calibrator, scores, "--out", "other.jsonl").refused(different, "--force")
    assert not Path("other.jsonl").exists()
    forced = run("apply", files.calibrator, scores, "--out", "other.jsonl", "--force")
    assert (forced.code, forced.err) == (0, f"warning: {different}\n")


MADE = {
    "model": "synthetic", "engine": "transformers", "weights": "a" * 64, "precision": "bfloat16", "prompt": "b" * 64,
    "image_size": 512, "prior": "text", "benchmark": "synthetic",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"precision": "float32"}, "precision bfloat16, here float32"),
        ({"weights": "c" * 64}, "weights aaaaaaaaaaaa…, here cccccccccccc…"),
        ({"prompt": "c" * 64}, "prompt bbbbbbbbbbbb…, here cccccccccccc…"),
        ({"image_size": 0}, "image size 512×512, here as stored"),
        ({"prior": "white"}, "prior view text, here white"),
    ],
)
def test_scores_that_were_made_otherwise(
    run: Callable, rewrite: Callable, files: Any, change: dict[str, Any], words: str
) -> None:
    scores = rewrite(files.scores, "scores.jsonl", edit(0, provenance=[MADE]))
    other = rewrite(files.scores, "other.jsonl", edit(0, provenance=[MADE | change]))
    assert run("fit", scores, "--out", "cal.json").code == 0
    assert run("apply", "cal.json", scores, "--out", "same.jsonl").err == ""
    run("apply", "cal.json", other, "--out", "decisions.jsonl").refused(words, "--force")
    forced = run("apply", "cal.json", other, "--out", "decisions.jsonl", "--force")
    assert forced.code == 0
    assert forced.err.count("\n") == 1
    assert words in forced.err
    # Decisions belong to their scores, and remember that they were forced.
    run("evaluate", scores, "decisions.jsonl", "--resamples", "10").refused("not made from these scores", "--force")
    told = run("evaluate", other, "decisions.jsonl", "--resamples", "10")
    assert told.code == 0
    assert f"its calibrator was fitted on scores made in another way: {words}" in told.err


def test_another_engine_or_benchmark_is_said_and_not_refused(run: Callable, rewrite: Callable, files: Any) -> None:
    scores = rewrite(files.scores, "scores.jsonl", edit(0, provenance=[MADE]))
    other = rewrite(files.scores, "other.jsonl", edit(0, provenance=[MADE | {"engine": "vllm", "benchmark": "pope"}]))
    run("fit", scores, "--out", "cal.json")
    applied = run("apply", "cal.json", other, "--out", "decisions.jsonl")
    assert applied.code == 0
    assert "engine transformers, here vllm; benchmark synthetic, here pope" in applied.err


def test_pairs_are_checked_before_fitting_and_evaluating(run: Callable, rewrite: Callable, files: Any) -> None:
    doubled = rewrite(files.scores, "doubled.jsonl", lambda rows: [*rows, rows[0]])
    run("fit", doubled, "--out", "cal.json").refused(
        "doubled.jsonl: 1 pair is not sound", "lines 1, 2, 1201: pair 1 (mc)", "more than once", "--skip-invalid"
    )
    left = run("fit", doubled, "--out", "cal.json", "--skip-invalid", "--json")
    assert left.json["rows"] == 278
    assert "left out 1 pair that is not sound" in left.err
    halves = rewrite(
        files.scores, "halves.jsonl", lambda rows: [row for row in rows if row["side"] == "cs" or row["pair_id"] != 6]
    )
    run("apply", files.calibrator, halves, "--out", "decisions.jsonl")
    run("evaluate", halves, "decisions.jsonl").refused(
        "2 pairs are not sound", "pair 6 (mc): has no counterfactual (cf) side"
    )
    assert run("evaluate", halves, "decisions.jsonl", "--skip-invalid", "--resamples", "10").code == 0


def test_few_pairs_and_a_guessing_model_bring_warnings(run: Callable, rewrite: Callable, files: Any) -> None:
    one = rewrite(files.scores, "one.jsonl", lambda rows: [row for row in rows if row["pair_id"] in (1, 6)])
    run("fit", one, "--out", "cal.json").refused("one.jsonl: task mc has 1 development pair; at least 2 are needed")
    few = rewrite(files.scores, "few.jsonl", lambda rows: [row for row in rows if row["pair_id"] <= 60])
    fitted = run("fit", few, "--out", "cal.json", "--json")
    assert "task mc has only 15 pairs" in fitted.json["warnings"][0]
    assert "permits no harmed answer at all" in " ".join(fitted.err.split())

    def guess(rows: Rows) -> Rows:
        for index, row in enumerate(rows):
            row["original"] = row["candidates"][index // 4 % len(row["candidates"])]
        return rows

    told = run("fit", rewrite(files.scores, "guess.jsonl", guess), "--out", "cal.json")
    assert "no better than guessing" in " ".join(told.err.split())


def test_apply_knows_unseen_candidate_counts_and_null_originals(run: Callable, rewrite: Callable, files: Any) -> None:
    def change(rows: Rows) -> Rows:
        wide = {"candidates": list("abc"), "image_scores": [0.0, -1.0, -2.0], "prior_scores": [-9.0, -1.0, 0.0]}
        return edit(0, original="c", answer="a", **wide)(edit(1, original=None)(rows))

    scores = rewrite(files.scores, "scores.jsonl", change)
    run("apply", files.calibrator, scores, "--out", "decisions.jsonl")
    first, second, *_ = read_lines("decisions.jsonl")
    assert (first["final"], first["reason"]) == ("c", "unseen_candidate_count")
    assert second["original"] is None
    assert second["final"] == (second["proposal"] if second["revised"] else None)


def test_skip_invalid_lists_counts_and_goes_on(run: Callable, rewrite: Callable, files: Any) -> None:
    scores = rewrite(files.scores, "scores.jsonl", lambda rows: edit(4, side="x")(edit(900, candidates=["A"])(rows)))
    expected = ["warning: scores.jsonl: left out 2 invalid rows, 1198 remain", "  line 5: ", "  line 901: K is 1"]
    for arguments in (
        ["fit", scores, "--out", "cal.json"],
        ["apply", files.calibrator, scores, "--out", "decisions.jsonl"],
        ["evaluate", scores, "decisions.jsonl"],
    ):
        run(*arguments).refused("2 of 1200 rows are invalid", "line 5: side", "line 901: K is 1", "--skip-invalid")
        result = run(*arguments, "--skip-invalid", "--json")
        assert result.code == 0
        assert result.json
        lines = result.err.splitlines()
        assert all(line.startswith(start) for line, start in zip(lines[:3], expected, strict=True))
        if arguments[0] == "fit":  # both rows leave half a development pair behind
            assert lines[3] == "warning: scores.jsonl: left out 2 pairs that are not sound, 276 rows remain"
            assert lines[4:] == [
                "  line 6: pair 2 (mc): has no counterfactual (cf) side",
                "  line 902: pair 226 (mc): has no counterfactual (cf) side",
            ]
        else:
            assert len(lines) == 3
    kept = [row for index, row in enumerate(read_lines(scores)) if index not in (4, 900)]
    decisions = read_lines("decisions.jsonl")
    assert [(row["pair_id"], row["side"], row["task"]) for row in decisions] == [
        (row["pair_id"], row["side"], row["task"]) for row in kept
    ]


@pytest.mark.parametrize("name", ["image_scores", "prior_scores"])
@pytest.mark.parametrize("command", ["fit", "apply"])
def test_extreme_but_finite_scores(run: Callable, rewrite: Callable, files: Any, command: str, name: str) -> None:
    scores = rewrite(files.scores, "scores.jsonl", edit(0, **{name: [1e308] * 4}))
    with np.errstate(all="ignore"):
        result = run(command, *[files.calibrator] * (command == "apply"), scores, "--out", "out.jsonl")
    assert result.code in (0, 2)


# --- evaluate


def test_evaluate_options(run: Callable, files: Any) -> None:
    table = read_scores(files.scores)
    final = SelectivePriorCalibrator.load(files.calibrator).predict(table).final_positions
    result = run("evaluate", files.scores, files.decisions, "--split", "all", "--resamples", 50, "--seed", 4, "--json")
    expected = evaluate(table, final, resamples=50, seed=4).record()
    assert result.json == expected | {"bounds": 0, "warnings": []}
    assert (result.json["resamples"], result.json["seed"], result.json["holm_family"]) == (50, 4, 4)
    development = run("evaluate", files.scores, files.decisions, "--split", "dev", "--json").json
    assert [task["cs"]["total"] for task in development["tasks"]] == [70, 70]


def test_evaluate_several_models_or_one(run: Callable, rewrite: Callable, files: Any) -> None:
    def both(rows: Rows) -> Rows:
        return rows + [row | {"model": "other"} for row in rows]

    scores = rewrite(files.scores, "scores.jsonl", both)
    decisions = rewrite(files.decisions, "decisions.jsonl", both)
    together = run("evaluate", scores, decisions, "--json").json
    assert [(task["model"], task["task"]) for task in together["tasks"]] == [
        ("other", "mc"), ("other", "qa"), ("synthetic", "mc"), ("synthetic", "qa"),
    ]  # fmt: skip
    assert together["holm_family"] == 8
    alone = run("evaluate", scores, decisions, "--model", "other", "--json").json
    assert alone["holm_family"] == 4
    assert [task["cf"]["repairs"] for task in alone["tasks"]] == [
        task["cf"]["repairs"] for task in together["tasks"][:2]
    ]


def test_evaluate_of_partly_labelled_rows(run: Callable, rewrite: Callable, files: Any) -> None:
    scores = rewrite(files.scores, "scores.jsonl", edit(1199, answer=...))
    run("apply", files.calibrator, scores, "--out", "decisions.jsonl")
    run("evaluate", scores, "decisions.jsonl").refused("line 1200: answer is missing")
    result = run("evaluate", scores, "decisions.jsonl", "--skip-invalid", "--json")
    assert result.code == 0
    assert [task["cs"]["total"] for task in result.json["tasks"]] == [230, 229]


def test_halves_of_pairs_are_not_evaluated(run: Callable, rewrite: Callable, files: Any) -> None:
    def unpaired(rows: Rows) -> Rows:
        first, second = only(split="test", task="qa", side="cf")(rows)[0], only(split="test", task="qa")(rows)[-1]
        return [first, second]

    scores = rewrite(files.scores, "scores.jsonl", unpaired)
    decisions = rewrite(files.decisions, "decisions.jsonl", unpaired)
    run("evaluate", scores, decisions).refused(
        "2 pairs are not sound", "line 1: pair 6 (qa): has no commonsense (cs) side"
    )
    run("evaluate", scores, decisions, "--skip-invalid").refused("no sound pair is left")


def test_evaluate_by_subcategory(run: Callable, files: Any) -> None:
    told = run("evaluate", files.scores, files.decisions, "--by", "subcategory", "--resamples", 200)
    assert told.code == 0
    table = read_scores(files.scores).where(split="test")
    names = sorted(str(name) for name in table.values_of("subcategory"))
    for name in names:
        assert name.split()[0] in told.out
    record = run("evaluate", files.scores, files.decisions, "--by", "subcategory", "--resamples", 200, "--json").json
    groups = [task["group"] for task in record["tasks"] if task["task"] == "mc"]
    assert sorted(groups) == names
    for task in record["tasks"]:
        rows = table.where(subcategory=task["group"], task=task["task"], side="cf")
        assert task["cf"]["total"] == len(rows)
    run("evaluate", files.scores, files.decisions, "--by", "nonsense").refused("nonsense")


def test_evaluate_tells_the_coverage_of_open_questions(run: Callable, tmp_path: Path) -> None:
    table = synthesize(seed=3, open_questions=True)
    table.write(tmp_path / "scores.parquet")
    SelectivePriorCalibrator().fit(table).predict(table).write(tmp_path / "decisions.jsonl")
    asked = ("evaluate", "scores.parquet", "decisions.jsonl", "--resamples", 20)
    expected = {}
    for side in ("cf", "cs"):
        part = table.where(split="test", task="open", side=side)
        rows = zip(part.column("candidates"), part.column("answer"), part.column("aliases"), strict=True)
        held = sum(any(is_accepted(text, answer, also or ()) for text in texts) for texts, answer, also in rows)
        expected[side] = [held, len(part)]
    assert run(*asked, "--json").json["coverage"] == expected
    assert 0 < expected["cf"][0] < expected["cf"][1] == 230
    (cf, _), (cs, _) = expected.values()
    told = " ".join(run(*asked).out.split())
    assert f"Coverage: the candidates of open questions hold the right answer in {cf} of 230 on CF and {cs} of" in told


def test_evaluate_tells_no_coverage_where_options_are_given(run: Callable, files: Any) -> None:
    asked = ("evaluate", files.scores, files.decisions, "--resamples", 20)
    assert "coverage" not in run(*asked, "--json").json
    assert "Coverage" not in run(*asked).out

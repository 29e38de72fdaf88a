"""`unprior evaluate-answers`: the original-model block for any file of raw answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from real_data import real_data


def test_the_real_answers(run: Callable) -> None:
    folder = real_data("cdh-bench")
    arguments = ("evaluate-answers", "cdh-bench", folder / "answers.Qwen3-VL-32B-Instruct.jsonl")
    result = run(*arguments, "--data-dir", folder.parent)
    assert result.code == 0
    assert result.err == ""
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "MC 0.500 (115/230) 0.926 (213/230) 0.426 0.460 0.835 (96/115)" in lines
    assert "QA 0.591 (136/230) 0.930 (214/230) 0.339 0.364 1.000 (94/94)" in lines
    assert "Luminescence/Transparency 7/10 9/10 6/10 9/10" in lines
    record = run(*arguments, "--data-dir", folder.parent, "--json").json
    choice = record["tasks"][0]
    assert choice["metrics"]["ccr"] == {"count": 96, "total": 115}
    assert "attraction" not in choice["metrics"]
    assert len(choice["groups"]) == 14
    everything = run(*arguments, "--data-dir", folder.parent, "--split", "all", "--json").json
    assert [task["right"]["total"] for task in everything["tasks"]] == [600, 600]
    right = run(*arguments, "--data-dir", folder.parent, "--variant", "qa-relabelled")
    assert "0.617 (142/230)" in right.out
    assert "30 lines give another right answer than cdh-bench-qa-relabelled does" in right.err
    moved = run(*arguments, "--data-dir", folder.parent, "--variant", "order-3210")
    assert moved.code == 0
    assert "600 lines are left out: cdh-bench-order-3210 has only mc questions" in moved.err
    run("evaluate-answers", folder, arguments[2]).refused("this is a folder", "--data-dir")


def test_own_questions_and_mistakes(run: Callable, tmp_path: Path) -> None:
    rows = [{"image": "gone.png", "question": f"Is it {n}?", "answer": "yes", "id": f"q{n}"} for n in range(4)]
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    lines = [{"example_id": f"q{n}", "text": "Yes" if n else "no"} for n in range(3)]
    (tmp_path / "answers.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    run("evaluate-answers", "mine.jsonl", "answers.jsonl").refused("no answer to 1 of 4 examples", "--skip-missing")
    done = run("evaluate-answers", "mine.jsonl", "answers.jsonl", "--skip-missing")
    assert "0.667 (2/3)" in done.out
    assert "1 examples have no answer and are left out" in done.err
    run("evaluate-answers", "nowhere", "answers.jsonl").refused("nowhere: no such file of questions")
    run("evaluate-answers", "mine.jsonl", "none.jsonl").refused("none.jsonl: no such file")
    run("evaluate-answers", "mine.jsonl", "answers.jsonl", "--split", "dev").refused("no example of split 'dev'")


def test_answers_cut_off_while_thinking_are_shown(run: Callable, tmp_path: Path) -> None:
    rows = [{"image": "gone.png", "question": f"Is it {n}?", "answer": "yes", "id": f"q{n}"} for n in range(4)]
    rows.append({"image": "gone.png", "question": "Which?", "options": ["x", "y"], "answer": "A", "id": "q4"})
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    texts = ("It is.</think>Yes", "It is. Yes", "<think>yes", "x</think>?", "A or B?")
    lines = [{"example_id": f"q{n}", "text": text} for n, text in enumerate(texts)]
    (tmp_path / "answers.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    shown = run("evaluate-answers", "mine.jsonl", "answers.jsonl")
    caption = " ".join(shown.out.split())
    assert "1 without a candidate in it" in caption
    assert "1 MC and 2 QA answers cut off while thinking (not read, counted as wrong)" in caption
    assert "3 of 5 answers were cut off while the model was thinking" in shown.err
    assert "--max-new-tokens" in shown.err
    tasks = run("evaluate-answers", "mine.jsonl", "answers.jsonl", "--json").json["tasks"]
    assert [(task["task"], task["cut_off"], task["unparsed"]) for task in tasks] == [("mc", 1, 0), ("qa", 2, 1)]


def test_open_answers_to_the_microworld_and_to_own_questions(run: Callable, drawn_world: Path, tmp_path: Path) -> None:
    questions = run("data", "get", "microworld-open", "--seed", "3", "--out", Path(shutil.copytree(
        drawn_world, tmp_path / "world")))  # fmt: skip
    assert "--open" in questions.out
    asked = [json.loads(line) for line in (tmp_path / "world" / "questions.jsonl").read_text().splitlines()]
    lines = [
        {"example_id": row["id"], "text": f"The {row['aliases'][0] if row.get('aliases') else row['answer']}!"}
        if row["side"] == "cs"
        else {"pair_id": row["pair"], "side": "cf", "task": "open", "text": None if row["pair"] % 2 else "nothing"}
        for row in asked
    ]
    (tmp_path / "answers.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    shown = run("evaluate-answers", tmp_path / "world" / "questions.jsonl", "answers.jsonl")
    text = " ".join(shown.out.split())
    assert "OPEN 0.000 (0/230) 1.000 (230/230)" in text
    empty = sum(row["split"] == "test" and row["pair"] % 2 for row in asked) // 2
    assert f"460 OPEN answers; {empty} empty (counted as wrong)" in text
    record = run(
        "evaluate-answers", tmp_path / "world" / "questions.jsonl", "answers.jsonl", "--split", "all", "--json"
    )
    (task,) = record.json["tasks"]
    assert (task["task"], task["right"], task["unparsed"]) == ("open", {"count": 300, "total": 600}, 150)

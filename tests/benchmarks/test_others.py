"""HallusionBench, POPE and POPEv2 from their real files; Visual CounterFact and ConflictVIS in the hub's layout."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from real_data import real_data
from unprior import UnpriorError
from unprior.benchmarks import conflict_vis, hallusion_bench, pope, pope_v2, visual_counterfact
from unprior.benchmarks.splits import split_by_seed
from unprior.benchmarks.user_file import read_questions, write_questions
from unprior.images import open_image
from unprior.prompts import PromptLayout


def test_hallusionbench() -> None:
    benchmark = hallusion_bench.load(real_data("hallusionbench"))
    assert benchmark.counts() == {"examples": 656, "images": 304, "pairs": 328}
    assert Counter(example.answer for example in benchmark if example.side == "cf") == {"no": 181, "yes": 147}
    sides: dict[Any, dict[str, Any]] = {}
    for example in benchmark:
        sides.setdefault(example.pair_id, {})[str(example.side)] = example
    for pair in sides.values():
        assert pair["cf"].question == pair["cs"].question
        assert {pair["cf"].answer, pair["cs"].answer} == {"yes", "no"}
    first = benchmark.examples[0]
    assert first.image.parts[-4:-1] == ("hallusion_bench", "VS", "chart")


def test_hallusionbench_takes_the_first_figures_in_the_order_of_strings(tmp_path: Path) -> None:
    def row(kind: str, figure: str, answer: str, question: str = "Is it?") -> dict[str, Any]:
        return {"category": "VD", "subcategory": "map", "visual_input": kind, "set_id": "0", "question_id": "0",
                "figure_id": figure, "question": question, "gt_answer": answer,
                "filename": f"./VD/map/{figure}.png" if kind != "0" else None}  # fmt: skip

    rows = [row("0", "0", "1"), row("2", "9", "0"), row("2", "10", "0"), row("2", "1", "1"), row("1", "0", "1"),
            row("1", "2", "0", "No partner?")]  # fmt: skip
    (tmp_path / "HallusionBench.json").write_text(json.dumps(rows))
    (tmp_path / "hallusion_bench").mkdir()
    hard, easy = hallusion_bench.load(tmp_path)
    assert (hard.image.name, hard.answer, hard.side) == ("10.png", "no", "cf")
    assert (easy.image.name, easy.answer, easy.side) == ("0.png", "yes", "cs")


def test_pope() -> None:
    benchmark = pope.load(real_data("pope"))
    assert benchmark.counts() == {"examples": 9000, "images": 500}
    assert Counter((example.category, example.answer) for example in benchmark) == {
        (name, answer): 1500 for name in ("random", "popular", "adversarial") for answer in ("yes", "no")
    }
    first = benchmark.examples[0]
    assert (first.question, first.answer) == ("Is there a snowboard in the image?", "yes")
    assert first.image.name == "COCO_val2014_000000310196.jpg"
    assert first.side is None
    present = [
        {e.question + e.image.name for e in benchmark if e.answer == "yes" and e.category == name} for name in pope.SETS
    ]
    assert present[0] == present[1] == present[2], "the card says that they are asked three times"


def test_popev2() -> None:
    benchmark = pope_v2.load(real_data("popev2"))
    assert benchmark.counts() == {"examples": 140, "images": 140, "pairs": 70}
    order = list(dict.fromkeys(example.pair_id for example in benchmark))
    assert order[:5] == [491577, 574837, 448259, 153656, 208844]
    for example in benchmark:
        expected = ("no", "images") if example.side == "cf" else ("yes", "train2017")
        assert (example.answer, example.image.parent.name) == expected


@pytest.mark.parametrize(
    ("module", "name", "content", "message"),
    [
        (hallusion_bench, "HallusionBench.json", '[{"category": "VD"}]', "row 1 is not of HallusionBench"),
        (hallusion_bench, "HallusionBench.json", '[{"category": ["VD"]}]', "row 1 .* category is not a text but"),
        (hallusion_bench, "HallusionBench.json", '[{"gt_answer": 1}]', "row 1 .* gt_answer is not a text but 1"),
        (hallusion_bench, "HallusionBench.json", '{"a": 1}', "not a JSON list of objects"),
        (hallusion_bench, "HallusionBench.json", "[{", "not JSON; the file may be truncated"),
        (pope, "coco_pope_random.json", '{"label": "maybe", "question_id": 1}', "line 1: not a question of POPE"),
        (pope_v2, "annotations.json", '[{"image_id": 1}]', "row 1 is not of POPEv2"),
        (
            pope_v2,
            "annotations.json",
            '[{"image_id": 1, "label": "No", "image_name": "a", "query": "?"}]',
            "image 1 does",
        ),
    ],
)
def test_broken_files_are_named(tmp_path: Path, module: Any, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UnpriorError, match=message):
        module.load(tmp_path)


def test_what_cannot_be_downloaded_is_to_be_fetched_by_hand(tmp_path: Path) -> None:
    with pytest.raises(
        UnpriorError, match=r"no annotations\.json.*cannot be downloaded; get annotations\.json and"
    ) as e:
        pope_v2.load(tmp_path)
    assert "unprior data get" not in str(e.value)


@pytest.mark.parametrize("module", [hallusion_bench, pope, visual_counterfact, conflict_vis])
def test_nothing_there_names_the_remedy(tmp_path: Path, module: Any) -> None:
    with pytest.raises(UnpriorError, match=f"`unprior data get {module.CARD.name}` downloads it"):
        module.load(tmp_path)


def png(colour: str) -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.new("RGB", (12, 12), colour).save(buffer, "PNG")
    return {"bytes": buffer.getvalue(), "path": f"{colour}.png"}


@pytest.fixture
def counterfacts(tmp_path: Path) -> Path:
    color = [
        {"object": "strawberry", "correct_answer": ["red", "green"], "incorrect_answer": ["blue"],
         "original_image": png("red"), "counterfact_image": png("blue")},
        {"object": "frog", "correct_answer": ["green"], "incorrect_answer": ["pink"],
         "original_image": png("green"), "counterfact_image": png("pink")},
    ]  # fmt: skip
    size = [
        {"object": "cat", "correct_answer": "house", "incorrect_answer": "cat",
         "original_image": png("white"), "counterfact_image": png("black")},
    ]  # fmt: skip
    (tmp_path / "data").mkdir()
    for number, row in enumerate(color):  # two shards: rows are counted through
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / "data" / f"color-{number:05}-of-00002.parquet")
    pq.write_table(pa.Table.from_pylist(size), tmp_path / "data" / "size-00000-of-00001.parquet")
    return tmp_path


def test_visual_counterfact(counterfacts: Path) -> None:
    benchmark = visual_counterfact.load(counterfacts)
    by_name = {example.example_id: example for example in benchmark}
    assert benchmark.counts() == {"examples": 6, "images": 6, "pairs": 3}
    strawberry = by_name["color-0-cs"]
    assert strawberry.question == "What color is the strawberry in this image?"
    assert (strawberry.texts, strawberry.answer) == (("red or green", "blue"), "A")
    assert by_name["color-0-cf"].answer == "B"
    assert (by_name["color-1-cs"].texts, by_name["color-1-cs"].answer) == (("pink", "green"), "B")
    assert (by_name["size-0-cs"].texts, by_name["size-0-cs"].answer) == (("cat", "house"), "B")
    assert by_name["size-0-cf"].question == "Which object is larger in this image?"
    assert open_image(by_name["color-0-cf"].image).getpixel((0, 0)) == (0, 0, 255)
    assert open_image(by_name["color-1-cs"].image).getpixel((0, 0)) == (0, 128, 0)
    text = PromptLayout().user_text(strawberry.question, strawberry.labels, strawberry.texts, strawberry.instruction)
    assert text == "What color is the strawberry in this image?\nA. red or green\nB. blue\nAnswer with A or B."
    before = {path: path.stat().st_mtime_ns for path in benchmark.images()}
    assert {path: path.stat().st_mtime_ns for path in visual_counterfact.load(counterfacts).images()} == before


@pytest.fixture
def conflicts(tmp_path: Path) -> Path:
    rows = [
        {"id": "3", "question_type": "YN", "question": "Is the man ironing in a forest?", "answer": "Yes",
         "conflict_target": "place", "images": [png("red")]},
        {"id": "3", "question_type": "MC", "question": "Where is he?\n(A) kitchen\n(B) forest\n(C) street\n(D) bed",
         "answer": "(B)", "conflict_target": "place", "images": [png("red")]},
        {"id": "3", "question_type": "SUBJ", "question": "Where is he?", "answer": "In a forest.",
         "conflict_target": "place", "images": [png("red")]},
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test.parquet")
    return tmp_path


def test_conflictvis(conflicts: Path) -> None:
    yes_no, choice = conflict_vis.load(conflicts)
    assert (yes_no.task, yes_no.answer, yes_no.category) == ("qa", "yes", "place")
    assert (choice.task, choice.labels, choice.texts, choice.answer) == ("mc", ("A", "B", "C", "D"), None, "B")
    text = PromptLayout().user_text(choice.question, choice.labels, choice.texts, choice.instruction)
    assert text == f"{choice.question}\nAnswer with a single letter (A, B, C, or D)."
    assert yes_no.side is None
    assert open_image(choice.image).size == (12, 12)
    assert any("yes/no answers are yes" in flaw.what for flaw in conflict_vis.CARD.flaws)


def conflict(number: int, kind: str, colour: str) -> dict[str, Any]:
    question, answer = ("Is it?", "Yes") if kind == "YN" else ("Which?\n(A) one\n(B) two", "(B)")
    return {"id": str(number), "question_type": kind, "question": question, "answer": answer,
            "conflict_target": "place", "images": [png(colour)]}  # fmt: skip


@pytest.mark.parametrize("name", ["../../outside", "/outside", "..", "", "a/b"])
def test_a_number_of_conflictvis_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "deep" / "conflictvis"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([conflict(1, "YN", "red") | {"id": name}]), folder / "test.parquet")
    with pytest.raises(UnpriorError, match="a number or a plain name is needed"):
        conflict_vis.load(folder)
    assert list(tmp_path.rglob("*.png")) == []


def test_both_questions_about_an_image_of_conflictvis_stay_together(tmp_path: Path) -> None:
    rows = [conflict(number, kind, "red") for number in range(20) for kind in ("YN", "MC")]
    rows[1] = conflict(0, "MC", "blue")  # one id with two images
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test.parquet")
    benchmark = conflict_vis.load(tmp_path)
    assert (len(benchmark), len(benchmark.images()), len(list((tmp_path / "unpacked").glob("*.png")))) == (40, 21, 21)
    assert open_image(benchmark.examples[0].image).getpixel((0, 0)) == (255, 0, 0)
    assert open_image(benchmark.examples[1].image).getpixel((0, 0)) == (0, 0, 255)
    assert list(conflict_vis.load(tmp_path)) == list(benchmark)
    for seed in range(10):
        splits: dict[str, set[str | None]] = {}
        for example in split_by_seed(benchmark, seed):
            splits.setdefault(example.example_id.partition("-")[0], set()).add(example.split)
        assert all(len(found) == 1 for found in splits.values())


@pytest.mark.parametrize("seed", range(5))
def test_figures_of_hallusionbench_never_straddle(seed: int) -> None:
    benchmark = split_by_seed(hallusion_bench.load(real_data("hallusionbench")), seed)
    for unit in ("pair_id", "image"):
        splits: dict[Any, set[str | None]] = {}
        for example in benchmark:
            splits.setdefault(getattr(example, unit), set()).add(example.split)
        assert all(len(found) == 1 for found in splits.values())


def test_popev2_can_be_split() -> None:
    counts = split_by_seed(pope_v2.load(real_data("popev2")), 0).counts()
    assert (counts["dev"], counts["test"]) == (5, 65)


def test_broken_rows_of_the_hub_are_named(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    row = conflict(1, "YN", "red")
    pq.write_table(pa.Table.from_pylist([row, row | {"id": "2", "question": None}]), path)
    with pytest.raises(UnpriorError, match=r"test\.parquet, row 2: column question is not a text but None"):
        conflict_vis.load(tmp_path)
    del row["images"]
    pq.write_table(pa.Table.from_pylist([row]), path)
    with pytest.raises(UnpriorError, match=r"test\.parquet: no column images"):
        conflict_vis.load(tmp_path)


def test_equal_answers_are_refused(counterfacts: Path) -> None:
    path = counterfacts / "data" / "size-00000-of-00001.parquet"
    (row,) = pq.read_table(path).to_pylist()
    pq.write_table(pa.Table.from_pylist([row | {"incorrect_answer": "house"}]), path)
    with pytest.raises(UnpriorError, match=r"size-00000-of-00001\.parquet, row 1: both answers are 'house'"):
        visual_counterfact.load(counterfacts)


@pytest.mark.parametrize("name", ["counterfacts", "conflicts"])
def test_questions_survive_a_file_of_questions(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> None:
    folder = request.getfixturevalue(name)
    benchmark = (visual_counterfact if name == "counterfacts" else conflict_vis).load(folder)
    write_questions(tmp_path / "questions.jsonl", benchmark)
    assert list(read_questions(tmp_path / "questions.jsonl")) == list(benchmark)


def test_parquet_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "color.parquet").write_bytes(b"nothing")
    with pytest.raises(UnpriorError, match=r"color\.parquet: cannot be read as Parquet"):
        visual_counterfact.load(tmp_path)

"""Tables of questions: what VLMEvalKit and `datasets` write is read as it is, and every bad row is named."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from question_tables import HEADER, PAIRED, SCHEMA, parquet_row, write_parquet, write_tsv
from unprior import UnpriorError, load_benchmark
from unprior.benchmarks.check import check_benchmark
from unprior.benchmarks.microworld.benchmark import microworld
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.table_columns import FIELDS


def png(shade: int = 0) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (9, 7), (shade, 9, 9)).save(stream, "PNG")
    return stream.getvalue()


PNG = png()
BASE64 = base64.b64encode(PNG).decode()
CHOICE = {"index": "1", "image": BASE64, "question": "How many?", "A": "five", "B": "six", "answer": "B"}
YES_NO = {"index": "2", "image": BASE64, "question": "Is it red?", "answer": "Yes"}


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNPRIOR_DATA", str(tmp_path / "data"))


def tsv(folder: Path, *rows: dict[str, str], header: list[str] = PAIRED) -> Path:
    path = folder / "mine.tsv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, header, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def parquet(folder: Path, *rows: dict[str, Any], name: str = "mine.parquet") -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), folder / name)
    return folder / name


def bare(examples: Benchmark) -> list[Example]:
    """Without what only the microworld has, and without the places of images."""
    return [replace(each, image=Path("-"), claims=None, open_question=None) for each in examples]


def by_name(examples: list[Example]) -> list[Example]:
    return sorted(examples, key=lambda example: example.example_id)


def test_a_vlmevalkit_table_is_the_benchmark_that_it_was_made_of(drawn_world: Path, tmp_path: Path) -> None:
    world = microworld(drawn_world, 3)
    write_tsv(tmp_path / "world.tsv", world)
    read = load_benchmark(tmp_path / "world.tsv")
    assert read.digest() == world.digest()
    assert bare(read) == bare(world)
    assert read.counts() == world.counts()
    assert [each.image.read_bytes() for each in read][:8] == [each.image.read_bytes() for each in world][:8]
    assert check_benchmark(str(tmp_path / "world.tsv")).sound


def test_a_folder_of_datasets_is_the_benchmark_that_it_was_made_of(drawn_world: Path, tmp_path: Path) -> None:
    world = microworld(drawn_world, 3)
    write_parquet(tmp_path / "world", world)
    read = load_benchmark(tmp_path / "world", columns={"pair": "number"})
    assert by_name(bare(read)) == by_name(bare(world))
    assert (read.name, read.source) == ("world", str(tmp_path / "world"))
    shown = {each.example_id: each.image.read_bytes() for each in read}
    assert shown == {each.example_id: each.image.read_bytes() for each in world}
    assert check_benchmark(str(tmp_path / "world"), columns=["pair=number"]).sound


def test_a_folder_of_save_to_disk_is_read(drawn_world: Path, tmp_path: Path) -> None:
    """A stream of Arrow batches in a folder for every split, with what `datasets` leaves beside it."""
    world = microworld(drawn_world, 3)
    for split in ("dev", "test"):
        folder = tmp_path / "saved" / split
        folder.mkdir(parents=True)
        rows = [parquet_row(example) for example in world if example.split == split][:40]
        for name in ("data-00000-of-00001.arrow", "cache-0a1b.arrow"):
            with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
                writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
    read = load_benchmark(tmp_path / "saved", columns=["pair=number"])
    kept = [
        *[each for each in world if each.split == "dev"][:40],
        *[each for each in world if each.split == "test"][:40],
    ]
    assert bare(read) == bare(world.with_examples(kept))


def test_images_are_unpacked_once_and_again_when_the_table_changes(tmp_path: Path) -> None:
    path = tsv(tmp_path, CHOICE)
    (example,) = load_benchmark(path)
    assert example.image.read_bytes() == PNG
    written = example.image.stat().st_ino
    (again,) = load_benchmark(path)
    assert again.image.stat().st_ino == written
    other = png(200)
    tsv(tmp_path, CHOICE | {"image": base64.b64encode(other).decode()})
    (changed,) = load_benchmark(path)
    assert changed.image.read_bytes() == other


def test_the_columns_of_vlmevalkit(tmp_path: Path) -> None:
    hinted = CHOICE | {"hint": "Count\ntwice.", "category": "hands", "l2-category": "fingers", "split": "val"}
    path = tsv(tmp_path, hinted, YES_NO | {"image": "1", "split": "dev"}, header=HEADER)
    choice, yes_no = load_benchmark(path)
    assert choice.question == "Hint: Count\ntwice.\nHow many?"
    assert (choice.example_id, choice.task, choice.texts, choice.answer) == ("1", "mc", ("five", "six"), "B")
    assert (choice.category, choice.subcategory, choice.split) == ("hands", "fingers", "dev")
    assert (yes_no.task, yes_no.answer, yes_no.image) == ("qa", "yes", choice.image)
    assert (choice.line, yes_no.line) == (2, 4)  # the hint has two lines


def test_a_reference_may_point_to_a_later_row(tmp_path: Path) -> None:
    first, second = load_benchmark(tsv(tmp_path, YES_NO | {"image": "1"}, CHOICE))
    assert first.image == second.image


def test_rows_without_options_whose_answers_are_texts_are_open(tmp_path: Path) -> None:
    first, second = load_benchmark(tsv(tmp_path, YES_NO | {"answer": "crimson"}, CHOICE))
    assert (first.task, first.answer, second.task) == ("open", "crimson", "mc")


def test_other_names_of_columns(tmp_path: Path) -> None:
    row = {"photo": PNG, "text": "How many?", "one": "five", "two": "six", "right": "six", "side": "left", "kind": "x"}
    path = parquet(tmp_path, row)
    columns = ["image=photo", "question=text", "options=one,two", "answer=right", "side=", "category=kind"]
    (example,) = load_benchmark(path, columns=columns)
    assert (example.texts, example.answer, example.side, example.category) == (("five", "six"), "B", None, "x")
    assert example.image.read_bytes() == PNG
    mapping = {"image": "photo", "question": "text", "options": ["one", "two"], "answer": "right", "side": None}
    (again,) = load_benchmark(path, columns=mapping)
    assert again == replace(example, category=None)


@pytest.mark.parametrize(
    "image",
    [
        PNG,
        {"bytes": PNG, "path": None},
        {"bytes": None, "path": "images/a.png"},
        {"bytes": PNG, "path": "/nowhere/a.png"},
        "images/a.png",
        BASE64,
        f"data:image/png;base64,{BASE64}",
        [{"bytes": PNG, "path": None}],
        f"['{BASE64}']",
    ],
)
def test_every_way_to_hold_an_image(tmp_path: Path, image: Any) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(PNG)
    path = parquet(tmp_path, {"image": image, "question": "Is it red?", "answer": "yes"})
    (example,) = load_benchmark(path)
    assert example.image.read_bytes() == PNG


@pytest.mark.parametrize(
    ("answer", "options", "label"),
    [(1, ["five", "six"], "B"), (6, ["5", "6"], "B"), ("six", ["five", "six"], "B"), (True, None, "yes")],
)
def test_answers_of_typed_columns(tmp_path: Path, answer: Any, options: Any, label: str) -> None:
    row = {"image": PNG, "question": "How many?", "answer": answer}
    path = parquet(tmp_path, row | ({} if options is None else {"choices": options}))
    assert load_benchmark(path).examples[0].answer == label


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (CHOICE | {"index": "2"}, "line 3: is called '2', as line 2 is; rename one, .* --column id="),
        (CHOICE | {"image": ""}, "line 3: has no image"),
        (CHOICE | {"image": "7"}, "line 3: image '7' is neither base64, nor a file .*, nor the name of a row"),
        (CHOICE | {"image": f"{BASE64}!"}, "line 3: has an image that is neither base64 nor a file"),
        (CHOICE | {"image": f"['{BASE64}', '{BASE64}']"}, "line 3: has 2 images; a question here is about one"),
        (
            CHOICE | {"image": "https://example.org/a.png"},
            "line 3: names its image by an address, which is not fetched",
        ),
        (CHOICE | {"answer": "seven"}, "line 3: answer 'seven' is neither an option nor its letter"),
        (CHOICE | {"question": ""}, "line 3: has no question"),
        (CHOICE | {"question": "a\0b"}, "line 3: question has a NUL byte"),
        (CHOICE | {"A": "", "C": "x"}, "line 3: options: A is empty, and one after it is not"),
        (CHOICE | {"side": "left", "pair": "1"}, "line 3: side: must be .*column 'side'; .*--column side="),
        (CHOICE | {"pair": "1"}, "line 3: pair and side belong together"),
        (CHOICE | {"A": "", "B": "", "answer": "Yse"}, "line 3: answer 'Yse' is neither yes nor no"),
        (CHOICE | {"A": "", "B": "", "answer": ""}, "line 3: has neither options nor an answer"),
    ],
)
def test_bad_rows_of_a_text_are_named(tmp_path: Path, row: dict[str, str], reason: str) -> None:
    with pytest.raises(UnpriorError, match=f"mine.tsv: 1 of 2 rows is invalid\n  {reason}"):
        load_benchmark(tsv(tmp_path, YES_NO, row))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"image": None}, "line 2: has no image"),
        ({"image": {"bytes": None, "path": None}}, "line 2: has no image"),
        ({"image": {"bytes": b"", "path": None}}, "line 2: has no image"),
        ({"answer": 2}, r"line 2: answer 2 is neither an option nor the place of one \(0 to 1\)"),
        ({"choices": ["1", "0"], "answer": 1}, "line 2: answer 1 is the text of one option and the place of another"),
        ({"choices": [None, "a"]}, "line 2: options: number 1 is empty"),
        ({"question": None}, "line 2: has no question"),
    ],
)
def test_bad_rows_of_parquet_are_named(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    row = {"image": {"bytes": PNG, "path": None}, "question": "How many?", "choices": ["a", "b"], "answer": 0}
    with pytest.raises(UnpriorError, match=f"mine.parquet: 1 of 2 rows is invalid\n  {reason}"):
        load_benchmark(parquet(tmp_path, row, row | change))


def test_columns_of_one_name_that_are_not_used_do_not_matter(tmp_path: Path) -> None:
    columns = [[PNG], ["Is it red?"], ["yes"], [1], [2]]
    pq.write_table(pa.table(columns, names=["image", "question", "answer", "x", "x"]), tmp_path / "mine.parquet")
    assert load_benchmark(tmp_path / "mine.parquet").examples[0].answer == "yes"


def test_a_pair_of_thousands_of_digits_is_a_name(tmp_path: Path) -> None:
    pair = {"side": "cf", "pair": "7" * 5000}
    first, second = load_benchmark(tsv(tmp_path, CHOICE | pair, YES_NO | pair | {"side": "cs"}))
    assert first.pair_id == second.pair_id == "7" * 5000
    first, _ = load_benchmark(tsv(tmp_path, CHOICE | pair | {"pair": "7"}, YES_NO | {"pair": "7", "side": "cs"}))
    assert first.pair_id == 7


def test_the_file_of_a_bad_row_is_named(tmp_path: Path) -> None:
    row = {"image": PNG, "question": "Is it red?", "answer": "yes", "id": "a"}
    parquet(tmp_path, row, name="dev-00000-of-00001.parquet")
    parquet(tmp_path, row, name="test-00000-of-00001.parquet")
    with pytest.raises(UnpriorError, match=r"test-.*: 1 of 1 rows .*\n  line 1: is called 'a', as line 1 of .*dev-"):
        load_benchmark(tmp_path)
    named = load_benchmark(tmp_path, columns=["id="])
    assert [each.example_id for each in named] == ["dev-00000-of-00001-1", "test-00000-of-00001-1"]


def lfs(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n")


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def only_header(path: Path) -> None:
    path.write_text("image\tquestion\n")


def broken_parquet(path: Path) -> None:
    path.write_bytes(b"PAR1" + b"\0" * 40)


def utf_16(path: Path) -> None:
    path.write_text("image\tquestion\n", encoding="utf-16-le")


def latin(path: Path) -> None:
    path.write_bytes(b"image\tquestion\na.png\tIs it a caf\xe9?\n")


def unclosed(path: Path) -> None:
    path.write_text('image\tquestion\na.png\t"Is it red?\n')


def twice(path: Path) -> None:
    path.write_text("image\tquestion\tquestion\n")


def short_row(path: Path) -> None:
    path.write_text("image\tquestion\na.png\n")


def html(path: Path) -> None:
    path.write_text("<html>Not found</html>")


def bad_note(path: Path) -> None:
    schema = pa.schema([("image", pa.binary()), ("question", pa.string())], metadata={"huggingface": "[]"})
    pq.write_table(pa.Table.from_pylist([{"image": PNG, "question": "?"}], schema=schema), path)


def named_twice(path: Path) -> None:
    table = pa.table([[PNG], ["?"], ["!"]], names=["image", "question", "question"])
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def struct_named_twice(path: Path) -> None:
    image = pa.StructArray.from_arrays([pa.array([PNG]), pa.array([PNG])], names=["bytes", "bytes"])
    table = pa.table({"image": image, "question": ["?"]})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("a.tsv", lfs, "a.tsv: this is a Git LFS pointer"),
        ("a.parquet", lfs, "a.parquet: this is a Git LFS pointer, .*git lfs pull"),
        ("a.tsv", nothing, "a.tsv: no questions, the file is empty"),
        ("a.parquet", nothing, "a.parquet: no questions, the file is empty"),
        ("a.tsv", only_header, "a.tsv: no questions"),
        ("a.parquet", broken_parquet, "a.parquet: cannot be read as a Parquet file"),
        ("a.parquet", html, "a.parquet: cannot be read as a Parquet file .*it does not begin like one"),
        ("a.arrow", html, "a.arrow: cannot be read as an Arrow stream"),
        ("a.parquet", bad_note, "a.parquet: the note of `datasets` on its columns cannot be read"),
        ("a.tsv", utf_16, "a.tsv: the first line has NUL bytes"),
        ("a.tsv", latin, "a.tsv, line 2: this is no UTF-8 text"),
        ("a.tsv", unclosed, "a.tsv, line 2: no row of a table"),
        ("a.tsv", twice, "a.tsv: two columns are called 'question'"),
        ("a.parquet", named_twice, "a.parquet: two columns are called 'question'; rename one"),
        ("a.arrow", named_twice, "a.arrow: two columns are called 'question'; rename one"),
        ("a.arrow", struct_named_twice, "a.arrow: cannot be read as an Arrow stream .*duplicate field names"),
        ("a.tsv", short_row, "line 2: has 1 cells, the first line names 2 columns"),
        ("a.tsv", html, "a.tsv: no column for the image; its columns are <html>Not found</html>"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, make: Callable[[Path], None], message: str) -> None:
    make(tmp_path / name)
    with pytest.raises(UnpriorError, match=message):
        load_benchmark(tmp_path / name)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["question"], "write FIELD=COLUMN"),
        (["picture=photo"], "no field 'picture'; fields are image, question"),
        (["questions=photo"], r"no field 'questions' \(did you mean question\?\)"),
        (["image=imag"], r"mine.tsv: no column 'imag' \(did you mean image\?\), which .*--column image=imag.* names"),
        (["id=index", "id=A"], "id is given twice"),
        (["options=A,A"], "options=A,A.*: a column is named twice"),
        ({"options": ["A", "B", "A"]}, "options=A,B,A.*: a column is named twice"),
        (["image="], "every question needs its image"),
        ({"answer": ["A", "B"]}, "only options may stand in several columns"),
        ({"answer": 7}, "no column '7'"),
        ("image=image", "columns: give columns by what they hold"),
    ],
)
def test_a_wrong_mapping_is_told(tmp_path: Path, columns: Any, message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        load_benchmark(tsv(tmp_path, CHOICE), columns=columns)


def test_columns_are_for_tables(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(json.dumps({"image": "a.png", "question": "?"}))
    with pytest.raises(UnpriorError, match=r"--column.* is for tables .*mine.jsonl is read as JSON lines"):
        load_benchmark(tmp_path / "mine.jsonl", columns=["question=text"])
    for use in (load_benchmark, check_benchmark):
        with pytest.raises(UnpriorError, match="microworld has no columns to name"):
            use("microworld", columns=["question=text"])


def test_a_broken_image_fails_alone(tmp_path: Path) -> None:
    path = tsv(tmp_path, YES_NO, CHOICE | {"image": base64.b64encode(b"no image at all" * 9).decode()})
    result = check_benchmark(str(path))
    (told,) = result.unreadable
    assert not result.sound
    assert "row-3.image: not a readable image" in told


def test_the_docs_name_every_field() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "your-data.md").read_text(encoding="utf-8")
    table = page.partition("## Tables of questions")[2].partition("\n## ")[0]
    assert [name for name in FIELDS if f"`{name}`" not in table] == []

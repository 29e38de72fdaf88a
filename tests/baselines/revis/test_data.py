"""REVIS's data: the drawn examples, a user's file, and every mistake in one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from unprior import UnpriorError
from unprior.baselines.revis.data import WORLD, loaded_image, microworld_data, read_revis_data
from unprior.benchmarks.microworld import BENCHMARK_SEEDS, TRAINING_SEEDS

CAPTION = {"image": "a.png", "caption": "a cat", "hallucinated": "a dog"}
QUESTION = {"image": "a.png", "question": "Is there a dog in the image?", "answer": "no"}


def write(folder: Path, *lines: dict[str, Any] | str) -> Path:
    Image.new("RGB", (8, 8), "red").save(folder / "a.png")
    path = folder / "data.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_the_drawn_examples_are_of_a_world_that_is_neither_reported_on_nor_trained_on() -> None:
    for seed in (WORLD, WORLD + 1):
        assert seed not in BENCHMARK_SEEDS
        assert seed not in TRAINING_SEEDS


def test_drawn_captions_are_true_of_odd_images_and_hallucinations_are_ordinary() -> None:
    data = microworld_data(captions=2, questions=4)
    assert len(data.captions) == 2
    first = data.captions[0]
    assert first.caption == "a hand with 7 fingers"
    assert first.hallucinated == "a hand with 5 fingers"
    assert loaded_image(first.image).size == (288, 288)


def test_half_of_the_drawn_questions_ask_for_what_is_not_there() -> None:
    data = microworld_data(captions=1, questions=20)
    answers = [question.answer for question in data.questions]
    assert (answers.count("yes"), answers.count("no")) == (10, 10)
    # The counterfactual image of a pair comes first; neither side may give the answer away.
    assert set(answers[::2]) == set(answers[1::2]) == {"yes", "no"}


def test_more_than_a_world_holds_is_refused() -> None:
    with pytest.raises(UnpriorError, match="between 1 and 100 pairs"):
        microworld_data(captions=101)


def test_a_file_is_read_with_images_beside_it(tmp_path: Path) -> None:
    data = read_revis_data(write(tmp_path, CAPTION, "", QUESTION))
    assert data.captions[0].image == tmp_path / "a.png"
    assert (data.captions[0].caption, data.captions[0].hallucinated) == ("a cat", "a dog")
    assert (data.questions[0].question, data.questions[0].answer) == ("Is there a dog in the image?", "no")
    assert loaded_image(data.questions[0].image).getpixel((0, 0)) == (255, 0, 0)


def test_only_the_first_examples_of_a_long_file_are_used(tmp_path: Path) -> None:
    captions = [CAPTION | {"caption": f"{number} cats"} for number in range(105)]
    questions = [QUESTION | {"question": f"Are there {number} cats?"} for number in range(305)]
    data = read_revis_data(write(tmp_path, *questions, *captions))
    assert [example.caption for example in data.captions] == [f"{number} cats" for number in range(100)]
    assert len(data.questions) == 300


def test_the_digest_changes_with_texts_and_images(tmp_path: Path) -> None:
    data = read_revis_data(write(tmp_path, CAPTION, QUESTION))
    assert read_revis_data(write(tmp_path, CAPTION, QUESTION)).digest == data.digest
    other = replace(data.captions[0], hallucinated="a cow")
    before = data.digest
    assert replace(data, captions=(other,)).digest != before
    Image.new("RGB", (8, 8), "blue").save(tmp_path / "a.png")
    assert data.digest != before


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{not json", "line 2: not a JSON object"),
        ("[1]", "line 2: not a JSON object"),
        ({"image": "a.png", "caption": "a cat"}, "line 2: hallucinated: missing"),
        (CAPTION | {"hallucinated": "a cat"}, "caption and hallucinated are the same"),
        (CAPTION | {"caption": ""}, "line 2: caption: must not be empty"),
        (CAPTION | {"image": "b.png"}, "line 2: image: there is no .*b.png; paths are relative to the file"),
        (QUESTION | {"answer": "maybe"}, "line 2: answer: must be 'yes' or 'no'"),
        ({"image": "a.png", "question": "Is it?"}, "line 2: answer: missing"),
        (CAPTION | {"question": "Is it?", "answer": "no"}, "line 2: there is no field caption"),
    ],
)
def test_every_mistake_in_a_file_is_named_with_its_line(
    tmp_path: Path, line: dict[str, Any] | str, complaint: str
) -> None:
    path = write(tmp_path, CAPTION, line, QUESTION)
    with pytest.raises(UnpriorError, match=complaint) as caught:
        read_revis_data(path)
    assert str(caught.value).startswith(f"{path}: 1 of 3 rows is invalid")


def test_a_file_of_one_kind_only_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match="no presence questions"):
        read_revis_data(write(tmp_path, CAPTION))
    with pytest.raises(UnpriorError, match="no captions"):
        read_revis_data(write(tmp_path, QUESTION))
    with pytest.raises(UnpriorError, match="no such file"):
        read_revis_data(tmp_path / "other.jsonl")

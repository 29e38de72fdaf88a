"""A server's log read as a score table: sides, images for pairs, repeated requests, and how scores were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from decision_logs import HEADER, MADE, decision, write_log
from unprior import ScoreTable, read_scores
from unprior.errors import InvalidScoresError, UnpriorError, UnpriorNote
from unprior.evaluation.metrics import measure, prior_winners
from unprior.scores.checked import labelled_rows, sound_rows
from unprior.scores.logged import derived_side, log_header
from unprior.scores.provenance import Provenance


def read(path: Path, *records: dict[str, Any] | str, **options: Any) -> ScoreTable:
    return read_scores(write_log(path / "log.jsonl", *records), require_answers=False, **options)


def test_rows_say_what_the_records_say(tmp_path: Path) -> None:
    table = read(tmp_path, decision("a/0", answer="5"), decision("b/0", answer="4"), decision("c/0"))
    assert table.column("pair_id") == ["image a/0", "image b/0", "image c/0"]
    assert table.column("side") == ["cf", "cs", None]
    assert table.is_labelled.tolist() == [True, True, False]
    assert not table.is_matched.any()
    assert table.provenance == (MADE,)
    assert list(table.lines) == [2, 3, 4]


@pytest.mark.parametrize("seed", range(5))
def test_the_side_is_commonsense_exactly_where_the_prior_puts_the_right_answer_first(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    records = []
    for number in range(60):
        count = int(random.integers(2, 6))
        names = [f"c{place}" for place in range(count)]
        scores = random.integers(-3, 0, (2, count)).astype(float).tolist()  # with ties
        answer = names[random.integers(count)]
        made = {"candidates": names, "image_scores": scores[0], "prior_scores": scores[1]}
        records.append(decision(f"{number}/0", **made, original=names[0], decided=names[0], answer=answer))
    table = read(tmp_path, *records)
    assert (table.is_cf != (prior_winners(table) == table.answer_positions)).all()


def test_the_side_of_an_open_question_is_that_of_its_merged_answers() -> None:
    candidates, image, prior = ["six", "5", "five"], [-1.0, -2.0, -2.0], [-1.0, -1.1, -1.1]
    assert derived_side("open", candidates, image, prior, "5") == "cs"  # together its two forms come first
    assert derived_side("open", candidates, image, prior, "6") == "cf"
    assert derived_side("open", candidates, image, prior, "many", ["five"]) == "cs"
    assert derived_side("open", candidates, image, prior, "seven") == "cf"


def test_a_given_side_is_kept(tmp_path: Path) -> None:
    assert read(tmp_path, decision(answer="5", side="cs")).column("side") == ["cs"]


def test_the_same_request_counts_once_and_shares_its_label(tmp_path: Path) -> None:
    again = {"image_digest": "image a/0"}
    other = {"question": "How many heads?"}
    records = (
        decision("a/0"), decision("b/0", **again, answer="5"), decision("c/0", **again, **other),
        decision("d/0", **again, candidates=["5", "4"]),
    )  # fmt: skip
    with pytest.warns(UnpriorNote, match="1 requests repeat"):
        table = read(tmp_path, *records)
    assert table.column("example_id") == ["a/0", "c/0", "d/0"]
    assert table.answer.tolist() == ["5", None, None]
    assert table.column("side") == ["cf", None, None]
    assert len(table.values_of("pair_id")) == 1


def test_a_side_that_repeats_derive_differently_is_that_of_the_first(tmp_path: Path) -> None:
    again = {"image_digest": "image a/0", "answer": "4"}
    scores = ([-0.6931, -0.6932], [-0.6932, -0.6931])
    records = [decision(f"{n}/0", **again, prior_scores=each) for n, each in enumerate(scores)]
    with pytest.warns(UnpriorNote, match="1 requests repeat"):
        assert read(tmp_path, *records).column("side") == ["cs"]
    with pytest.raises(UnpriorError, match="correct one of them"):
        read(tmp_path, decision("a/0", **again, side="cs"), decision("b/0", **again, side="cf"))


def test_questions_about_one_image_are_no_unsound_pair(tmp_path: Path) -> None:
    records = [
        decision(f"a/{n}", image_digest="one", question=f"Question {n}?", answer=answer)
        for n, answer in enumerate("4455")
    ]
    table = read(tmp_path, *records)
    kept, _ = sound_rows(table, np.ones(len(table), dtype=np.bool_), tmp_path)
    assert len(kept) == 4
    metrics = measure(kept, kept.original)  # two commonsense answers of one image are no contradiction
    assert (metrics.cs.count, metrics.cs.total, metrics.ccr.total) == (2, 2, 0)


def test_unlabelled_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    table = read(tmp_path, decision("a/0", answer="5"), decision("b/0"), decision("c/0"))
    everything = np.ones(3, dtype=np.bool_)
    with pytest.warns(UnpriorNote, match="left out 2 of 3 decisions, which have no label"):
        assert labelled_rows(table, everything, Path("log.jsonl")).tolist() == [True, False, False]
    bare = read(tmp_path, decision("b/0"))
    with pytest.warns(UnpriorNote), pytest.raises(UnpriorError, match="label some with `unprior label`"):
        labelled_rows(bare, np.ones(1, dtype=np.bool_), Path("log.jsonl"))


@pytest.mark.parametrize(
    ("records", "line", "words"),
    [
        ((decision(made="lost", answer="5"),), 2, "nothing above it says how its scores were made"),
        ((decision(answer="5", calibrator=["a"]),), 2, "calibrator: must be the digest of a calibrator, or null"),
        ((decision(answer="5"), HEADER | {"unprior_log": 2}), 3, "a log of version 2, this unprior reads version 1"),
        ((decision(answer="7"),), 2, "answer '7' is not one of the candidates"),
        ((decision(answer="5", prior_scores=[-1.0]),), 2, "prior_scores has 1 values for 2 candidates"),
        (
            (decision("a/0", answer="5"), decision("b/0", image_digest="image a/0", answer="4")),
            3, "has the answer '5' (cf) at line 2 and '4' (cs) here",
        ),
        (
            (decision("a/0", split="dev"), decision("a/1", image_digest="image a/0", question="?", split="test")),
            3, "stands in split 'dev' at line 2 and in 'test' here",
        ),
        ((decision(answer="5"), '{"made": "12", "exam'), 3, "not a JSON object"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(
    records: tuple[dict[str, Any] | str, ...], line: int, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidScoresError) as refused:
        read(tmp_path, *records)
    assert [problem.line for problem in refused.value.problems] == [line]
    assert words in refused.value.problems[0].reason


def test_how_scores_were_made_is_that_of_the_rows_that_are_taken(tmp_path: Path) -> None:
    other = log_header(Provenance(model="tiny", precision="bfloat16"))
    records = (decision("a/0"), other, decision("b/0", made=other["made"], calibrator="sha256:two"))
    assert {each.precision for each in read(tmp_path, *records).provenance} == {"float32", "bfloat16"}
    table = read(tmp_path, *records, decided_by="sha256:two")
    assert [each.precision for each in table.provenance] == ["bfloat16"]
    assert table.column("example_id") == ["b/0"]
    with pytest.raises(UnpriorError, match="there are decisions of sha256:one, sha256:two"):
        read(tmp_path, *records, decided_by="sha256:three")


def test_a_table_made_of_a_log_stays_one(tmp_path: Path) -> None:
    table = read(tmp_path, decision("a/0", answer="5"), decision("b/0", answer="4"))
    for name in ("table.jsonl", "table.parquet"):
        table.write(tmp_path / name)
        again = read_scores(tmp_path / name)
        assert again.arrow.equals(table.arrow)
        assert again.provenance == (MADE,)
    assert HEADER["made"] not in (tmp_path / "table.jsonl").read_text()

"""Methods on open questions: CAD and its mask against plain loops, answers in own words, and judging them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch

from unprior import ScoreTable, UnpriorError, load_engine
from unprior.answer_forms import is_accepted
from unprior.baselines.answers import MethodInfo, described_methods, read_answers, write_answers
from unprior.baselines.cad import CAD, MaskedCAD, StrongCAD, WiderMaskedCAD
from unprior.baselines.controls import CONTROLS
from unprior.baselines.decoding import Question, choose, decode, view_inputs
from unprior.baselines.method import IMAGE, TEXT, Method
from unprior.baselines.names import DECODED, OPEN_METHODS, choose_methods
from unprior.baselines.nolan import NoLan
from unprior.baselines.pai import PAI
from unprior.baselines.plain import Plain
from unprior.baselines.run import BaselineRun
from unprior.baselines.suite import ANSWERS, MethodOptions, answer_with_methods, prepare_methods
from unprior.baselines.vcd import VCD
from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.schema import Benchmark
from unprior.engines.transformers.engine import TransformersEngine
from unprior.images import open_image
from unprior.prompts import is_cut_off
from unprior.scores.schema import OTHER_ANSWER, OTHER_ORDINARY_ANSWER, OTHER_RIGHT_ANSWER
from unprior.scoring.store import ScoreStore
from unprior.studies.rq2.changes import study_changes
from unprior.studies.rq2.methods import compare_methods

VARIANTS: tuple[Method, ...] = (CAD(), StrongCAD(), MaskedCAD(), WiderMaskedCAD())
EVERY: tuple[Method, ...] = (VCD(), PAI(), NoLan(), *VARIANTS)


@pytest.fixture(scope="module")
def embedded() -> TransformersEngine:
    engine = load_engine("embedded")
    assert isinstance(engine, TransformersEngine)
    return engine


@pytest.fixture(scope="module")
def asked(drawn_world: Path) -> Benchmark:
    """Both images of a pair of every category; the methods change the answers to the counterfactual ones."""
    world = microworld(drawn_world, 3, variant="open")
    return world.with_examples([each for each in world if each.pair_id in (11, 147, 216)])


def test_names_and_settings() -> None:
    assert [(method.name, method.settings()) for method in VARIANTS] == [
        ("cad-0.5", {"alpha": 0.5}),
        ("cad-1", {"alpha": 1.0}),
        ("cad-mask-0.1", {"alpha": 1.0, "beta": 0.1}),
        ("cad-mask-0.01", {"alpha": 1.0, "beta": 0.01}),
    ]
    assert len({method.label for method in VARIANTS}) == 4


def test_all_stays_what_the_paper_compares() -> None:
    assert choose_methods(["all"]) == (tuple(DECODED), tuple(CONTROLS))
    assert not any(name.startswith("cad") for name in DECODED)
    assert choose_methods(["all", "cad-1"]).decoded == (*DECODED, "cad-1")
    assert choose_methods(["open"]) == (OPEN_METHODS, ())
    assert choose_methods(["cad-mask-0.01", "nolan"]).decoded == ("nolan", "cad-mask-0.01")
    with pytest.raises(UnpriorError, match=r"no method 'cad-05' \(did you mean cad-0.5\?\); choose all, open, or some"):
        choose_methods(["cad-05"])


def test_the_equations_by_hand() -> None:
    image, text = torch.tensor([[2.0, 1.0, 0.0, -3.0]]), torch.tensor([[3.0, 0.0, 0.0, -9.0]])
    assert CAD().combine([image, text]).tolist() == [[1.5, 1.5, 0.0, 0.0]]
    assert StrongCAD().combine([image, text]).tolist() == [[1.0, 2.0, 0.0, 3.0]]
    assert CAD().plausible(image) is None
    # Without a mask the token that is hardly possible wins; e^-5 of the largest is too little for both masks.
    assert [choose(method, [image, text]).item() for method in VARIANTS] == [0, 3, 1, 1]
    shares = torch.tensor([[0.0, math.log(0.11), math.log(0.09), math.log(0.009)]])
    assert MaskedCAD().plausible(shares).tolist() == [[True, True, False, False]]
    assert WiderMaskedCAD().plausible(shares).tolist() == [[True, True, True, False]]


def _next_token(image: list[float], text: list[float], alpha: float, beta: float | None) -> int:
    """The rule in plain loops, with probabilities instead of logits for the mask."""
    top = max(image)
    total = sum(math.exp(value - top) for value in image)
    likeliest = max(math.exp(value - top) / total for value in image)
    best, winner = -math.inf, -1
    for token, (with_image, without) in enumerate(zip(image, text, strict=True)):
        if not (math.isfinite(with_image) and math.isfinite(without)):
            continue
        if beta is not None and math.exp(with_image - top) / total < beta * likeliest:
            continue
        score = (1 + alpha) * with_image - alpha * without
        if score > best:
            best, winner = score, token
    return winner


@pytest.mark.parametrize("method", VARIANTS, ids=lambda method: method.name)
def test_every_token_is_that_of_a_plain_loop(embedded: TransformersEngine, asked: Benchmark, method: Method) -> None:
    settings = method.settings()
    for example in asked.examples[:4]:
        question = Question(open_image(example.image), example.user_text(embedded.layout), example.example_id)
        written = decode(embedded, method, [question])[0]
        assert written
        for place in range(len(written[:4])):
            logits = []
            for view in (IMAGE, TEXT):
                inputs = view_inputs(embedded, view, [question])
                tail = torch.tensor([written[:place]], dtype=torch.long)
                inputs["input_ids"] = torch.cat([inputs["input_ids"], tail], dim=1)
                inputs["attention_mask"] = torch.cat([inputs["attention_mask"], torch.ones_like(tail)], dim=1)
                logits.append(embedded.reader.read(inputs).logits[0, -1].tolist())
            assert written[place] == _next_token(*logits, settings["alpha"], settings.get("beta"))


@pytest.mark.parametrize("method", VARIANTS, ids=lambda method: method.name)
def test_without_the_contrast_it_is_plain_decoding(
    embedded: TransformersEngine, asked: Benchmark, method: Method
) -> None:
    questions = [Question(open_image(each.image), each.user_text(embedded.layout), each.example_id) for each in asked]
    matched = method.matched()
    assert matched is not None
    plain = decode(embedded, Plain(), questions)
    assert decode(embedded, matched, questions) == plain
    assert decode(embedded, method, questions) != plain


@pytest.fixture(scope="module")
def rows(
    embedded: TransformersEngine, asked: Benchmark, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    with ScoreStore(tmp_path_factory.mktemp("open") / "store.sqlite") as store:
        run = BaselineRun(embedded, asked, store, EVERY)
        assert run.run() == ()
        return run.rows()


def test_methods_answer_open_questions_in_their_own_words(rows: list[dict[str, Any]], asked: Benchmark) -> None:
    assert len(rows) == len(EVERY) * len(asked)
    for row in rows:
        assert row["task"] == "open"
        for text, answer in ((row["text"], row["answer"]), (row["matched_text"], row["matched_answer"])):
            lines = [line.strip() for line in text.split("\n") if line.strip()]
            assert not is_cut_off(text)
            assert answer == (lines[0] if lines else None)
    assert any(row["answer"] for row in rows)


def _table(asked: Benchmark, candidates: dict[str, list[str]]) -> ScoreTable:
    """Scores of these candidates, which may lack the right answer, with the aliases of the benchmark."""
    made = [
        {
            "model": "unprior-micro", "benchmark": asked.name, "pair_id": each.pair_id, "side": each.side,
            "task": "open", "example_id": each.example_id, "candidates": candidates[each.example_id],
            "image_scores": [-1.0, -2.0], "prior_scores": [-2.0, -1.0], "original": candidates[each.example_id][0],
            "answer": candidates[each.example_id][0],
        }
        for each in asked
    ]  # fmt: skip
    arrow = ScoreTable.from_rows(made).arrow
    given = {
        "answer": pa.array([each.answer for each in asked], pa.string()),
        "aliases": pa.array([list(each.aliases) for each in asked], pa.list_(pa.string())),
    }
    for name, column in given.items():
        if name in arrow.column_names:
            arrow = arrow.set_column(arrow.column_names.index(name), name, column)
        else:
            arrow = arrow.append_column(name, column)
    return ScoreTable(arrow)


CAD_INFO = MethodInfo("cad-1", "CAD (α = 1)", "decoder", {"alpha": 1.0}, None)


def _written(path: Path, asked: Benchmark, answers: list[str | None], matched: list[str | None]) -> Path:
    given = [
        {"method": "cad-1", "model": "unprior-micro", "benchmark": asked.name, "example_id": each.example_id,
         "task": "open", "text": answer or "", "answer": answer, "matched_text": other or "", "matched_answer": other}
        for each, answer, other in zip(asked, answers, matched, strict=True)
    ]  # fmt: skip
    write_answers(path / "baselines.parquet", [CAD_INFO], given)
    return path / "baselines.parquet"


def test_answers_that_are_no_candidates_are_judged(asked: Benchmark, tmp_path: Path) -> None:
    one = asked.with_examples(asked.examples[:4])
    right = [str(each.answer) for each in one]
    # Right answers are among the candidates of the first two rows only.
    offered = [[right[0], "a cloud"], ["A Cloud", right[1]], ["a cloud", "smoke"], ["a cloud", "smoke"]]
    table = _table(one, dict(zip((each.example_id for each in one), offered, strict=True)))
    answers = [right[0].upper() + ".", "a horse", f"the {right[2]}", None]
    (found,) = read_answers(_written(tmp_path, one, answers, ["Cloud", right[1], "the sea", "sea"]), table)
    assert found.answers.tolist() == [0, OTHER_ANSWER, OTHER_RIGHT_ANSWER, -1]
    assert found.right is not None
    assert found.right.tolist() == [True, False, True, False]
    assert found.texts == tuple(answers)
    assert found.matched is not None
    assert found.matched_right is not None
    assert found.matched.tolist() == [1, 1, OTHER_ANSWER, OTHER_ANSWER]
    assert found.matched_right.tolist() == [False, True, False, False]
    (row,) = study_changes(table, [found]).rows
    assert (row.before.count, row.after.count, row.change.repairs, row.change.harms) == (1, 2, 1, 0)
    assert row.matched is not None
    assert (row.matched.repairs, row.matched.harms) == (2, 1)


def test_a_right_answer_is_one_by_its_alias(asked: Benchmark, tmp_path: Path) -> None:
    counted = asked.with_examples([each for each in asked if each.aliases and each.category == "Counting Anomalies"])
    assert len(counted) == 2
    offered = {each.example_id: [str(each.answer), "none of it"] for each in counted}
    numbers = [each.aliases[0] for each in counted]
    (found,) = read_answers(_written(tmp_path, counted, numbers[::-1], numbers), _table(counted, offered))
    assert found.answers.tolist() == [OTHER_ORDINARY_ANSWER, OTHER_ANSWER]
    assert found.matched is not None
    assert found.matched.tolist() == [0, 0]
    assert found.matched_right is not None
    assert found.matched_right.all()


def test_methods_are_compared_on_open_pairs(asked: Benchmark, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    offered = {}
    for example in asked:
        (other,) = {str(each.answer) for each in asked if each.pair_id == example.pair_id} - {example.answer}
        offered[example.example_id] = sorted([str(example.answer), other])
    table = _table(asked, offered)
    infos = [MethodInfo(each.name, each.label, each.kind, each.settings(), None) for each in EVERY]
    write_answers(tmp_path / "answers.parquet", infos, [row | {"model": "unprior-micro"} for row in rows])
    found = read_answers(tmp_path / "answers.parquet", table)
    examples = {each.example_id: each for each in asked}
    for each in found:
        own = [row for row in rows if row["method"] == each.info.name]
        expected = [
            is_accepted(row["answer"], str(examples[row["example_id"]].answer), examples[row["example_id"]].aliases)
            for row in own
        ]
        assert each.right is not None
        assert each.right.tolist() == expected
    compared = compare_methods(table, None, found, resamples=20)
    assert [row.name for row in compared.rows] == [method.name for method in EVERY]
    assert {result.task for row in compared.rows for result in row.tasks} == {"open"}


@pytest.mark.filterwarnings("ignore:the cost of spc:unprior.errors.UnpriorWarning")
def test_the_group_of_open_methods_runs_as_a_whole(
    embedded: TransformersEngine, asked: Benchmark, tmp_path: Path
) -> None:
    some = asked.with_examples(asked.examples[:2])
    prepared = prepare_methods(embedded, some, tmp_path, MethodOptions.from_names(["open"]))
    assert ([each.name for each in prepared.methods], dict(prepared.left_out)) == (list(OPEN_METHODS), {})
    done = answer_with_methods(embedded, some, tmp_path, prepared, cost_examples=1)
    assert (done.failures, dict(done.left_out)) == ((), {})
    (first, *_) = described_methods(tmp_path / ANSWERS, model=embedded.name, benchmark=some.name)
    assert (first.name, first.cost is not None) == ("vcd", True)

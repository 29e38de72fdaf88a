"""Calibrators as folders with a card, here and on a hub; the hub is a stand-in for the real huggingface_hub."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard

from hub_server import TOKEN, Hub, serve_models
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, evaluate, synthesize
from unprior.calibration.files import apply_file, fit_file
from unprior.calibration.pretrained import CARD, FILE
from unprior.scores.provenance import Provenance

REPO = "me/spc-test"


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    return synthesize(seed=0)


@pytest.fixture(scope="module")
def calibrator(table: ScoreTable) -> SelectivePriorCalibrator:
    return SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(table)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve_models() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


def card_of(folder: Path) -> str:
    return (folder / CARD).read_text(encoding="utf-8")


def test_a_folder_holds_the_calibrator_and_its_card(
    calibrator: SelectivePriorCalibrator, table: ScoreTable, tmp_path: Path
) -> None:
    calibrator.save_pretrained(tmp_path / "cal")
    assert sorted(path.name for path in (tmp_path / "cal").iterdir()) == [CARD, FILE]
    again = SelectivePriorCalibrator.from_pretrained(tmp_path / "cal")
    assert again.predict(table).final.tolist() == calibrator.predict(table).final.tolist()
    assert SelectivePriorCalibrator.from_pretrained(tmp_path / "cal" / FILE).certificate_ == calibrator.certificate_
    again.save_pretrained(tmp_path / "cal")  # a card of its own may be replaced
    assert SelectivePriorCalibrator.from_pretrained(tmp_path / "cal").certificate_ == calibrator.certificate_


def test_the_card_tells_what_the_calibrator_knows(
    calibrator: SelectivePriorCalibrator, table: ScoreTable, tmp_path: Path
) -> None:
    test = table.where(split="test")
    evaluation = evaluate(test, calibrator.predict(test))
    calibrator.save_pretrained(tmp_path, evaluation)
    card = card_of(tmp_path)
    certificate = calibrator.certificate_
    assert certificate is not None
    assert certificate.sentence in card
    for task in evaluation.tasks:
        for change in (task.cf.change, task.cs.change):
            assert f"| {change.repairs}/{change.harms} |" in card
    assert f"`{hashlib.sha256((tmp_path / FILE).read_bytes()).hexdigest()}`" in card
    assert "Fitted on 280 rows of questions with options, with 2 or 4 candidates." in card
    assert "| δ | 0.1 |" in card
    assert "Open questions: it was fitted on none" in card
    read = ModelCard.load(tmp_path / CARD)  # warnings are errors here
    assert read.data.to_dict() == {
        "library_name": "unprior",
        "tags": ["unprior", "calibration", "selective-prior-calibration", "vision-language"],
    }


def test_what_is_not_known_is_said_to_be_unknown(table: ScoreTable, tmp_path: Path) -> None:
    assert table.provenance == ()
    SelectivePriorCalibrator().fit(table).save_pretrained(tmp_path)
    card = card_of(tmp_path)
    assert "Repairs and harms on rows that had no part in fitting are not known to this card." in card
    assert "| Prompt (digest) | not known |" in card
    assert "Not noted, so that a difference would not be noticed: Weights" in card
    assert "Nothing about new pairs." in card


def test_where_the_scores_come_from_stands_on_the_card(table: ScoreTable, tmp_path: Path) -> None:
    made = Provenance(
        model="org/model-8b", weights="c0ffee" * 6, precision="bfloat16", prompt="ab" * 32, image_size=512,
        prior="text", benchmark="mine", revision="v2", questions="cd" * 32, versions={"torch": "2.13"},
    )  # fmt: skip
    rows = ScoreTable(table.with_columns(model="org/model-8b", benchmark="mine").arrow, provenance=(made,))
    SelectivePriorCalibrator().fit(rows).save_pretrained(tmp_path)
    card = card_of(tmp_path)
    for text in ("c0ffee" * 6, "bfloat16", "ab" * 32, "512×512", "the text view", "v2", "cd" * 32, "torch 2.13"):
        assert f"| {text} |" in card
    assert ModelCard.load(tmp_path / CARD).data.base_model == "org/model-8b"
    assert "Any model but org/model-8b: it is refused there" in card
    assert "Not noted" not in card


@pytest.mark.parametrize("name", ["a\n---\nlicense: mit", "x|y`<script>", "--- # [a](b)", "me/a: b", '"', "éé/🤗"])
def test_a_strange_name_breaks_no_card(table: ScoreTable, tmp_path: Path, name: str) -> None:
    SelectivePriorCalibrator().fit(table.with_columns(model=name)).save_pretrained(tmp_path)
    card = card_of(tmp_path)
    read = ModelCard.load(tmp_path / CARD)
    assert set(read.data.to_dict()) == {"library_name", "tags"}
    assert "<script>" not in re.sub(r"```.*?\n```", "", card, flags=re.DOTALL)  # code stands for itself
    assert set(yaml.safe_load(card.split("---\n")[1])) == {"library_name", "tags"}
    assert card.count("\n# ") == 1


def test_the_card_of_one_that_abstains(table: ScoreTable, tmp_path: Path) -> None:
    SelectivePriorCalibrator(retention="certified", epsilon_cs=0.001).fit(table).save_pretrained(tmp_path)
    assert "so no answer is ever changed" in card_of(tmp_path)
    assert "It abstains: it changes no answer." in card_of(tmp_path)


def test_open_questions_stand_on_the_card(tmp_path: Path) -> None:
    SelectivePriorCalibrator().fit(synthesize(seed=0, open_questions=True)).save_pretrained(tmp_path)
    card = card_of(tmp_path)
    assert "Fitted on 139 rows of open questions" in card
    assert "Chosen settings for open questions" in card


def test_a_readme_of_others_is_not_replaced(calibrator: SelectivePriorCalibrator, tmp_path: Path) -> None:
    (tmp_path / CARD).write_text("# My project\n")
    with pytest.raises(UnpriorError, match=r"README.md: this is no card of a calibrator, and would be replaced"):
        calibrator.save_pretrained(tmp_path)
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("content", ['{"camera": [1, 2]}', "", '{"format": "unprior-calibrator", "version": 99}'])
def test_a_file_of_others_is_not_replaced(
    calibrator: SelectivePriorCalibrator, table: ScoreTable, tmp_path: Path, content: str
) -> None:
    (tmp_path / FILE).write_text(content)
    message = r"calibrator.json: this is no calibrator that can be read, and would be replaced"
    with pytest.raises(UnpriorError, match=message):
        calibrator.save_pretrained(tmp_path)
    table.write(tmp_path / "scores.parquet")
    with pytest.raises(UnpriorError, match=message):
        fit_file(tmp_path / "scores.parquet", f"{tmp_path}/")
    assert (tmp_path / FILE).read_text() == content
    assert not (tmp_path / CARD).exists()


def test_fit_writes_a_folder(table: ScoreTable, tmp_path: Path) -> None:
    table.write(tmp_path / "scores.parquet")
    fit_file(tmp_path / "scores.parquet", f"{tmp_path}/cal/")
    decisions = apply_file(tmp_path / "cal", tmp_path / "scores.parquet")
    assert decisions.final.tolist() == SelectivePriorCalibrator().fit(table).predict(table).final.tolist()
    assert card_of(tmp_path / "cal").startswith("---\nlibrary_name: unprior\n")


def test_another_model_is_refused(calibrator: SelectivePriorCalibrator, table: ScoreTable, tmp_path: Path) -> None:
    calibrator.save_pretrained(tmp_path / "cal")
    table.with_columns(model="another").write(tmp_path / "scores.parquet")
    with pytest.raises(UnpriorError, match=r"not made like the scores .* model synthetic, here another"):
        apply_file(tmp_path / "cal", tmp_path / "scores.parquet")


def forge(folder: Path, change: dict[str, Any], *, sum_again: bool) -> None:
    document = json.loads((folder / FILE).read_text())
    document["certificate"] |= change
    if sum_again:
        document.pop("checksum")
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        document["checksum"] = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    (folder / FILE).write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("sum_again", "message"), [(False, "contents were changed after the file was saved"), (True, "not a valid")]
)
def test_a_forged_file_is_refused(
    calibrator: SelectivePriorCalibrator, tmp_path: Path, sum_again: bool, message: str
) -> None:
    calibrator.save_pretrained(tmp_path)
    forge(
        tmp_path, {"sentence": "No answer is ever harmed."} if not sum_again else {"bound": 0.001}, sum_again=sum_again
    )
    with pytest.raises(UnpriorError, match=message):
        SelectivePriorCalibrator.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (".", r"no calibrator.json in this folder; `unprior fit SCORES --out"),
        ("nowhere.json", "nowhere.json: no such file"),
        ("runs/nowhere.json", "no such file"),
        ("a/b/c", "no such file"),
        ("nowhere", "no such file"),
        ("../up", "no such file"),
    ],
)
def test_what_is_no_calibrator_is_told_without_asking_a_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub, place: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnpriorError, match=message):
        SelectivePriorCalibrator.from_pretrained(place)
    assert hub.asked == []


def test_there_and_back(calibrator: SelectivePriorCalibrator, table: ScoreTable, tmp_path: Path, hub: Hub) -> None:
    test = table.where(split="test")
    address = calibrator.push_to_hub(REPO, evaluate(test, calibrator.predict(test)), private=True)
    assert address.startswith(f"{hub.url}/{REPO}/commit/")
    assert hub.private == {REPO: True}
    assert sorted(hub.branches[REPO, "main"]) == [CARD, FILE]
    card = hub.branches[REPO, "main"][CARD].decode()
    assert f"from_pretrained('{REPO}')" in card
    fetched = SelectivePriorCalibrator.from_pretrained(REPO, cache_dir=tmp_path / "cache")
    assert fetched.predict(table).final.tolist() == calibrator.predict(table).final.tolist()
    other = SelectivePriorCalibrator().fit(table)
    other.push_to_hub(REPO, revision="paper", commit_message="The paper's rule")
    assert hub.messages == ["Upload calibrator", "The paper's rule"]
    branch = SelectivePriorCalibrator.from_pretrained(REPO, "paper", cache_dir=tmp_path / "cache")
    assert (branch.retention, fetched.retention) == ("paper", "certified")
    commit = address.rpartition("/")[2]
    pinned = SelectivePriorCalibrator.from_pretrained(REPO, revision=commit, cache_dir=tmp_path / "cache")
    assert pinned.retention == "certified"


def test_a_forged_file_of_a_hub_is_refused(calibrator: SelectivePriorCalibrator, tmp_path: Path, hub: Hub) -> None:
    calibrator.push_to_hub(REPO)
    files = hub.branches[REPO, "main"]
    files[FILE] = files[FILE].replace(b'"epsilon_cs": 0.06', b'"epsilon_cs": 0.01')
    with pytest.raises(UnpriorError, match=r"calibrator.json: (not a valid|the contents were changed)"):
        SelectivePriorCalibrator.from_pretrained(REPO, cache_dir=tmp_path / "cache")


def test_mistakes_with_a_hub_are_told(
    calibrator: SelectivePriorCalibrator, tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(UnpriorError, match=r"me/nothing: no such file or folder here, .*no such repository, or a priv"):
        SelectivePriorCalibrator.from_pretrained("me/nothing", cache_dir=cache)
    calibrator.push_to_hub(REPO)
    with pytest.raises(UnpriorError, match=r"me/spc-test at v9: .*the repository has no such revision"):
        SelectivePriorCalibrator.from_pretrained(REPO, "v9", cache_dir=cache)
    with pytest.raises(UnpriorError, match=r"revision.* is for repositories of the hub .owner/name., .* is none"):
        SelectivePriorCalibrator.from_pretrained(tmp_path, "main")
    with pytest.raises(UnpriorError, match=r"nothing here: no repository of the hub has such a name; write owner/name"):
        calibrator.push_to_hub("nothing here")
    del hub.branches[REPO, "main"][FILE]
    with pytest.raises(UnpriorError, match=r"has no calibrator.json, so it holds no calibrator"):
        SelectivePriorCalibrator.from_pretrained(REPO, cache_dir=cache)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(UnpriorError, match=r"me/spc-test: cannot be written to \(.*") as refused:
        calibrator.push_to_hub(REPO)
    assert "hf_wrong" not in str(refused.value)


def test_without_a_network(
    calibrator: SelectivePriorCalibrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UnpriorError, match=r"me/spc-test: no such file .*the hub cannot be reached, and no copy is in"):
        SelectivePriorCalibrator.from_pretrained(REPO, cache_dir=tmp_path, local_files_only=True)  # asks no five times
    with pytest.raises(UnpriorError, match=r"me/spc-test: cannot be written to \("):
        calibrator.push_to_hub(REPO, token="hf_any")


def test_without_huggingface_hub(calibrator: SelectivePriorCalibrator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UnpriorError, match="need huggingface_hub, which is not installed: pip install huggingface_hub"):
        SelectivePriorCalibrator.from_pretrained(REPO)
    with pytest.raises(UnpriorError, match="need huggingface_hub"):
        calibrator.push_to_hub(REPO)

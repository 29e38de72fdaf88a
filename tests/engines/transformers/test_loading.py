"""A model is loaded whole or not at all, known by every byte of its files, and runs no code unasked."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageTextToText

import tiny_models
from unprior import UnpriorError
from unprior.embedded import FOLDER
from unprior.engines.doctor.probes import PROBES
from unprior.engines.doctor.trial import Trial
from unprior.engines.load import load_engine
from unprior.engines.protocol import Answered, CandidateScores, Query
from unprior.engines.transformers import digests as _digests
from unprior.engines.transformers.digests import folder_digest
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.loading import unused_weights
from unprior.engines.transformers.source import Source
from unprior.errors import UnpriorWarning

FolderOf = Callable[[str], Path]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = _digests._LARGE


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def load(folder: Path, **options: Any) -> TransformersEngine:
    return TransformersEngine(folder, device="cpu", self_test=False, **options)


def refusal(folder: Path, **options: Any) -> str:
    """What is said about a folder that cannot be used; always with its name, on one line."""
    with pytest.raises(UnpriorError) as caught:
        TransformersEngine(folder, device="cpu", **options)
    message = str(caught.value)
    assert str(folder) in message
    assert "\n" not in message
    return message


def edit_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def without_tensors(folder: Path, names: set[str]) -> None:
    tensors = load_file(folder / "model.safetensors")
    assert names <= set(tensors)
    kept = {name: tensor for name, tensor in tensors.items() if name not in names}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
def test_missing_weights_are_refused_by_name(model_folder: FolderOf, tmp_path: Path, architecture: str) -> None:
    folder = copied(model_folder(architecture), tmp_path / "m")
    names = sorted(load_file(folder / "model.safetensors"))
    last = next(name for name in names if name.endswith("norm.weight"))
    without_tensors(folder, {last})
    message = refusal(folder)
    assert "its files lack 1 tensor: " in message
    assert ".".join(last.split(".")[-2:]) in message
    assert "Download the model again" in message
    without_tensors(folder, set(names[::2]) - {last})
    assert " more. Such weights would be random" in refusal(folder)


@pytest.mark.parametrize("architecture", ["llava", "qwen3_vl", "idefics3"])
def test_tied_weights_are_not_missing(model_folder: FolderOf, tmp_path: Path, architecture: str) -> None:
    folder = copied(model_folder(architecture), tmp_path / "m")
    model = AutoModelForImageTextToText.from_pretrained(folder)
    model.config.tie_word_embeddings = model.config.text_config.tie_word_embeddings = True
    model.tie_weights()
    model.save_pretrained(folder)
    stored = load_file(folder / "model.safetensors")
    assert not any("lm_head" in name for name in stored)
    weights = load(folder).model
    assert torch.equal(weights.lm_head.weight, weights.get_input_embeddings().weight)
    without_tensors(folder, {name for name in stored if "embed_tokens" in name})
    assert "embed_tokens.weight" in refusal(folder)


def test_weights_of_another_shape_are_refused_by_name(model_folder: FolderOf, tmp_path: Path) -> None:
    folder = copied(model_folder("llava"), tmp_path / "m")
    text = json.loads((folder / "config.json").read_text())["text_config"]
    edit_json(folder / "config.json", text_config=text | {"intermediate_size": 96})
    message = refusal(folder)
    assert "6 tensors of another shape than config.json says" in message
    assert "model.language_model.layers.0.mlp.down_proj.weight (stored 64×128, expected 64×96)" in message


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
@pytest.mark.parametrize("layers", [0, 1])
def test_layers_that_config_json_does_not_know_are_refused(
    model_folder: FolderOf, tmp_path: Path, part: str, layers: int
) -> None:
    folder = copied(model_folder("llava"), tmp_path / "m")
    content = json.loads((folder / "config.json").read_text())[part]
    edit_json(folder / "config.json", **{part: content | {"num_hidden_layers": layers}})
    message = refusal(folder)
    assert f"its files have more layers than config.json says ({layers} layer" in message
    assert f"layers.{layers}." in message


def test_weights_that_the_model_does_not_use_are_told(model_folder: FolderOf, tmp_path: Path) -> None:
    folder = copied(model_folder("llava"), tmp_path / "m")
    tensors = load_file(folder / "model.safetensors")
    stored = next(name for name in tensors if ".layers.0." in name).split(".layers.0.")[0]
    left_over = {f"{stored}.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}
    save_file(tensors | left_over, folder / "model.safetensors", metadata={"format": "pt"})
    assert load(folder).unused_weights == ()
    save_file(tensors | left_over | {"critic.weight": torch.ones(4)}, folder / "model.safetensors", {"format": "pt"})
    with pytest.warns(UnpriorWarning, match=r"1 stored tensor not used \(critic.weight\)"):
        engine = load_engine(str(folder), device="cpu")
    versions = next(probe for probe in PROBES if probe.name == "versions")
    found = versions(Trial.from_engine(engine))
    assert found.status == "warning"
    assert "1 stored tensor is not used" in found.detail
    assert versions(Trial.from_engine(load(model_folder("llava")))).status == "ok"


def test_a_copy_of_tied_weights_is_left_over(model_folder: FolderOf) -> None:
    model = AutoModelForImageTextToText.from_pretrained(model_folder("llava"))
    info = {"unexpected_keys": {"language_model.lm_head.weight"}}
    assert unused_weights(model, info) == ("language_model.lm_head.weight",)
    model.config.text_config.tie_word_embeddings = True
    assert unused_weights(model, info) == ()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"device": "meta"}, r"device='meta' \(command line: --device meta\): no such device"),
        ({"device": ""}, "device='' .*: no such device"),
        ({"device": "cuda:77"}, r"\(check device='cuda:77' \(command line: --device cuda:77\), the folder or hub id"),
        ({"attention": "x"}, r"\(check .*attention='x' \(command line: --attention x\)"),
    ],
)
def test_an_option_that_cannot_be_is_named(model_folder: FolderOf, options: dict[str, str], told: str) -> None:
    with pytest.raises(UnpriorError, match=told):
        load_engine(str(model_folder("llava")), **{"device": "cpu", **options})


@pytest.fixture
def large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file that is worth remembering, a cache of its own, and a clock that stands still."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_digests, "platform_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(_digests, "_LARGE", 4096)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 32)
    age(folder / "model.safetensors", 0)
    return folder


def age(path: Path, seconds: int) -> None:
    os.utime(path, (1_600_000_000 - seconds,) * 2)


@pytest.fixture
def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were hashed."""
    names: list[str] = []
    hashed = _digests.hashlib.file_digest

    def noting(stream: Any, kind: str) -> Any:
        names.append(Path(stream.name).name)
        return hashed(stream, kind)

    monkeypatch.setattr(_digests.hashlib, "file_digest", noting)
    return names


def test_every_byte_of_a_large_file_counts(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "pytorch_model.bin"
    path.write_bytes(bytes(5 * LARGE))  # larger than anything that is read at once
    digests = {folder_digest(folder)}
    for place in (1, LARGE + 77, 3 * LARGE + 1_234_567, 5 * LARGE - 1):
        with path.open("r+b") as stream:
            stream.seek(place)
            stream.write(b"\x01")
        digests.add(folder_digest(folder))
    assert len(digests) == 5


def test_a_large_file_is_hashed_once(large_files: Path, read_files: list[str]) -> None:
    first = folder_digest(large_files)
    assert folder_digest(large_files) == first
    assert read_files == ["config.json", "model.safetensors", "config.json"]
    age(large_files / "model.safetensors", 60)  # it may have changed
    assert folder_digest(large_files) == first
    assert read_files[3:] == ["config.json", "model.safetensors"]


def test_a_changed_file_of_the_same_size_and_time_is_noticed(large_files: Path) -> None:
    """As after restoring a backup; the change of its state gives it away."""
    path = large_files / "model.safetensors"
    first = folder_digest(large_files)
    data, state = bytearray(path.read_bytes()), path.stat()
    data[5000] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert folder_digest(large_files) != first


def test_a_file_that_was_just_written_is_not_remembered(
    large_files: Path, read_files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = (large_files / "model.safetensors").stat().st_mtime_ns
    monkeypatch.setattr(_digests.time, "time_ns", lambda: written + 1_000_000)
    folder_digest(large_files)
    folder_digest(large_files)
    assert read_files.count("model.safetensors") == 2


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 3}', b"\xff", b"[" * 100_000, b"null"])
def test_a_broken_cache_of_digests_is_made_anew(large_files: Path, read_files: list[str], content: bytes) -> None:
    expected = folder_digest(large_files)
    cache = next(large_files.parent.glob("cache/unprior/*.json"))
    cache.write_bytes(content)
    assert folder_digest(large_files) == expected
    assert folder_digest(large_files) == expected
    assert read_files.count("model.safetensors") == 2


def test_a_wrong_entry_of_the_cache_is_not_believed(large_files: Path) -> None:
    expected = folder_digest(large_files)
    cache = next(large_files.parent.glob("cache/unprior/*.json"))
    cache.write_text(json.dumps({key: ["0"] * 64 for key in json.loads(cache.read_text())}))
    assert folder_digest(large_files) == expected


def test_without_a_place_for_a_cache_everything_is_read(
    large_files: Path, read_files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = folder_digest(large_files)
    blocked = large_files.parent / "file"
    blocked.write_text("no folder")

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for place in (lambda: blocked, nowhere):
        monkeypatch.setattr(_digests, "platform_cache", place)
        assert folder_digest(large_files) == expected
    assert read_files.count("model.safetensors") == 3


def test_what_has_nothing_to_do_with_results_does_not_count(large_files: Path) -> None:
    expected = folder_digest(large_files)
    for name in ("README.md", "LICENSE", ".gitattributes", ".DS_Store"):
        (large_files / name).write_text("words")
    (large_files / ".git").mkdir()
    assert folder_digest(large_files) == expected
    (large_files / "merges.txt").write_text("a b")
    assert folder_digest(large_files) != expected


def test_the_embedded_model_is_read_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_digests, "platform_cache", lambda: tmp_path)
    folder_digest(FOLDER)
    assert list(tmp_path.iterdir()) == []


def broken(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("config.json", b"", "config.json is damaged or incomplete"),
        ("config.json", b"[]", "config.json holds a list where an object is needed"),
        ("config.json", b"[" * 100_000, "config.json is damaged or incomplete (nested too deeply"),
        ("config.json", b'{"model_type": [1]}', "cannot be loaded: TypeError: unhashable"),
        ("config.json", b'{"model_type": "llava", "text_config": 3}', "cannot be loaded: "),
        ("tokenizer.json", b"\xff\xfe", "tokenizer.json is damaged or incomplete (UnicodeDecodeError"),
        ("tokenizer.json", b"{}", "cannot be loaded: "),
        ("tokenizer_config.json", b"null", "tokenizer_config.json holds null"),
        ("processor_config.json", b'"text"', "processor_config.json holds text"),
        ("processor_config.json", b'{"image_processor": 7}', "cannot be loaded: AttributeError"),
        ("generation_config.json", b"3", "generation_config.json holds a number"),
        ("generation_config.json", b"[", "generation_config.json is damaged or incomplete"),
        ("generation_config.json", b"[]", "generation_config.json holds a list"),
        ("model.safetensors", b"short", "model.safetensors is damaged or incomplete (SafetensorError"),
        ("chat_template.jinja", b"\xff", "cannot be loaded: UnicodeDecodeError"),
    ],
)
def test_a_broken_file_is_named(model_folder: FolderOf, tmp_path: Path, name: str, content: bytes, told: str) -> None:
    assert told in refusal(broken(copied(model_folder("llava"), tmp_path / "m"), name, content))


@pytest.mark.parametrize("part", [0.1, 0.6, 0.999])
def test_truncated_weights_are_named(model_folder: FolderOf, tmp_path: Path, part: float) -> None:
    folder = copied(model_folder("llava"), tmp_path / "m")
    whole = (folder / "model.safetensors").read_bytes()
    message = refusal(broken(folder, "model.safetensors", whole[: int(part * len(whole))]))
    assert "model.safetensors is damaged or incomplete" in message
    assert "download the file again" in message


@pytest.mark.parametrize("content", [b"not a pickle", b"", None])
def test_pickled_weights_that_cannot_be_read_are_named(
    model_folder: FolderOf, tmp_path: Path, content: bytes | None
) -> None:
    folder = copied(model_folder("llava"), tmp_path / "m")
    path = folder / "pytorch_model.bin"
    torch.save(load_file(folder / "model.safetensors"), path)
    (folder / "model.safetensors").unlink()
    load(folder)
    path.write_bytes(path.read_bytes()[:50_000] if content is None else content)
    assert "cannot be loaded" in refusal(folder)


def test_a_processor_that_cannot_read_an_image_is_refused_at_load(model_folder: FolderOf, tmp_path: Path) -> None:
    folder = copied(model_folder("llava"), tmp_path / "m")
    content = json.loads((folder / "processor_config.json").read_text())
    content["image_processor"]["image_mean"] = ["x", "y", "z"]
    (folder / "processor_config.json").write_text(json.dumps(content))
    assert "cannot read a question about an image" in refusal(folder)


@pytest.mark.parametrize("architecture", ["llava", "qwen3_vl", "idefics3"])
def test_without_a_padding_token_batches_score_the_same(
    model_folder: FolderOf, tmp_path: Path, images: list[Image.Image], architecture: str
) -> None:
    folder = copied(model_folder(architecture), tmp_path / "m")
    edit_json(folder / "tokenizer_config.json", pad_token=None)
    reference, engine = load(model_folder(architecture)), load(folder)
    assert engine.encoder.filler != engine.encoder.placeholder
    texts = ("Is it red?", "Look at the image and count the legs of the animal.\nAnswer with one number.")
    queries = [Query(image, text, (" A", " elephant")) for image, text in zip(images, texts, strict=False)]
    engine.max_new_tokens = reference.max_new_tokens = 4
    for with_image in (True, False):
        asked = queries if with_image else [Query(None, query.text, query.candidates) for query in queries]
        for query, got, expected in zip(asked, engine.score_batch(asked), reference.score_batch(asked), strict=True):
            assert isinstance(got, CandidateScores), query
            assert isinstance(expected, CandidateScores)
            assert got.scores == pytest.approx(expected.scores, abs=1e-4)
    assert all(isinstance(result, Answered) for result in engine.answer_batch(queries))


CODE = """
from pathlib import Path
Path({mark!r}).touch()
from transformers import CLIPImageProcessorPil, LlavaConfig, LlavaForConditionalGeneration

class OwnConfig(LlavaConfig):
    model_type = "llava_of_its_own"

class OwnModel(LlavaForConditionalGeneration):
    config_class = OwnConfig

class OwnImages(CLIPImageProcessorPil):
    pass
"""


@pytest.fixture
def own_code(model_folder: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A model that brings its own code, and a file that the code makes when it runs; whoever asks hears yes."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder, mark = copied(model_folder("llava"), tmp_path / "own"), tmp_path / "it-ran"
    (folder / "own.py").write_text(CODE.format(mark=str(mark)))
    names = {"AutoConfig": "own.OwnConfig", "AutoModelForImageTextToText": "own.OwnModel"}
    edit_json(folder / "config.json", model_type="llava_of_its_own", auto_map=names)
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors.pop("language_model.lm_head.weight")  # the old name is known of LLaVA alone
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder, mark


def test_code_of_a_model_runs_only_when_it_is_trusted(own_code: tuple[Path, Path]) -> None:
    folder, mark = own_code
    message = refusal(folder)
    assert "--trust-remote-code" in message
    assert not mark.exists()
    engine = load(folder, trust_remote_code=True)
    assert mark.exists()
    assert engine.model_type == "llava_of_its_own"


def test_code_of_an_image_processor_does_not_run_where_the_library_forgets_to_pass_that_on(
    model_folder: FolderOf, own_code: tuple[Path, Path], tmp_path: Path
) -> None:
    _, mark = own_code
    folder = copied(model_folder("llava"), tmp_path / "m")
    shutil.copy(tmp_path / "own" / "own.py", folder)
    # Without a class of processor in its files the library goes by the configuration, and asks about the parts.
    for name in ("processor_config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text())
        content.pop("processor_class", None)
        if "image_processor" in content:
            named = {"image_processor_type": "OwnImages", "auto_map": {"AutoImageProcessor": "own.OwnImages"}}
            content["image_processor"] |= named
        (folder / name).write_text(json.dumps(content))
    assert "--trust-remote-code" in refusal(folder)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", {"auto_map": {"AutoConfig": "someone/else--own.OwnConfig"}}),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": [None, "someone/else--own.OwnTokenizer"]}}),
        ("processor_config.json", {"image_processor": {"auto_map": {"AutoImageProcessor": "someone/else--own.Own"}}}),
    ],
)
def test_code_of_another_repository_is_refused(own_code: tuple[Path, Path], name: str, content: dict[str, Any]) -> None:
    folder, mark = own_code
    edit_json(folder / name, **content)
    message = refusal(folder, trust_remote_code=True)
    assert f"{name} names code of another repository, someone/else" in message
    assert not mark.exists()


def test_code_from_the_hub_needs_a_full_commit() -> None:
    for revision in (None, "main", COMMIT[:12], "v" * 40):
        with pytest.raises(UnpriorError, match=r"some/model.*--revision\), all 40 digits"):
            Source("some/model", revision, trust_remote_code=True)
        assert Source("some/model", revision).options == {"revision": revision, "trust_remote_code": False}
    assert Source("some/model", COMMIT, trust_remote_code=True).options["trust_remote_code"] is True

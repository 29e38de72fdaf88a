"""Model folders: ``TransformersEngine`` on changed copies of the embedded model's folder, and ``unprior ask``."""

from __future__ import annotations

import json
import math
import shutil
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

from fuzz.case import Case, Target, require
from fuzz.commands import command
from fuzz.mutate import changed_bytes, changed_json, dumps
from unprior.embedded import FOLDER
from unprior.engines.protocol import Answered, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine

_WEIGHTS = "model.safetensors"
_TEMPLATES = (
    "", "{{ x.y.z }}", "{% for %}", "{{ raise_exception('no') }}", "{{ messages[0]['content'] }}", "Answer:",
    "{{ 1/0 }}", "{% for m in messages %}{{ m['role'] }}{% endfor %}", "{{ messages | tojson }}",
    "{{ strftime_now('%Y-%m-%d') }}", "\ufffe",
    "{% set x = namespace(a=1) %}{{ x.b.c }}", "{% include 'x' %}", "{{ cycler.__init__.__globals__ }}",
    "{{ '<image>' * 9 }}",
)  # fmt: skip
Scores = list[tuple[Any, ...]]


def make(folder: Path) -> Target:
    """The scores of the untouched model."""
    return _Models(folder).run


class _Models:
    def __init__(self, folder: Path) -> None:
        import torch

        torch.set_num_threads(1)
        pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        self.image = Image.fromarray(pixels)
        self.image_path = folder / "image.png"
        self.image.save(self.image_path)
        text = "How many legs does the dog have?\nA. four\nB. five"
        self.queries = [Query(self.image, text, (" A", " B")), Query(None, text, (" A", " B"))]
        self.known: dict[str, Scores] = {}
        engine = TransformersEngine(FOLDER)
        self.known[engine.fingerprint] = self._scores(engine)

    def run(self, case: Case) -> bool:
        random = case.random
        folder = case.folder / "model"
        folder.mkdir()
        for path in FOLDER.iterdir():
            if path.suffix in (".json", ".jinja", ".safetensors"):
                shutil.copyfile(path, folder / path.name)
        for note in _change(random, folder):
            case.note(note)
        if random.random() < 0.15:
            ran = command("ask", self.image_path, "Is it red?", "--model", folder, "--json")
            return ran.accepted
        try:
            return self._load(folder)
        finally:
            if (folder / _WEIGHTS).is_file() and (folder / _WEIGHTS).read_bytes() == (FOLDER / _WEIGHTS).read_bytes():
                (folder / _WEIGHTS).unlink()  # not worth keeping

    def _load(self, folder: Path) -> bool:
        """Scores belong to a fingerprint: the same one never has others."""
        engine = TransformersEngine(folder, name="changed")
        found = self._scores(engine)
        if not any(found):
            return False
        wanted = self.known.setdefault(engine.fingerprint, found)
        require(found == wanted, f"one fingerprint, two scores: {found} instead of {wanted}")
        again = TransformersEngine(folder, name="changed")
        require(again.fingerprint == engine.fingerprint, "loaded twice, a folder has two fingerprints")
        scores = self._scores(again)
        require(scores == found, f"loaded twice, a folder gives two scores: {found} and {scores}")
        return True

    def _scores(self, engine: TransformersEngine) -> Scores:
        scores: Scores = []
        for query in self.queries:
            (result,) = engine.answer_batch([query]) if query.image else engine.score_batch([query])
            if isinstance(result, QueryFailure):
                scores.append(())
                continue
            scored = result.scored if isinstance(result, Answered) else result
            if not all(map(math.isfinite, scored.scores)):  # a scoring run stores a failure
                scores.append(())
                continue
            scores.append((scored.scores, scored.token_counts, result.text if isinstance(result, Answered) else None))
        return scores


def _change(random: Random, folder: Path) -> list[str]:
    """Change a file of the folder; gives what was done."""
    kind = random.choice(
        ("tensors", "tensors", "weights", "config", "config", "tokenizer", "json", "template", "gone", "strange")
    )
    notes = [kind]
    if kind == "tensors":
        notes.append(_change_tensors(random, folder / _WEIGHTS))
    elif kind == "weights":
        path = folder / _WEIGHTS
        content = path.read_bytes()
        header = random.random() < 0.6  # most of the file is weights, which may be anything
        path.write_bytes(
            changed_bytes(random, content[:20_000]) + content[20_000:] if header else changed_bytes(random, content)
        )
    elif kind in ("config", "tokenizer", "json"):
        names = {"config": "config.json", "tokenizer": "tokenizer.json"}
        name = names.get(kind) or random.choice([path.name for path in sorted(folder.glob("*.json"))])
        notes.append(name)
        path = folder / name
        if random.random() < 0.2:
            path.write_bytes(changed_bytes(random, path.read_bytes()))
        else:
            value, note = changed_json(random, json.loads(path.read_bytes()))
            notes.append(note)
            path.write_bytes(dumps(value))
    elif kind == "template":
        path = folder / "chat_template.jinja"
        new = random.choice((*_TEMPLATES, None, None))
        path.write_bytes(changed_bytes(random, path.read_bytes()) if new is None else new.encode())
        notes.append(repr(new))
    elif kind == "gone":
        path = random.choice(sorted(folder.iterdir()))
        path.unlink()
        notes.append(path.name)
    else:
        notes.append(_add_strange(random, folder))
    return notes


def _change_tensors(random: Random, path: Path) -> str:
    """Drop, rename, reshape or retype tensors, with a header that is right for what is left."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    names = [name for name in header if name != "__metadata__"]
    kind = random.choice(("drop", "drop half", "rename", "reshape", "retype", "not a number", "swap", "zero"))
    name, other = random.sample(names, 2)
    tensor = header[name]
    first, last = tensor["data_offsets"]
    if kind == "drop":
        names.remove(name)
    elif kind == "drop half":
        names = random.sample(names, len(names) // 2)
    elif kind == "rename":
        header[f"{name}.old"] = header.pop(name)
        names[names.index(name)] = f"{name}.old"
    elif kind == "reshape":
        tensor["shape"] = random.choice(
            ([*tensor["shape"][::-1]], [int(np.prod(tensor["shape"]))], [1, *tensor["shape"]])
        )
    elif kind == "retype":
        tensor["dtype"] = {"F32": "I32", "BF16": "F16", "F16": "BF16"}.get(tensor["dtype"], "F32")
    elif kind == "swap":
        header[name], header[other] = header[other], header[name]
    elif kind == "zero":
        data = data[:first] + bytes(last - first) + data[last:]
    else:
        data = data[:first] + b"\xff" * (last - first) + data[last:]
    _write_tensors(path, {each: header[each] for each in names}, data)
    return f"{kind} {name}"


def _write_tensors(path: Path, header: dict[str, Any], data: bytes) -> None:
    parts, place, placed = [], 0, {}
    for name, tensor in header.items():
        first, last = tensor["data_offsets"]
        parts.append(data[first:last])
        placed[name] = tensor | {"data_offsets": [place, place + last - first]}
        place += last - first
    text = json.dumps({"__metadata__": {"format": "pt"}, **placed}).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def _add_strange(random: Random, folder: Path) -> str:
    """Files that a loader may believe instead of the right ones."""
    kind = random.choice(("pickle", "index", "code", "empty", "cut"))
    if kind == "pickle":
        (folder / _WEIGHTS).unlink()
        (folder / "pytorch_model.bin").write_bytes(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.")
    elif kind == "index":
        (folder / _WEIGHTS).rename(folder / "model-00001-of-00002.safetensors")
        index = {"metadata": {}, "weight_map": {"x": random.choice(("model-00001-of-00002.safetensors", "../x", ""))}}
        (folder / "model.safetensors.index.json").write_bytes(dumps(index))
    elif kind == "code":
        config = json.loads((folder / "config.json").read_bytes())
        code = "raise SystemExit('code of the folder ran')"
        (folder / "strange.py").write_text(code, encoding="utf-8")
        config["auto_map"] = {"AutoConfig": "strange.Config", "AutoModelForImageTextToText": "strange.Model"}
        config["model_type"] = random.choice((config["model_type"], "strange"))
        (folder / "config.json").write_bytes(dumps(config))
    else:
        path = random.choice(sorted(folder.iterdir()))
        content = path.read_bytes()
        path.write_bytes(b"" if kind == "empty" else content[: random.randrange(len(content))])
        return f"{kind} {path.name}"
    return kind

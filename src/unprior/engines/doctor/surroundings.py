"""Probes of what surrounds a model: the engine's own test at load, and the software it runs on."""

from __future__ import annotations

import platform
import re

import PIL

from unprior.engines.doctor.finding import Verdict
from unprior.engines.doctor.trial import Trial
from unprior.engines.protocol import Engine
from unprior.errors import format_names

_OLDEST = {"torch": (2, 6), "transformers": (5, 3), "vllm": (0, 26)}
_NAMES = {
    "dtype": "precision",
    "root": "loaded from",
    "longest": "longest prompt",
    "version": "server",
    "image_backend": "images by",
}
_NOT_FOR_PEOPLE = frozenset(
    # Known, or too long to read.
    {"engine", "model", "software", "weights", "preprocessing", "chat_template", "prompt", "image_prompt"}
    # What a server can do.
    | {"top_k", "tokenizes", "adds_start", "tells_prompt", "opened_block", "thinking", "served_model"}
)
_NOTHING = frozenset({"", "None", "{}"})


def self_test(trial: Trial) -> Verdict | None:
    """What the transformers engine found out about its model at load."""
    test, level = (getattr(trial.engine, name, None) for name in ("self_test", "level"))
    if test is None or level is None:
        return None
    if not test.trials:
        return Verdict("skipped", f"was not run; {level.about}")
    tried = "; ".join(map(str, test.trials))
    if level.shares:
        return Verdict("ok", f"{tried} from generate(); {level.about}")
    remedy = "Scores are right but slower; another version of transformers may bring the speed back."
    return Verdict("warning", f"{tried} from generate(); {level.about}", remedy)


def versions(trial: Trial) -> Verdict:
    """Versions that are known to work, and a fingerprint that stays."""
    from unprior._version import __version__

    engine = trial.engine
    identity: dict[str, str] = dict(getattr(engine, "identity", {}))
    if identity.get("software") == "vllm":  # a server that says what it is
        identity = {"vllm": identity.pop("version", ""), **identity}
    told = {"unprior": __version__, "python": platform.python_version(), "pillow": PIL.__version__}
    told |= {name: value for name, value in identity.items() if name not in _NOT_FOR_PEOPLE and value not in _NOTHING}
    detail = ", ".join(f"{_NAMES.get(name, name)} {value.removeprefix('torch.')}" for name, value in told.items())
    first = engine.fingerprint
    if not first or engine.fingerprint != first:
        remedy = "Stored scores are found again by it: make it depend on nothing but model, settings and versions."
        return Verdict("failed", "the fingerprint is empty or changes while nothing else does", remedy)
    old = [name for name, least in _OLDEST.items() if name in told and () < _number(told[name]) < least]
    if old:
        wanted = ", ".join(f"{name} {'.'.join(map(str, _OLDEST[name]))} or later" for name in old)
        # A server too old to name tokens is used as one that shows the top ones: less, but not wrong.
        return Verdict("failed" if engine.capabilities.exact_scores else "warning", detail, f"Needs {wanted}.")
    concern = _concern(engine)
    if concern is not None:
        return Verdict("warning", f"{concern[0]}; {detail}", concern[1])
    return Verdict("ok", f"{detail}; fingerprint {first[:12]}")


def _concern(engine: Engine) -> tuple[str, str] | None:
    """What a loaded model is better without, and what to do about it."""
    unused = list(getattr(engine, "unused_weights", ()))
    if unused:
        count = "1 stored tensor is" if len(unused) == 1 else f"{len(unused):,} stored tensors are"
        remedy = "Often a part for training alone; but check that config.json describes the model that was saved."
        return f"{count} not used: {format_names(unused)}", remedy
    template = getattr(getattr(engine, "encoder", None), "template", None)
    if getattr(template, "writes_date", False):
        remedy = "Replace strftime_now(…) in a local copy's chat_template.jinja by a fixed date."
        return "the chat template writes the date, so scores of another day are computed anew", remedy
    return None


def _number(version: str) -> tuple[int, ...]:
    """Numbers at the start of a version.

    >>> _number("2.13.0+cpu")
    (2, 13, 0)
    """
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()

"""The public names of the package, in groups, as directives of autodoc."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import unprior

_ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
_CONSTANT = re.compile(r"(\w+)(: (?:(?!, \w+: ).)+?) = _?[A-Z][A-Z_]+(?:\[\d+\])?(?=[,)])")
_TRIES = 3  # for an example below
_UNDERLINE = re.compile(r"-{3,}$")

GROUPS = {
    "From a model to a result": ("load_engine", "load_benchmark", "score", "run", "run_models", "study", "ask"),
    "Scores": ("ScoreTable", "ScoreRow", "read_scores", "synthesize"),
    "Calibration": ("SelectivePriorCalibrator", "Learned", "Constant", "Fixed", "Grid", "Settings"),
    "Decisions": ("Decisions", "Decision", "Answer", "stable_ranges", "recovery_bound"),
    "Evaluation": ("evaluate", "Evaluation", "measure", "mcnemar", "holm", "pair_bootstrap"),
    "Runs and studies": ("RunConfig", "RunResult", "FinishedRuns", "StudyResults", "export_run"),
    "Progress, warnings, errors": ("Progress", "UnpriorWarning", "UnpriorError", "InvalidScoresError"),
}


def groups() -> dict[str, list[str]]:
    """Every public name by its heading; names without one come last."""
    found = {heading: [name for name in names if name in unprior.__all__] for heading, names in GROUPS.items()}
    known = {name for names in found.values() for name in names}
    return found | {"More": left} if (left := [name for name in unprior.__all__ if name not in known]) else found


def _entry(name: str) -> Iterator[str]:
    thing = getattr(unprior, name)
    if not inspect.isclass(thing):
        yield f".. autofunction:: unprior.{name}"
        return
    yield f".. autoclass:: unprior.{name}"
    if issubclass(thing, Exception):
        yield "   :no-members:"
    elif name == "SelectivePriorCalibrator":  # what saves and publishes it is a class of its own
        yield "   :inherited-members:"


def markdown() -> str:
    """All public names by group."""
    blocks = []
    for heading, names in groups().items():
        blocks.append(f"### {heading}")
        blocks += ["```{eval-rst}\n" + "\n".join(_entry(name)) + "\n```" for name in names]
    return "\n\n".join(blocks)


def add_headings(lines: list[str]) -> list[str]:
    """Docstrings with a heading before what follows their parameters, which napoleon would take for one.

    >>> add_headings(["Parameters", "----------", "a", "    First.", "", ">>> 1", "1"])[4:]
    ['', '', '', '.. rubric:: Examples', '', '>>> 1', '1']
    >>> add_headings(["Attributes", "----------", "a_, b_", "    Both."])
    ['', '', '.. rubric:: Attributes', '', '``a_``, ``b_``', '    Both.']
    """
    made: list[str] = []
    section = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        is_text = bool(line) and not line.startswith(" ")
        if line and _UNDERLINE.match(following):
            section = line
            made += _rubric(line) if line == "Attributes" else [line]
        elif _UNDERLINE.match(line):
            made += [] if section == "Attributes" else [line]
        elif is_text and section in ("Parameters", "Attributes") and not following.startswith("    "):
            section = ""
            made += [*(_rubric("Examples") if line.startswith(">>>") else _rubric("Notes")), line]
        elif is_text and section == "Attributes":  # names end with _, which would be links
            made.append(", ".join(f"``{name}``" for name in line.split(", ")))
        else:
            made.append(line)
    return made


def _rubric(title: str) -> list[str]:
    """Two empty lines end a section for napoleon."""
    return ["", "", f".. rubric:: {title}", ""]


def _on_docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = add_headings(lines)


def _on_signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Names of types as the source has them, within unions, too; numbers and texts instead of names of constants."""
    if signature is not None:
        signature = show_defaults(_ALIAS.sub(r"\1", signature), thing)
    return signature, returned and _ALIAS.sub(r"\1", returned)


def show_defaults(signature: str, thing: Any) -> str:
    """A signature with the values of constants that are plain.

    >>> def ask(tries: int = _TRIES, limit: int | None = None) -> None: ...
    >>> show_defaults("(tries: int = _TRIES, limit: int | None = None)", ask)
    '(tries: int = 3, limit: int | None = None)'
    """
    called = inspect.unwrap(thing.__init__ if inspect.isclass(thing) else thing)
    names = getattr(called, "__code__", None)
    plain = names.co_varnames[: names.co_argcount] if names else ()
    # Not from inspect.signature, in which autodoc puts the names of constants.
    known = dict(zip(reversed(plain), reversed(getattr(called, "__defaults__", None) or ()), strict=False))
    known |= getattr(called, "__kwdefaults__", None) or {}

    def shown(found: re.Match[str]) -> str:
        default = known.get(found[1])
        return f"{found[1]}{found[2]} = {default!r}" if isinstance(default, int | float | str) else found[0]

    return _CONSTANT.sub(shown, signature)


def _on_doctree(app: Sphinx, tree: nodes.document) -> None:
    """Between a parameter and what is said about it stands a dash, not two hyphens."""
    for text in list(tree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx, before napoleon."""
    app.connect("autodoc-process-docstring", _on_docstring, priority=400)
    app.connect("autodoc-process-signature", _on_signature)
    app.connect("doctree-read", _on_doctree)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

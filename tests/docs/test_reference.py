"""The reference says what the program does: commands, public names, messages, metrics."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import unprior
from doc_pages import DOCS, text_of
from unprior.calibration.ladder import DELTA
from unprior.cli.app import Commands
from unprior.evaluation.comparison import evaluate
from unprior.evaluation.metrics import Change, Metrics, utility
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.report.glossary import GLOSSARY

REFERENCE = DOCS / "reference"


@cache
def page(name: str) -> str:
    return text_of(REFERENCE / f"{name}.md")


def test_every_command_and_option_is_listed() -> None:
    from site_cli import commands

    for listed in Commands.listed.values():
        for entry in listed:
            assert f"### unprior {entry.name}\n" in page("cli")
    for _, command, context in commands():
        start = page("cli").index(f"### {context.command_path}\n")
        section = page("cli")[start:].partition("\n### ")[0]
        options = () if hasattr(command, "list_commands") else command.get_params(context)
        for option in options:
            if option.name != "help" and option.param_type_name == "option":
                assert f"`{option.opts[0]}" in section


def test_what_options_say_is_no_markup() -> None:
    from site_cli import code, escape

    assert escape("FIELD_1 <b> below --out, `a_b --c`") == r"FIELD\_1 \<b\> below `--out`, `a_b --c`"
    assert code(" a") == "`  a `"
    assert code("a`b") == "`` a`b ``"


def test_every_public_name_is_on_the_page_and_says_what_it_is() -> None:
    listed = re.findall(r"^\.\. auto(?:class|function):: unprior\.(\w+)", page("python"), re.MULTILINE)
    assert sorted(listed) == sorted(unprior.__all__)
    assert [name for name in unprior.__all__ if not inspect.getdoc(getattr(unprior, name))] == []


def _template(node: ast.expr) -> str:
    """A text of the source; what is filled in is an ellipsis."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else "…"
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(each) for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left) + _template(node.right)
    return "…"


@cache
def templates() -> list[str]:
    source = Path(unprior.__file__).parent
    trees = [ast.parse(each.read_text("utf-8")) for each in sorted(source.rglob("*.py"))]
    kinds = (ast.JoinedStr, ast.Constant, ast.BinOp)
    return [text for tree in trees for node in ast.walk(tree) if isinstance(node, kinds) and (text := _template(node))]


def is_said(message: str) -> bool:
    """Whether a text of the source has these words in this order."""
    pattern = re.compile(".*".join(re.escape(part) for part in message.split("…") if part), re.DOTALL)
    return any(pattern.search(template) for template in templates())


MESSAGES = re.findall(r"^`(.+)`\n: ", (REFERENCE / "errors.md").read_text("utf-8"), re.MULTILINE)


def test_the_page_has_messages() -> None:
    assert len(MESSAGES) > 40
    assert not is_said("the moon is made of …")


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_are_those_of_the_source(message: str) -> None:
    assert is_said(message)


def test_metrics_are_defined_with_the_constants_of_the_program() -> None:
    text = page("metrics")
    assert f"{BOOTSTRAP_RESAMPLES:,} resamples, seed {BOOTSTRAP_SEED}" in text
    level = inspect.signature(evaluate).parameters["level"].default
    weight = inspect.signature(utility).parameters["weight"].default
    assert f"{100 * level:.0f} % percentile bootstrap" in text
    assert f"U = ΔCF + {weight} · ΔCS" in text
    assert f"The default is {DELTA}, a confidence of {100 - 100 * DELTA:.0f} %" in text


def test_every_metric_has_an_entry() -> None:
    entries = " ".join(re.findall(r"^(.+)\n: ", page("metrics"), re.MULTILINE)).casefold()
    fields = [*Metrics.__dataclass_fields__, *Change.__dataclass_fields__, "cfad", "rpd", "delta", "utility"]
    said = {"attraction": "prior attraction", "delta": "δcf", "utility": "u =", "total": "repairs"}
    assert [name for name in fields if said.get(name, name) not in entries] == []
    assert [term.name for term in GLOSSARY if term.name.casefold() not in entries] == []

"""What pages say can be followed: links lead somewhere, programs compile, commands and options exist."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from doc_pages import DOCS, ROOT, anchors, blocks, commands, links, name, pages
from unprior.runs.export import TARGETS

SHELL = re.compile(r"\s(?:\||>|>>|<|&&|&|;)\s?.*$")
SCRIPTS = re.compile(r"(?:\.\./)*(tutorial|gallery)/(index\.\w+)?$")


def problem(page: Path, link: str) -> str | None:
    """Why a link leads nowhere."""
    target, _, anchor = link.partition("#")
    if re.match(r"\w+:", target):
        return None
    found = page if not target else (page.parent / target).resolve()
    if SCRIPTS.fullmatch(target) and page.is_relative_to(DOCS):  # the page that lists executed scripts
        return None if list(found.parent.glob("GALLERY_HEADER.*")) else f"{link}: no scripts there"
    if not found.exists():
        return f"{link}: no such file"
    if anchor and found.suffix == ".md" and anchor not in anchors(found):
        return f"{link}: no such heading"
    return None


@pytest.mark.parametrize("page", pages(), ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert [told for link in links(page) if (told := problem(page, link))] == []


def test_wrong_links_are_noticed() -> None:
    page = DOCS / "reference" / "index.md"
    assert problem(page, "cli.md#unprior-run") is None
    assert problem(page, "cli.md#unprior-walk") == "cli.md#unprior-walk: no such heading"
    assert problem(page, "nothing.md") == "nothing.md: no such file"


@pytest.mark.parametrize("page", pages(), ids=name)
def test_programs_compile(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block.text, f"{name(page)}:{block.line}", "exec")


@pytest.mark.parametrize("page", [each for each in pages() if "<!-- runnable -->" in each.read_text("utf-8")], ids=name)
def test_runnable_programs_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runnable = [block for block in blocks(page, "python") if block.is_runnable]
    assert runnable
    for block in runnable:
        exec(compile(block.text, f"{name(page)}:{block.line}", "exec"), {"__name__": "page"})


def complaint(command: str) -> str | None:
    """What is wrong with a command line of `unprior`: a command or an option that there is not, or that is missing."""
    from site_cli import names, required

    known = names()
    words = shlex.split(SHELL.sub("", re.sub(r"\s#\s.*$", "", command)))
    while words and re.fullmatch(r"\w+=.*", words[0]):  # settings of the environment
        words = words[1:]
    if words[:1] == ["uvx"]:
        words = words[3:] if words[1] == "--from" else words[1:]
    words = words[words.index("unprior") + 1 :] if "unprior" in words[:2] else []  # also behind another program
    if not words or words[0] in ("--help", "--version"):
        return None
    chosen = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
    if chosen not in known:
        return f"no command {chosen}"
    given = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
    if unknown := sorted(given - known[chosen]):
        return f"{chosen} has no {', '.join(unknown)}"
    if given & {"--config"}:  # the file may have the others
        return None
    return f"{chosen} lacks {', '.join(missing)}" if (missing := sorted(required()[chosen] - given)) else None


@pytest.mark.parametrize("page", pages(), ids=name)
def test_commands_exist(page: Path) -> None:
    told = [f"line {line}: {wrong}" for line, command in commands(page) if (wrong := complaint(command))]
    assert told == []


def test_wrong_commands_are_noticed() -> None:
    assert complaint("unprior run --model A > run.toml  # all of it") is None
    assert complaint("KEY=1 unprior data get pope --out x | head") is None
    assert complaint("unprior walk") == "no command walk"
    assert complaint("unprior data get pope --fast") == "data get has no --fast"
    assert complaint("unprior score --benchmark pope --out run") == "score lacks --model"
    assert complaint("unprior score --config run.toml") is None
    assert complaint("unprior fit scores.parquet") == "fit lacks --out"
    assert complaint("uvx --from 'unprior[hf]' unprior walk") == "no command walk"
    assert complaint("uvx --from ./unprior.whl unprior run --out demo") is None


@pytest.mark.parametrize("page", pages(), ids=name)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for _, command in commands(page):
        if command.startswith("make "):
            given = [word for word in shlex.split(command, comments=True)[1:] if "=" not in word]
            assert set(given) <= targets, command


def test_the_table_of_extras_has_every_command_and_extra() -> None:
    text = (DOCS / "reference" / "cli.md").read_text("utf-8").partition("## What to install")[2]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    from site_cli import names

    told = {word.split()[0] for row in rows for word in re.findall(r"`([a-z][a-z -]*)`", row[0])}
    assert told == {each.split()[0] for each in names()}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"].keys()
    assert {row[1].strip("`") for row in rows} - {"none"} == {*extras} - {"dev", "docs"}
    messages = "\n".join(each.read_text("utf-8") for each in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"pip install 'unprior\[(\w+)\]'", messages)) | {each.extra for each in TARGETS.values()}
    assert named == {*extras} - {"dev", "docs"}

"""A release: one version everywhere, two builds of a commit with the same bytes, and nothing but the commit in them."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import unprior
from tools import release

ROOT = Path(__file__).parents[1]
LINE = "An unprior of today.\n"


def newest(changelog: str) -> str:
    """The newest version that a changelog names."""
    return re.findall(r"^## (\d+\.\d+\.\d+)\b", changelog, re.MULTILINE)[0]


def test_the_version_is_one() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == unprior.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    assert newest(changelog) == unprior.__version__ or headings[0] == "Unreleased"


def test_the_citation_has_what_the_format_asks_for() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    (paper,) = citation["references"]
    assert paper["title"] in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert [each["family-names"] for each in paper["authors"]] == ["Chen", "Hu", "Luo"]


def test_hooks_run_what_make_lint_runs() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (local,) = config["repos"]
    assert local["repo"] == "local"
    tools = [hook["entry"].split()[0] for hook in local["hooks"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^lint:.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    linted = [line.split()[0].replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    assert tools == linted


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_issue_forms_are_whole(name: str) -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    fields = [each for each in form["body"] if each["type"] != "markdown"]
    assert all(each["attributes"]["label"] for each in fields)
    assert len({each["id"] for each in fields}) == len(fields)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A commit of the files that a build needs, with a file of no commit beside them."""
    folder = tmp_path_factory.mktemp("repository")
    package = folder / "src" / "unprior"
    (package / "data").mkdir(parents=True)
    for name in ("pyproject.toml", "hatch_build.py", "LICENSE", ".gitignore"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "README.md").write_text(f"# unprior\n\n![A view](docs/view.png)\n\n{LINE}See [more](docs/more.md).\n")
    (package / "__init__.py").write_text(f'"""{LINE.strip()}"""\n')
    (package / "_version.py").write_text('__version__ = "7.8.9"\n')
    (package / "data" / "weights.bin").write_bytes(bytes(range(256)) * 50)
    (package / "py.typed").touch()
    (tests := folder / "tests").mkdir()
    (tests / "test_nothing.py").write_text("def test_nothing() -> None: ...\n")
    identity = {f"GIT_{role}_{kind}": "nobody" for role in ("AUTHOR", "COMMITTER") for kind in ("NAME", "EMAIL")}
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "All"]):
        subprocess.run(["git", *command], cwd=folder, check=True, env=os.environ | identity)
    (package / "forgotten.py").write_text("raise SystemExit\n")
    return folder


@pytest.fixture(scope="module")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    return release.build_twice(repository, tmp_path_factory.mktemp("builds"))


def tracked(repository: Path) -> list[str]:
    command = ["git", "ls-files"]
    return subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout.split()


def test_two_builds_are_the_same_and_hold_the_commit(repository: Path, built: tuple[Path, Path]) -> None:
    sdist, wheel = built
    assert (sdist.name, wheel.name) == ("unprior-7.8.9.tar.gz", "unprior-7.8.9-py3-none-any.whl")
    assert list(release.content_problems(wheel, sdist, tracked(repository))) == []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "unprior/data/weights.bin" in names
    assert not any("test" in name or "forgotten" in name for name in names)


def test_what_is_missing_or_too_much_is_named(repository: Path, built: tuple[Path, Path]) -> None:
    sdist, wheel = built
    names = [name for name in tracked(repository) if not name.endswith("weights.bin")] + ["src/unprior/absent.json"]
    assert list(release.content_problems(wheel, sdist, names)) == [
        f"{wheel.name} lacks unprior/absent.json",
        f"{wheel.name} holds unprior/data/weights.bin, which is not in the commit",
        f"{sdist.name} lacks src/unprior/absent.json",
        f"{sdist.name} holds src/unprior/data/weights.bin, which is not in the commit",
    ]


def test_the_index_shows_a_readme_that_leads_nowhere_wrong(built: tuple[Path, Path]) -> None:
    sdist, wheel = built
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == f"# unprior\n\n{LINE}See more.\n"
    check = [sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_build_that_differs_is_named(built: tuple[Path, Path], tmp_path: Path) -> None:
    sdist, wheel = built
    other = tmp_path / wheel.name
    other.write_bytes(wheel.read_bytes() + b"\0")
    assert release.different_files([sdist, wheel], [sdist, other]) == [wheel.name]
    assert release.different_files([sdist, wheel], [wheel]) == [sdist.name]
    assert release.different_files([sdist, wheel], [wheel, sdist]) == []


def test_this_python_is_found_and_no_other_is_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    pyenv = tmp_path / "pyenv" / "versions" / f"{version}.99" / "bin"
    shims = tmp_path / "shims"
    for folder in (pyenv, shims):
        folder.mkdir(parents=True)
    (shims / f"python{version}").write_text("#!/bin/sh\nexit 127\n")  # as pyenv's, where no version is chosen
    (shims / f"python{version}").chmod(0o755)
    (shims / "python9.9").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(shims))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert release.find_python(version) is None
    (pyenv / f"python{version}").symlink_to(sys.executable)
    assert release.find_python(version) == pyenv / f"python{version}"
    assert release.find_python("9.9") is None


def test_files_have_the_time_of_the_commit(repository: Path, built: tuple[Path, Path]) -> None:
    log = ["git", "log", "-1", "--format=%ct"]
    committed = int(subprocess.run(log, cwd=repository, check=True, capture_output=True, text=True).stdout)
    with tarfile.open(built[0]) as files:
        assert {member.mtime for member in files} == {committed}

"""Builds the release of the last commit into dist/ and tries it on every Python it is for; `make release` runs this.

Wheel and sdist are built twice, in two folders, and must be the same bytes. They hold what the commit holds and nothing
else. Then the wheel is installed outside the repository, for each Python that is found.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
"""The Pythons of a release."""
CORE_TESTS = ("scores", "calibration", "evaluation", "tables", "plots")
"""Folders of tests that need no model."""
TEST_TOOLS = (
    *("filelock", "huggingface_hub", "hypothesis", "pandas", "playwright"),
    *("pytest", "pyyaml", "scikit-learn", "statsmodels"),
)
"""What these tests import beside the package."""


def build(source: Path, out: Path, epoch: str) -> tuple[Path, Path]:
    """Build the sdist of a source tree, and from it the wheel, with the build tools of this environment."""
    environment = _clean_environment() | {"SOURCE_DATE_EPOCH": epoch}
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source], env=environment)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def build_twice(root: Path, folder: Path) -> tuple[Path, Path]:
    """Sdist and wheel of the last commit, built in two folders; end if the results differ by a byte."""
    epoch = _git(root, "log", "-1", "--format=%ct").strip()
    built = []
    for name in ("first", "second-time"):
        source = folder / name / "source"
        export(root, source)
        built.append(build(source, folder / name / "dist", epoch))
    first, second = built
    if differing := different_files(first, second):
        raise SystemExit(f"not reproducible: two builds of one commit differ in {', '.join(differing)}")
    return first


def export(root: Path, target: Path) -> None:
    """Write the files of the last commit, without anything that lies around."""
    target.mkdir(parents=True)
    archive = target.parent / "commit.tar"
    _git(root, "archive", "--format=tar", f"--output={archive}", "HEAD")
    with tarfile.open(archive) as files:
        files.extractall(target, filter="data")
    archive.unlink()


def different_files(first: Iterable[Path], second: Iterable[Path]) -> list[str]:
    """Names of files that are in one of two lists only, or whose bytes differ."""
    one, other = ({path.name: _digest(path) for path in paths} for paths in (first, second))
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def content_problems(wheel: Path, sdist: Path, tracked: Iterable[str]) -> Iterator[str]:
    """What wheel and sdist lack of the files of a commit, or hold beside them."""
    tracked = set(tracked)
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/unprior/")}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith("/")}
    with tarfile.open(sdist) as files:
        in_sdist = {member.name.partition("/")[2] for member in files if member.isfile()} - {"PKG-INFO"}
    for path, expected, found in ((wheel, package, in_wheel), (sdist, tracked, in_sdist)):
        yield from (f"{path.name} lacks {name}" for name in sorted(expected - found))
        yield from (f"{path.name} holds {name}, which is not in the commit" for name in sorted(found - expected))


def find_python(version: str) -> Path | None:
    """A Python of this version, such as ``3.12``: on the path, or one that pyenv has installed."""
    command = f"python{version}"
    folders = [Path(folder) for folder in os.get_exec_path() if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders += sorted(pyenv.glob(f"versions/{version}.*/bin"), reverse=True)
    for python in (folder / command for folder in folders):
        if python.exists() and _version_of(python) == version:
            return python
    return None


def try_wheel(wheel: Path, sdist: Path, python: Path, folder: Path) -> str:
    """Install a wheel for one Python, run its commands, then the tests of the sdist; what was done, in words."""
    environment = _clean_environment()
    _run([python, "-m", "venv", folder / "venv"], env=environment)
    inside = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    source = _unpack(sdist, folder)
    pip: list[str | Path] = [inside, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    pip += ["--constraint", source / "constraints.txt"]
    with_model = subprocess.run([*pip, f"{wheel}[hf]"], env=environment, check=False, capture_output=True, text=True)
    done = "with torch and transformers"
    if with_model.returncode != 0:
        reason = with_model.stderr.strip().splitlines()[-1] if with_model.stderr.strip() else "pip failed"
        done = f"without extras, because unprior[hf] could not be installed ({reason})"
        _run([*pip, wheel], env=environment)
    (elsewhere := folder / "elsewhere").mkdir()
    _run([inside, "-I", source / "tools" / "installed.py", wheel.name.split("-")[1]], cwd=elsewhere, env=environment)
    _run([*pip, *TEST_TOOLS], env=environment)
    shutil.rmtree(source / "src")  # the tests must find the installed package
    tests = [f"tests/{name}" for name in CORE_TESTS]
    _run([inside, "-m", "pytest", "--confcutdir", "tests", "-m", "not slow", *tests], cwd=source, env=environment)
    return done


def main() -> None:
    """Build, check, install, and tell what was done."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", action="append", metavar="VERSION", help="only this Python; may be repeated")
    parser.add_argument("--build-only", action="store_true", help="build and check, but install nowhere")
    options = parser.parse_args()
    if _git(ROOT, "status", "--porcelain").strip():
        print("note: there are changes that are not committed; the release is the last commit", flush=True)
    with tempfile.TemporaryDirectory(prefix="unprior-release-") as name:
        folder = Path(name)
        sdist, wheel = _into_dist(*build_twice(ROOT, folder))
        if problems := list(
            content_problems(wheel, sdist, _git(ROOT, "ls-tree", "-r", "--name-only", "HEAD").splitlines())
        ):
            raise SystemExit("\n".join(problems))
        _run([sys.executable, "-m", "twine", "check", "--strict", sdist, wheel])
        for path in (sdist, wheel):
            print(f"{path.name}  {path.stat().st_size / 1e6:.2f} MB  sha256 {_digest(path)}", flush=True)
        if options.build_only:
            return
        told = []
        for version in options.python or VERSIONS:
            python = find_python(version)
            if python is None:
                told.append(f"Python {version}: not found, not tried")
                continue
            print(f"Trying the wheel on Python {version} …", flush=True)
            told.append(f"Python {version}: works, {try_wheel(wheel, sdist, python, folder / version)}")
            shutil.rmtree(folder / version)
    print("\n".join(told))
    if not any(": works" in line for line in told):
        raise SystemExit("the wheel was tried on no Python")


def _into_dist(sdist: Path, wheel: Path) -> tuple[Path, Path]:
    """Copy what was built to dist/, in place of former builds."""
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    for old in dist.glob("unprior-*"):
        old.unlink()
    return Path(shutil.copy(sdist, dist)), Path(shutil.copy(wheel, dist))


def _unpack(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as files:
        files.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def _version_of(python: Path) -> str | None:
    """Major and minor version of a Python; None if it does not start, as the shims of pyenv may not."""
    command = [str(python), "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_clean_environment())
    return done.stdout.strip() if done.returncode == 0 else None


def _clean_environment() -> dict[str, str]:
    """The environment without what would lead another Python to packages of this one."""
    return {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(root: Path, *arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit("a release is built from a commit: run it in a clone, with git installed") from None


def _run(command: list[str | Path], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    """Run a command with its output shown; end with its name if it fails."""
    if (code := subprocess.run(command, cwd=cwd, env=env, check=False).returncode) != 0:
        raise SystemExit(f"failed with exit code {code}: {' '.join(map(str, command))}")


if __name__ == "__main__":
    main()

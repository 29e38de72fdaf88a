"""The front of the package: every public name is there, and none is imported before it is used."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import unprior

HEAVY = ("numpy", "scipy", "pyarrow", "pydantic", "pandas", "matplotlib", "jinja2", "rich", "torch", "typer")


@pytest.mark.parametrize("name", sorted(unprior.__all__))
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(unprior, name)
    assert value.__name__ == name
    assert value.__module__.startswith("unprior.")
    assert value.__doc__


def test_the_names_are_listed() -> None:
    assert set(unprior.__all__) == set(unprior._MODULE_OF)
    assert set(unprior.__all__) <= set(dir(unprior))
    assert "__version__" in dir(unprior)


def test_python_and_the_commands_have_the_same_batch_size() -> None:
    default = inspect.signature(unprior.score).parameters["batch_size"].default
    assert default == unprior.RunConfig().engine.batch_size


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'unprior' has no attribute 'nonsense'"):
        _ = unprior.nonsense  # type: ignore[attr-defined]


def test_the_import_costs_next_to_nothing() -> None:
    code = (
        f"import sys, unprior; assert unprior.__version__; assert unprior.UnpriorError; "
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

"""Loading a model from Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from unprior import UnpriorError
from unprior.engines.load import check_loading, load_engine, with_internals
from unprior.progress import Progress


@pytest.fixture
def _threads() -> Iterator[None]:
    """How many threads torch uses holds for the whole process."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_threads", "_tested_once")
def test_threads_are_left_alone_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    seen: list[Progress] = []
    engine = load_engine("embedded", device="cpu", report=seen.append)
    assert torch.get_num_threads() == 2
    assert seen == [Progress("Loading embedded")]
    assert with_internals(engine) is engine
    load_engine("embedded", device="cpu", few_threads=True)
    assert torch.get_num_threads() == 1


@pytest.mark.usefixtures("_threads", "_tested_once")
@pytest.mark.parametrize(("variable", "largest"), [("2", 10**9), (None, 1)])
def test_threads_of_large_models_and_those_one_has_set_oneself(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, largest: int
) -> None:
    monkeypatch.setattr("unprior.engines.load._SMALL_MODEL", largest)
    if variable is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    load_engine("embedded", device="cpu", few_threads=True)
    assert torch.get_num_threads() == 2


def test_what_does_not_fit_together_is_refused_before_loading() -> None:
    with pytest.raises(UnpriorError, match=r"engine='openai' \(command line: .*\) goes with the address of a server"):
        load_engine("m", engine="openai")
    with pytest.raises(UnpriorError, match=r"device='cpu' \(command line: .*\): the engine vllm decides that"):
        load_engine("m", engine="vllm", device="cpu")
    with pytest.raises(UnpriorError, match=r"--dtype int8\): no such precision"):
        check_loading(dtype="int8")
    with pytest.raises(UnpriorError, match=r"--image-backend cv\): no such backend"):
        check_loading(image_backend="cv")
    with pytest.raises(UnpriorError, match=r"model='' .*: there is no name; give the folder or hub id"):
        check_loading("")
    with pytest.raises(UnpriorError, match=r"test_load.py.*: this is a file; give the folder"):
        check_loading(__file__)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["messages=[]"], "template argument 'messages': this is set when a prompt is rendered, and cannot be given"),
        ({"add_generation_prompt": False}, "'add_generation_prompt': this is set"),
        (["date=today", "eos_token=zz"], "'eos_token': this is set"),
        (["a=1", " a=2"], "template argument 'a': this is given twice"),
        ("a=1", "template_args: give a mapping, or a list of NAME=VALUE, not 'a=1'"),
    ],
)
def test_template_arguments_that_cannot_be(given: Any, told: str) -> None:
    with pytest.raises(UnpriorError, match=told):
        check_loading(template_args=given)

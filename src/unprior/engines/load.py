"""Loading a model: in this process, or behind a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, cast

from unprior.errors import UnpriorError, did_you_mean, warn
from unprior.progress import Progress, Report, silent

if TYPE_CHECKING:
    from unprior.engines.protocol import Engine
    from unprior.engines.transformers.engine import TransformersEngine

ENGINES = ("transformers", "vllm", "openai")
CONCURRENCY = 16
"""Questions in flight to servers, unless told otherwise."""
NEW_TOKENS = 64
"""Longest original answer in tokens, as in the paper."""
_SMALL_MODEL = 20_000_000  # parameters
_BYTES = 4  # of a parameter
_NEEDS_INTERNALS = (
    "--engine {engine}: the other methods work inside the model, which only --engine transformers permits; leave them "
    "out, or use that engine"
)


def load_engine(
    model: str = "embedded",
    *,
    engine: str = ENGINES[0],
    revision: str | None = None,
    trust_remote_code: bool = False,
    dtype: str = "auto",
    device: str | None = None,
    device_map: str | None = None,
    attention: str | None = None,
    base_urls: Sequence[str] = (),
    concurrency: int = CONCURRENCY,
    tensor_parallel: int = 1,
    max_new_tokens: int = NEW_TOKENS,
    folder: str | None = None,
    few_threads: bool = False,
    report: Report = silent,
) -> Engine:
    """Load a model, or find its server.

    Parameters
    ----------
    model
        ``embedded`` (comes with the package), or a folder or hub id of a model.
    engine
        ``transformers``, ``vllm`` (both in this process), or ``openai``: a server at ``base_urls``.
    revision
        Branch, tag or commit on the hub.
    trust_remote_code
        Run Python code that comes with the model; a hub model then needs a full commit as revision.
    dtype
        ``auto`` (as stored), ``float32``, ``bfloat16`` or ``float16``; never quantised.
    device, device_map, attention
        Where the transformers engine puts the model, and its implementation of attention.
    base_urls, concurrency
        Equal servers that take turns, and the questions in flight to them.
    tensor_parallel
        GPUs that vLLM spreads the model over.
    max_new_tokens
        Longest original answer; a thinking model needs many tokens.
    folder
        Where the model lies, if its name does not tell that everywhere.
    few_threads
        Let torch use one thread for a small model on a CPU, unless ``OMP_NUM_THREADS`` is set. That is faster on a busy
        machine, but it holds for the whole process; so the commands do it, and a library does not.
    report
        Told what is going on.

    >>> load_engine("embedded").name
    'embedded'
    >>> load_engine("some-model", engine="openai")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: --engine openai and --base-url go together, e.g. --base-url http://localhost:8000
    """
    check_loading(
        model, engine=engine, revision=revision, trust_remote_code=trust_remote_code, dtype=dtype, device=device,
        device_map=device_map, attention=attention, base_urls=base_urls, tensor_parallel=tensor_parallel, folder=folder,
        max_new_tokens=max_new_tokens, concurrency=concurrency,
    )  # fmt: skip
    if engine == "openai":
        return _find_server(model, base_urls, concurrency, max_new_tokens, report)
    report(Progress(f"Loading {model}"))
    if engine == "vllm":
        from unprior.engines.vllm import VllmEngine

        # One GPU is vLLM's own default, and not to be told from it in the fingerprint.
        settings = {"tensor_parallel_size": tensor_parallel} if tensor_parallel > 1 else {}
        return VllmEngine(
            _source(model, folder), name=model, revision=revision, dtype=dtype, options=settings,
            max_new_tokens=max_new_tokens, trust_remote_code=trust_remote_code,
        )  # fmt: skip
    from unprior.engines.transformers.engine import TransformersEngine

    source = _source(model, folder)
    with _few_threads(source) if few_threads else nullcontext() as keep:
        loaded = TransformersEngine(
            source, name=model, revision=revision, dtype=dtype, device=device, device_map=device_map,
            attention=attention, max_new_tokens=max_new_tokens, trust_remote_code=trust_remote_code,
        )  # fmt: skip
        if keep is not None:
            keep(loaded)
    if not loaded.shares_prefix:
        warn(
            f"{model}: reusing the read part of a prompt does not give the same scores as reading it whole, "
            f"so every prompt is read whole; results are right but slower"
        )
    return loaded


def check_loading(
    model: str = "embedded",
    *,
    engine: str = ENGINES[0],
    revision: str | None = None,
    trust_remote_code: bool = False,
    dtype: str = "auto",
    device: str | None = None,
    device_map: str | None = None,
    attention: str | None = None,
    base_urls: Sequence[str] = (),
    tensor_parallel: int = 1,
    folder: str | None = None,
    max_new_tokens: int = NEW_TOKENS,
    concurrency: int = CONCURRENCY,
    needs_internals: bool = False,
    **_: object,
) -> None:
    """Refuse arguments of :func:`load_engine` that do not fit together, before anything is computed.

    ``needs_internals``: the model's hidden states and attention will be needed.
    """
    if engine not in ENGINES:
        like = did_you_mean(engine, ENGINES)
        raise UnpriorError(f"--engine {engine}: no such engine{like}; choose one of {', '.join(ENGINES)}")
    for name, value in {"max_new_tokens": max_new_tokens, "concurrency": concurrency}.items():
        if value < 1:
            option = name.replace("_", "-")
            raise UnpriorError(f"{name}={value} (command line: --{option} {value}): give at least 1")
    if (engine == "openai") != bool(base_urls):
        raise UnpriorError("--engine openai and --base-url go together, e.g. --base-url http://localhost:8000")
    if tensor_parallel > 1 and engine != "vllm":
        raise UnpriorError(
            f"--tensor-parallel {tensor_parallel} goes with --engine vllm; a server is started with it (vllm "
            f"serve --tensor-parallel-size {tensor_parallel}), --engine transformers has --device-map auto"
        )
    if needs_internals and engine != "transformers":
        raise UnpriorError(_NEEDS_INTERNALS.format(engine=engine))
    chosen = {"--device": device, "--device-map": device_map, "--attention": attention}
    if engine == "openai":
        chosen |= {"--revision": revision, "--dtype": None if dtype == "auto" else dtype}
        chosen |= {"--trust-remote-code": "" if trust_remote_code else None}
    if engine != "transformers" and (given := [name for name, value in chosen.items() if value is not None]):
        raise UnpriorError(f"{', '.join(given)}: --engine {engine} decides that itself; leave it out")
    if trust_remote_code:
        from unprior.engines.transformers.source import Source

        Source(_source(model, folder), revision, trust_remote_code)  # refuses code that nothing pins


def with_internals(engine: Engine) -> TransformersEngine:
    """The engine, for methods that need the model's logits, hidden states and attention; others are refused."""
    if not (engine.capabilities.hidden_states and engine.capabilities.attention_edits):
        raise UnpriorError(_NEEDS_INTERNALS.format(engine=engine.identity.get("engine", engine.name)))
    return cast("TransformersEngine", engine)


def _source(model: str, folder: str | None) -> str:
    from unprior.embedded import model_folder

    return folder or model_folder(model)


def _find_server(model: str, urls: Sequence[str], concurrency: int, max_new_tokens: int, report: Report) -> Engine:
    from unprior.engines.openai.engine import HttpEngine

    report(Progress(f"Asking {urls[0]}"))
    server = HttpEngine(model, urls, concurrency=concurrency, max_new_tokens=max_new_tokens)
    if server.served.top_k is not None:
        warn(
            f"{urls[0]} shows only the {server.served.top_k} most probable tokens; examples with a candidate outside "
            f"have no exact scores"
        )
    for remark in server.remarks:
        warn(remark)
    return server


@contextmanager
def _few_threads(source: str) -> Iterator[Callable[[TransformersEngine], None]]:
    """Use one thread for a small model on a CPU, from its first pass on if its files are small.

    Such a model gains little from more threads, and loses much when they wait for a busy core. What the context gives
    is called with the loaded model, and decides for the time afterwards.
    """
    from unprior.engines.transformers.engine import require_torch

    require_torch()
    import torch

    before, wanted = torch.get_num_threads(), "OMP_NUM_THREADS" not in os.environ
    files = [path.stat().st_size for path in Path(source).glob("*.safetensors")]
    if wanted and files and sum(files) < _BYTES * _SMALL_MODEL:
        torch.set_num_threads(1)

    def decide(engine: TransformersEngine) -> None:
        small = engine.device_type == "cpu" and engine.parameter_count < _SMALL_MODEL
        torch.set_num_threads(1 if wanted and small else before)

    yield decide

"""Loading a model: in this process, or behind a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from unprior._files import is_file
from unprior.embedded import NAME as EMBEDDED
from unprior.embedded import model_folder
from unprior.engines.template_args import parse_template_args
from unprior.errors import UnpriorError, did_you_mean, format_names, format_option, require_type, warn
from unprior.progress import Progress, Report, check_report, silent
from unprior.prompts import PromptLayout
from unprior.tables.format import format_count

if TYPE_CHECKING:
    from unprior.engines.openai.engine import HttpEngine
    from unprior.engines.protocol import Engine
    from unprior.engines.transformers.engine import TransformersEngine

ENGINES = ("transformers", "vllm", "openai")
BATCH_SIZE = 16
"""Questions in one pass, unless told otherwise."""
MAX_SIDE = 8192
"""Of the squares that images are brought to; larger ones take gigabytes for every image."""
CONCURRENCY = 16
"""Questions in flight to servers, unless told otherwise."""
NEW_TOKENS = 64
"""Longest original answer in tokens, as in the paper."""
BEAMS = 8
"""Width of the search for open answers with the image: wide enough that so many are left after merging forms."""
TEXT_BEAMS = 4
"""Width of the search without the image, of which only the best answer is taken."""
CANDIDATES = 4
"""Different answers to an open question that are kept (K)."""
_SMALL_MODEL = 20_000_000  # parameters
_BYTES = 4  # of a parameter
_NEEDS_INTERNALS = (
    "engine {engine}: the other methods work inside the model, which only the engine transformers permits; leave them "
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
    image_backend: str = "auto",
    base_urls: Sequence[str] = (),
    concurrency: int = CONCURRENCY,
    tensor_parallel: int = 1,
    max_new_tokens: int = NEW_TOKENS,
    layout: PromptLayout | None = None,
    template_args: Mapping[str, Any] | Sequence[str] = (),
    folder: str | None = None,
    few_threads: bool = False,
    permissive: bool = False,
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
    image_backend
        What prepares images: ``pil``, ``torchvision``, or ``auto``: torchvision where it is installed. The embedded
        model always takes ``pil``, so that its results are the same everywhere.
    base_urls, concurrency
        Equal servers that take turns, and the questions in flight to them.
    tensor_parallel
        GPUs that vLLM spreads the model over.
    max_new_tokens
        Longest original answer; a thinking model needs many tokens.
    layout
        The wording around questions.
    template_args
        What the chat template is told beside the conversation, as a mapping or as texts such as
        ``"enable_thinking=false"``. A template that knows ``enable_thinking`` or ``thinking`` is told False anyway.
    folder
        Where the model lies, if its name does not tell that everywhere.
    few_threads
        Let torch use one thread for a small model on a CPU, unless ``OMP_NUM_THREADS`` is set. That is faster on a busy
        machine, but it holds for the whole process; so the commands do it, and a library does not.
    permissive
        Return also a server whose scores are of no use, and test a model again that was tested before, for ``unprior
        doctor`` to say what is wrong.
    report
        Told what is going on.

    >>> load_engine("embedded").name
    'embedded'
    >>> load_engine("some-model", engine="openai")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: engine='openai' (command line: --engine openai) goes with the address of a server...
    """
    check_report(report)
    check_loading(
        model, engine=engine, revision=revision, trust_remote_code=trust_remote_code, dtype=dtype, device=device,
        device_map=device_map, attention=attention, base_urls=base_urls, tensor_parallel=tensor_parallel, folder=folder,
        max_new_tokens=max_new_tokens, concurrency=concurrency, image_backend=image_backend, layout=layout,
        template_args=template_args,
    )  # fmt: skip
    told = parse_template_args(template_args)
    if engine == "openai":
        report(Progress(f"Asking {base_urls[0]}"))
        return _find_server(
            model, base_urls, permissive=permissive,
            concurrency=concurrency, max_new_tokens=max_new_tokens, layout=layout, template_arguments=told,
        )  # fmt: skip
    report(Progress(f"Loading {model}"))
    if engine == "vllm":
        from unprior.engines.vllm import VllmEngine

        # One GPU is vLLM's own default, and not to be told from it in the fingerprint.
        settings = {"tensor_parallel_size": tensor_parallel} if tensor_parallel > 1 else {}
        return VllmEngine(
            _source(model, folder), name=model, revision=revision, dtype=dtype, options=settings,
            max_new_tokens=max_new_tokens, trust_remote_code=trust_remote_code, layout=layout, template_arguments=told,
        )  # fmt: skip
    from unprior.engines.transformers.engine import TransformersEngine

    source = _source(model, folder)
    with _few_threads(source) if few_threads else nullcontext() as keep:
        loaded = TransformersEngine(
            source, name=model, revision=revision, dtype=dtype, device=device, device_map=device_map,
            attention=attention, max_new_tokens=max_new_tokens, trust_remote_code=trust_remote_code, layout=layout,
            self_test="again" if permissive else True,
            template_arguments=told, image_backend="pil" if source == model_folder(EMBEDDED) else image_backend,
        )  # fmt: skip
        if keep is not None:
            keep(loaded)
    if loaded.unused_weights:
        warn(
            f"{model}: {format_count(len(loaded.unused_weights), 'stored tensor')} not used "
            f"({format_names(loaded.unused_weights)}); often a part for training alone, but check that config.json "
            f"describes the model that was saved"
        )
    if not loaded.shares_prefix:
        warn(f"{model}: {loaded.level.about}, because faster ways do not give its scores; results are right but slower")
    if loaded.self_test.noise is not None:
        warn(
            f"{model}: in this precision its own passes differ by {loaded.self_test.noise:.2g} nats, and so may its "
            f"scores; {format_option('dtype', 'float32')} gives exact ones"
        )
    if loaded.encoder.template.is_plain:
        warn(
            f"{model} has no chat template: prompts are the image, the question, and a line “Answer:”. A model "
            f"that was not trained to answer questions may not answer them"
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
    image_backend: str = "auto",
    layout: PromptLayout | None = None,
    template_args: Mapping[str, Any] | Sequence[str] = (),
    needs_internals: bool = False,
    **_: object,
) -> None:
    """Refuse arguments of :func:`load_engine` that do not fit together, before anything is computed.

    ``needs_internals``: the model's hidden states and attention will be needed.
    """
    require_type("model", model, str, "the name or folder of a model, such as 'embedded'")
    require_type("base_urls", base_urls, (list, tuple), "a list of addresses")
    require_type("template_args", template_args, (Mapping, list, tuple), "a mapping, or a list of NAME=VALUE")
    require_type("layout", layout, PromptLayout | None, "a PromptLayout")
    texts = {"revision": revision, "device": device, "device_map": device_map, "attention": attention, "folder": folder}
    for name, text in texts.items():
        require_type(name, text, str | None, "a text")
    counts = {"max_new_tokens": max_new_tokens, "concurrency": concurrency, "tensor_parallel": tensor_parallel}
    for name, value in counts.items():
        require_type(name, value, Integral, "a whole number")
        if value < 1:
            raise UnpriorError(f"{format_option(name, value)}: give at least 1")
    if engine not in ENGINES:
        like = did_you_mean(engine, ENGINES)
        raise UnpriorError(
            f"{format_option('engine', engine)}: no such engine{like}; choose one of {', '.join(ENGINES)}"
        )
    if engine != "openai":
        _check_local(_source(model, folder), dtype, image_backend)
    if (engine == "openai") != bool(base_urls):
        server = format_option("base_urls", ["http://localhost:8000"], flag="--base-url")
        raise UnpriorError(f"{format_option('engine', 'openai')} goes with the address of a server, e.g. {server}")
    if tensor_parallel > 1 and engine != "vllm":
        raise UnpriorError(
            f"{format_option('tensor_parallel', tensor_parallel)} goes with the engine vllm; a server is started with "
            f"it (vllm serve --tensor-parallel-size {tensor_parallel}), and the engine transformers has "
            f"{format_option('device_map', 'auto')}"
        )
    if needs_internals and engine != "transformers":
        raise UnpriorError(_NEEDS_INTERNALS.format(engine=engine))
    chosen: dict[str, object] = {"device": device, "device_map": device_map, "attention": attention}
    if engine == "openai":
        chosen |= {"revision": revision, "dtype": None if dtype == "auto" else dtype}
        chosen |= {"trust_remote_code": trust_remote_code or None}
    if engine != "transformers":
        chosen |= {"image_backend": None if image_backend == "auto" else image_backend}
    given = [format_option(name, value) for name, value in chosen.items() if value is not None]
    if engine != "transformers" and given:
        raise UnpriorError(f"{', '.join(given)}: the engine {engine} decides that itself; leave it out")
    parse_template_args(template_args)
    (layout or PromptLayout()).check()
    if trust_remote_code:
        from unprior.engines.transformers.source import Source

        Source(_source(model, folder), revision, trust_remote_code)  # refuses code that nothing pins


def _check_local(source: str, dtype: str, image_backend: str) -> None:
    """Refuse what cannot be a model in this process."""
    from unprior.engines.transformers.source import check_choices

    check_choices(dtype, image_backend)
    if not source.strip() or is_file(Path(source)):
        problem = "this is a file" if source.strip() else "there is no name"
        raise UnpriorError(f"{format_option('model', source)}: {problem}; give the folder or hub id of a model")


def with_internals(engine: Engine) -> TransformersEngine:
    """The engine, for methods that need the model's logits, hidden states and attention; others are refused."""
    if not (engine.capabilities.hidden_states and engine.capabilities.attention_edits):
        raise UnpriorError(_NEEDS_INTERNALS.format(engine=engine.identity.get("engine", engine.name)))
    return cast("TransformersEngine", engine)


def _source(model: str, folder: str | None) -> str:
    return folder or model_folder(model)


def _find_server(model: str, urls: Sequence[str], *, permissive: bool, **settings: Any) -> Engine:
    from unprior.engines.openai.engine import HttpEngine

    server = HttpEngine(model, urls, **settings)
    refusal = server.refusal or _prompt_fault(server)
    if refusal is not None and not permissive:
        server.close()
        raise UnpriorError(refusal)
    if server.served.top_k is not None:
        warn(
            f"{urls[0]} shows only the {server.served.top_k} most probable tokens; examples with a candidate outside "
            f"have no exact scores"
        )
    for remark in server.remarks:
        warn(remark)
    return server


def _prompt_fault(server: HttpEngine) -> str | None:
    """What is wrong with the prompts that a server shows its model, and what to do; None if it does not tell them."""
    from PIL import Image

    from unprior.engines.doctor.prompts import template_fault

    if not server.served.tells_prompt:
        return None
    text = server.layout.user_text("How many stripes does the zebra have?", ("A", "B"), ("twelve", "thirteen"))
    plain, shown = (server.prompt_as_read(image, text) for image in (None, Image.new("RGB", (64, 64))))
    fault = template_fault(str(plain), str(shown), text)
    return None if fault is None or fault.status != "failed" else f"{server.name}: {fault.detail}. {fault.remedy}"


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

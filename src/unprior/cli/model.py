"""Options about models that several commands share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

import typer

from unprior.cli.console import errors, warn
from unprior.errors import UnpriorError, did_you_mean

if TYPE_CHECKING:
    from unprior.engines.protocol import Engine
    from unprior.engines.transformers.engine import TransformersEngine

ModelName = Annotated[
    str, typer.Option("--model", help="embedded (comes with the package), or a folder or hub id of a model.")
]
BatchSize = Annotated[int, typer.Option(help="Questions in one pass; results do not depend on it.", min=1)]
Revision = Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Run Python code that comes with the model, with all your rights: read it first. A hub model needs the "
        "commit that you have read as --revision, all 40 digits; a local folder is used as it is.",
    ),
]
DType = Annotated[str, typer.Option(help="auto (as stored), float32, bfloat16 or float16; never quantised.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, …; by default the first accelerator there is.")]
DeviceMap = Annotated[str | None, typer.Option(help="Spread the model over devices, e.g. auto (needs accelerate).")]
Attention = Annotated[str | None, typer.Option(help="Attention implementation, e.g. sdpa or eager.")]
EngineName = Annotated[
    str,
    typer.Option("--engine", help="transformers, vllm (both in this process), or openai: a server, with --base-url."),
]
BaseUrls = Annotated[
    list[str] | None,
    typer.Option("--base-url", help="Server for --engine openai; given several times, equal servers take turns."),
]
Concurrency = Annotated[int, typer.Option(help="Questions in flight to servers.", min=1)]
TensorParallel = Annotated[
    int, typer.Option("--tensor-parallel", help="GPUs that --engine vllm spreads the model over.", min=1)
]
AllowCensored = Annotated[
    bool,
    typer.Option("--allow-censored", help="Take bounds for candidates outside the top tokens that a server shows."),
]
MaxNewTokens = Annotated[
    int, typer.Option("--max-new-tokens", help="Longest original answer, in tokens; thinking needs many.", min=1)
]
DEFAULT_CONCURRENCY = 16
DEFAULT_NEW_TOKENS = 64
ENGINES = ("transformers", "vllm", "openai")

_SMALL_MODEL = 20_000_000
_LOOKS_INSIDE = (
    "--engine {engine}: the other methods work inside the model, which only --engine transformers permits; leave them "
    "out, or use that engine"
)


@dataclass(frozen=True)
class ModelOptions:
    """How a model is loaded."""

    model: str
    revision: str | None
    dtype: str
    device: str | None
    device_map: str | None
    attention: str | None
    engine: str = ENGINES[0]
    base_urls: tuple[str, ...] = ()
    concurrency: int = DEFAULT_CONCURRENCY
    tensor_parallel: int = 1
    most_new_tokens: int = DEFAULT_NEW_TOKENS
    folder: str | None = None
    """Where the model lies, if its name does not tell that everywhere."""
    trust_remote_code: bool = False

    @property
    def _source(self) -> str:
        from unprior.embedded import model_folder

        return self.folder or model_folder(self.model)

    def check(self, *, needs_internals: bool = False) -> None:
        """Refuse what does not fit together, before anything is computed."""
        if self.engine not in ENGINES:
            like = did_you_mean(self.engine, ENGINES)
            raise UnpriorError(f"--engine {self.engine}: no such engine{like}; choose one of {', '.join(ENGINES)}")
        if (self.engine == "openai") != bool(self.base_urls):
            raise UnpriorError("--engine openai and --base-url go together, e.g. --base-url http://localhost:8000")
        if self.tensor_parallel > 1 and self.engine != "vllm":
            raise UnpriorError(
                f"--tensor-parallel {self.tensor_parallel} goes with --engine vllm; a server is started with it (vllm "
                f"serve --tensor-parallel-size {self.tensor_parallel}), --engine transformers has --device-map auto"
            )
        if needs_internals and self.engine != "transformers":
            raise UnpriorError(_LOOKS_INSIDE.format(engine=self.engine))
        chosen = {"--device": self.device, "--device-map": self.device_map, "--attention": self.attention}
        if self.engine == "openai":
            chosen |= {"--revision": self.revision, "--dtype": None if self.dtype == "auto" else self.dtype}
            chosen |= {"--trust-remote-code": "" if self.trust_remote_code else None}
        if self.engine != "transformers" and (given := [name for name, value in chosen.items() if value is not None]):
            raise UnpriorError(f"{', '.join(given)}: --engine {self.engine} decides that itself; leave it out")
        if self.trust_remote_code:
            from unprior.engines.transformers.source import Source

            Source(self._source, self.revision, self.trust_remote_code)  # refuses code that nothing pins

    def load(self) -> Engine:
        """Load the model, or find its server, with a word about what is going on."""
        self.check()
        if self.engine == "transformers":
            return self.load_transformers()
        if self.engine == "openai":
            from unprior.engines.openai.engine import HttpEngine

            with errors.status(f"Asking {self.base_urls[0]} …"):
                server = HttpEngine(
                    self.model,
                    self.base_urls,
                    concurrency=self.concurrency,
                    max_new_tokens=self.most_new_tokens,
                )
            if server.served.top_k is not None:
                warn(
                    f"{self.base_urls[0]} shows only the {server.served.top_k} most probable tokens; examples with a "
                    f"candidate outside have no exact scores"
                )
            for remark in server.remarks:
                warn(remark)
            return server
        from unprior.engines.vllm import VllmEngine

        # One GPU is vLLM's own default, and not to be told from it in the fingerprint.
        settings = {"tensor_parallel_size": self.tensor_parallel} if self.tensor_parallel > 1 else {}
        with errors.status(f"Loading {self.model} …"):
            return VllmEngine(
                self._source,
                name=self.model,
                revision=self.revision,
                dtype=self.dtype,
                options=settings,
                max_new_tokens=self.most_new_tokens,
                trust_remote_code=self.trust_remote_code,
            )

    def load_transformers(self) -> TransformersEngine:
        """Load the model for methods that look inside."""
        from unprior.engines.transformers.engine import TransformersEngine

        self.check(needs_internals=True)
        with errors.status(f"Loading {self.model} …"):
            engine = TransformersEngine(
                self._source,
                name=self.model,
                revision=self.revision,
                dtype=self.dtype,
                device=self.device,
                device_map=self.device_map,
                attention=self.attention,
                max_new_tokens=self.most_new_tokens,
                trust_remote_code=self.trust_remote_code,
            )
        _use_few_threads(engine)
        if not engine.shares_prefix:
            warn(
                f"{self.model}: reusing the read part of a prompt does not give the same scores as reading it whole, "
                f"so every prompt is read whole; results are right but slower"
            )
        return engine


def looking_inside(engine: Engine) -> TransformersEngine:
    """The engine for methods that need the model's logits, hidden states and attention."""
    if not (engine.capabilities.hidden_states and engine.capabilities.attention_edits):
        raise UnpriorError(_LOOKS_INSIDE.format(engine=engine.identity.get("engine", engine.name)))
    return cast("TransformersEngine", engine)


def _use_few_threads(engine: TransformersEngine) -> None:
    """A small model on a CPU gains little from more threads, and loses much when they wait for a busy core."""
    import torch

    if engine.device_type == "cpu" and engine.parameter_count < _SMALL_MODEL and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)

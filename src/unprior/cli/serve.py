"""The command that serves calibrated decisions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from unprior.cli.console import AsJson, flag, output, print_json
from unprior.cli.lazy import examples
from unprior.cli.options import takes_config
from unprior.cli.progress import reporting
from unprior.errors import UnpriorError
from unprior.runs.config import RunConfig

if TYPE_CHECKING:
    from unprior.serving.service import Service
    from unprior.serving.settings import Mode, ServeSettings

_WAITING = 2048  # connections that nobody has taken yet
_NEEDED = ("starlette", "uvicorn", "prometheus_client")


@examples(
    "unprior serve",
    "unprior serve --upstream http://localhost:8000 --model Qwen/Qwen3-VL-8B-Instruct --calibrator run/calibrator.json",
)
@takes_config("model", "engine", "prompt", leave_out=("batch_size", "concurrency", "base_url", "allow_censored"))
def serve(
    *,
    config: RunConfig,
    upstream: Annotated[
        list[str] | None, flag("Engine", "Address of a vLLM with the model; several equal ones may be given.")
    ] = None,
    calibrator: Annotated[
        list[str] | None,
        flag(
            "Method",
            "NAME=PLACE of a calibrator (a file, a folder, or owner/name on the hub); the first one decides unless a "
            "request names another.",
        ),
    ] = None,
    mode: Annotated[
        str, flag("Method", "observe: original answers go out, decisions are told; enforce: changed ones go out.")
    ] = "observe",
    on_error: Annotated[
        str, flag("Method", "What goes out when scores cannot be had: the original answer, or an error.")
    ] = "original",
    host: Annotated[str, flag("Server", "Address to listen on; beyond this machine only with a key.")] = "127.0.0.1",
    port: Annotated[int, flag("Server", "Port to listen on; 0 takes a free one.")] = 8077,
    allowed_host: Annotated[
        list[str] | None, flag("Server", "Name that clients may call this server by; * for any, with a key.")
    ] = None,
    image_host: Annotated[
        list[str] | None,
        flag("Server", "Host that images are fetched from, by https unless given as http://NAME:PORT."),
    ] = None,
    concurrency: Annotated[int, flag("Server", "Requests that are worked on at once.")] = 16,
    queue: Annotated[int, flag("Server", "Requests that may wait; further ones get 429.")] = 256,
    deadline: Annotated[float, flag("Server", "Seconds for a request, waiting included.")] = 60.0,
    max_body: Annotated[int, flag("Server", "Largest request in bytes.")] = 24 << 20,
    prior_cache: Annotated[int, flag("Server", "Scores without the image that are kept.")] = 10_000,
    log: Annotated[Path | None, flag("Output", "File of decisions, a line each: no image, no key.")] = None,
    check: Annotated[bool, flag("Output", "Show what would be served, and exit.", "--check")] = False,
    as_json: AsJson = False,
) -> None:
    """Serve calibrated decisions in OpenAI's shape, and a page to try them."""
    _require_extra()
    from unprior.serving.settings import KEY_VARIABLE, ServeSettings

    settings = ServeSettings(
        host=host, port=port, mode=cast("Mode", mode), on_error=on_error, key=os.environ.get(KEY_VARIABLE) or None,
        allowed_hosts=tuple(allowed_host or ()), concurrency=concurrency, queue=queue, deadline=deadline,
        image_hosts=tuple(image_host or ()), max_body=max_body, prior_cache=prior_cache, log=log,
    )  # fmt: skip
    settings.check()  # the mode, too
    if upstream:
        config = config.with_options(engine="openai", base_url=tuple(upstream))
    elif config.engine.name == "openai":
        raise UnpriorError("engine openai needs the address of the server; give --upstream URL")
    service = _load(config, settings, calibrator or [], check=check)
    _describe(service, as_json=as_json)
    if not check:
        _run(service)


def _require_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UnpriorError(f"serving needs {', '.join(missing)}; install them with: pip install 'unprior[serve]'")


def _load(config: RunConfig, settings: ServeSettings, calibrators: list[str], *, check: bool) -> Service:
    from unprior.engines.load import load_engine
    from unprior.engines.openai.engine import HttpEngine
    from unprior.serving.backend import LocalBackend, UpstreamBackend
    from unprior.serving.calibrators import Calibrators
    from unprior.serving.decision_log import DecisionLog, check_log
    from unprior.serving.service import Service

    config.check()
    if settings.log is not None:
        check_log(settings.log)
    with reporting() as report:
        engine = load_engine(**config.loading | {"concurrency": settings.concurrency}, few_threads=True, report=report)
    known = Calibrators.load(calibrators, engine)
    if settings.mode == "enforce" and not known.known:
        raise UnpriorError("--mode enforce needs a calibrator of this model: --calibrator NAME=FILE")
    backend = UpstreamBackend(engine, settings.deadline) if isinstance(engine, HttpEngine) else LocalBackend(engine)
    log = None if settings.log is None or check else DecisionLog(settings.log)
    return Service(settings, backend, known, log=log)


def _describe(service: Service, *, as_json: bool) -> None:
    settings, engine = service.settings, service.backend.engine
    rows = [
        ("Model", f"{engine.name} ({engine.identity.get('engine', 'in this process')})"),
        ("Scores", "exact" if engine.capabilities.exact_scores else "bounds where a token is not shown"),
        ("Open questions", "yes" if engine.capabilities.proposes else "no"),
        ("Mode", settings.mode),
        ("Key", f"needed ({len(settings.keys)} known)" if settings.keys else "none: only this machine can ask"),
        ("Images", ", ".join(("in requests", *(f"from {host}" for host in settings.image_hosts)))),
        (
            "Limits",
            f"{settings.concurrency} requests at once, {settings.queue} waiting, {settings.deadline:g} s each, "
            f"{settings.max_body / 2**20:.3g} MB",
        ),
    ]
    for each in service.calibrators.known.values():
        fitted = each.calibrator
        like = "; ".join(each.caveats) or "made on scores like these"
        told = f"{each.digest}, {fitted.parameters.version}, ε = {fitted.epsilon_cs:g}; {like}"
        rows.append((f"Calibrator {each.name}", told))
    if not service.calibrators.known:
        rows.append(("Calibrator", "none: answers stay as they are"))
    if settings.log is not None:
        rows.append(("Log", str(settings.log)))
    if as_json:
        record: dict[str, Any] = {
            name.lower().replace(" ", "_"): value for name, value in rows if not name.startswith("Calibrator")
        }
        print_json(record | {"calibrators": [each.record() for each in service.calibrators.known.values()]})
        return
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        output.print(f"{name:<{width}}  {value}", markup=False, highlight=False, soft_wrap=True)


def _run(service: Service) -> None:
    import socket

    from unprior.serving.server import run_server

    settings = service.settings
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named: only then does asyncio send at once, without waiting for more (TCP_NODELAY).
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(_WAITING)  # from here on connections are taken, before anybody is told
    except OSError as error:
        told = error.strerror or str(error)
        raise UnpriorError(
            f"cannot listen on {settings.host}:{settings.port} ({told}); choose another --port"
        ) from None
    port = listening.getsockname()[1]
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    output.print(f"Listening on http://{shown}:{port} (Ctrl+C ends it)", markup=False, highlight=False, soft_wrap=True)
    run_server(service, listening)

"""Who may ask: by one of several keys, a program or a browser; callers see nothing of each other, nobody a key."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Error

from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import HASTY
from tests.serving.conftest import Serve, body, choice, running
from unprior.benchmarks.schema import Benchmark
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import Engine
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError
from unprior.serving.backend import LocalBackend, UpstreamBackend
from unprior.serving.calibrators import Calibrators
from unprior.serving.service import Service
from unprior.serving.settings import ServeSettings

A, B = "first-key-of-tenant-a", "second,key-of-tenant-b".replace(",", ".")
ASKED = choice("Which is it?", "a", "b")


@pytest.fixture(scope="module")
def address(start: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start(key=f"{A}, {B}\n", log=tmp_path_factory.mktemp("log") / "decisions.jsonl") as served:
        yield served


def get(address: str, path: str = "/version", **headers: str) -> httpx.Response:
    return httpx.get(f"{address}{path}", headers={name.replace("_", "-"): value for name, value in headers.items()})


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_every_key_opens_every_route(address: str) -> None:
    for key in (A, B):
        for given in (f"Bearer {key}", f"bearer {key}", basic("", key), basic("anyone", key), basic("ü", key)):
            for path in ("/", "/version", "/metrics", "/v1/models", "/v1/calibrators", "/openapi.json", "/ready"):
                assert get(address, path, authorization=given).status_code == 200, given


@pytest.mark.parametrize(
    "given",
    [
        "", "Bearer", f"Bearer {A}{B}", f"Bearer {A},{B}", f"Bearer {A}, {B}", f"Bearer {A[:-1]}", A,
        f"Token {A}", basic(A, ""), basic(A, "x"), basic("x", f"{A} "), basic("x", f"x:{A}"), "Basic", "Basic !!!",
        "Basic " + base64.b64encode(b"\xff:\xff").decode(), "Basic " + base64.b64encode(A.encode()).decode(),
    ],
)  # fmt: skip
def test_nothing_else_does(address: str, given: str) -> None:
    for path in ("/", "/version", "/v1/models", f"/version?key={A}", "/nothing", "/assets/page.js", "/examples/0.png"):
        reply = get(address, path, authorization=given)
        assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
        assert A not in reply.text
        challenges = reply.headers.get_list("www-authenticate")
        is_page = path == "/" or path.startswith(("/assets", "/examples"))
        assert [each.split()[0] for each in challenges] == ["Bearer", "Basic"][: 1 + is_page]


@pytest.mark.parametrize("site", ["cross-site", "same-site", "CROSS-SITE", "nonsense"])
def test_other_sites_are_refused_although_a_browser_remembers_the_key(address: str, site: str) -> None:
    given = basic("me", A)
    link = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    for path, more in (
        ("/version", {}),
        ("/", {}),
        ("/metrics", link),
        ("/", {"sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}),
        ("/", {"sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}),
    ):
        reply = get(address, path, authorization=given, sec_fetch_site=site, **more)
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong_origin")
    headers = {"authorization": given, "sec-fetch-site": site, "sec-fetch-mode": "navigate"}
    assert httpx.post(f"{address}/", headers=headers | {"sec-fetch-dest": "document"}).status_code == 403
    assert get(address, "/", authorization=given, sec_fetch_site=site, **link).status_code == 200
    for own in ("same-origin", "none"):
        assert get(address, authorization=given, sec_fetch_site=own).status_code == 200


@pytest.mark.parametrize("origin", ["http://[::1", "null", "http://", "evil", "http://127.0.0.1"])
def test_foreign_origins_are_refused_whatever_they_look_like(address: str, origin: str) -> None:
    assert get(address, authorization=f"Bearer {A}", origin=origin).status_code == 403


class Counting(LocalBackend):
    """The real model; counts what it is asked."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.priors = 0

    async def score(self, queries: Any) -> Any:
        self.priors += len(queries)
        return await super().score(queries)


def test_what_one_tenant_asked_is_new_for_another(start: Serve, embedded: Engine, plain: str) -> None:
    backend = Counting(embedded)
    with start(backend, key=f"{A} {B}") as address:

        def ask(given: str) -> str:
            headers = {"authorization": given}
            reply = httpx.post(f"{address}/v1/decisions", json=body(plain, ASKED), headers=headers, timeout=60)
            return str(reply.json()["unprior"]["prior_cache"])

        assert [ask(f"Bearer {A}"), ask(basic("x", A))] == ["miss", "hit"]
        assert backend.priors == 1
        assert [ask(f"Bearer {B}"), ask(f"Bearer {B}"), ask(f"Bearer {A}")] == ["miss", "hit", "hit"]
        assert backend.priors == 2


def test_what_one_tenant_asked_openly_is_new_for_another(
    start: Serve, embedded: TransformersEngine, choices: Benchmark, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []
    real = type(embedded).propose_batch

    def counted(engine: Any, queries: Any, count: int) -> Any:
        searches.append(sum(query.image is None for query in queries))
        return real(engine, queries, count)

    monkeypatch.setattr(type(embedded), "propose_batch", counted)
    question = {"type": "open", "instructions": choices.examples[0].question}
    with start(key=f"{A} {B}") as address:
        for key, new in ((A, 1), (A, 0), (B, 1), (B, 0), (A, 0)):
            searches.clear()
            headers = {"authorization": f"Bearer {key}"}
            reply = httpx.post(f"{address}/v1/decisions", json=body(plain, question), headers=headers, timeout=60)
            assert reply.status_code == 200, reply.text
            assert sum(searches) == new


def test_a_key_stays_here_and_is_written_nowhere(
    embedded: TransformersEngine, plain: str, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from unprior.serving.decision_log import DecisionLog

    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("UNPRIOR_API_KEY", "the-key-upstream")
    settings = ServeSettings(key=f"{A} {B}", log=tmp_path / "log.jsonl")
    seen = [repr(settings), str(settings)]
    with FaultyServer(ReplayedVllm(embedded)) as upstream:
        engine = HttpEngine(MODEL, [upstream.url], retry_policy=HASTY)
        assert settings.log is not None
        service = Service(settings, UpstreamBackend(engine), Calibrators({}), log=DecisionLog(settings.log))
        with running(service) as address:
            asked = body(plain, ASKED) | {"model": MODEL}
            for key in (A, B, A + "x"):
                for path in ("/v1/decisions", f"/v1/decisions?key={key}", f"/{key}"):
                    for content in (asked, {"model": key}, asked | {"model": "other"}):
                        headers = {"authorization": f"Bearer {key}", "x-request-id": key}
                        reply = httpx.post(f"{address}{path}", json=content, headers=headers, timeout=60)
                        seen += [reply.text, str(reply.headers)]
            for path in ("/metrics", "/v1/models", "/v1/calibrators", "/ready", "/", "/openapi.json"):
                seen.append(get(address, path, authorization=f"Bearer {A}").text)
            seen.append(repr(service))
        assert upstream.keys == {"Bearer the-key-upstream"}
    seen += [settings.log.read_text(), *capfd.readouterr()]
    seen += [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert '"decision"' in settings.log.read_text()
    assert not [text for text in seen if A in text or B in text]


@pytest.mark.parametrize("key", ["", " ", ",", "short", f"{A},short", f"{A} é-more-than-sixteen", f"{A}\x00{B}"])
def test_keys_that_cannot_be_used(key: str) -> None:
    with pytest.raises(UnpriorError, match="at least 16 plain characters") as told:
        ServeSettings(key=key).check()
    assert A not in str(told.value)


def test_a_browser_logs_in(browser: Browser, address: str, choices: Benchmark) -> None:
    stranger = browser.new_context()
    with pytest.raises(Error, match="ERR_INVALID_AUTH_CREDENTIALS"):  # a person would be asked for them
        stranger.new_page().goto(address)
    stranger.close()
    known = browser.new_context(http_credentials={"username": "me", "password": B})
    page = known.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto(address)
    page.set_input_files("#file", choices.examples[0].image)
    page.fill("#text", "Which is it?")
    page.fill("#candidates", "a\nb")
    page.click("#send")
    page.wait_for_selector("#result:not([hidden])")
    assert 'Bearer $UNPRIOR_SERVE_KEY"' in str(page.text_content("#curl"))
    assert 'os.environ["UNPRIOR_SERVE_KEY"]' in str(page.text_content("#python"))
    assert "import base64, os, pathlib" in str(page.text_content("#python"))
    assert B not in page.content()
    assert faults == []
    known.close()

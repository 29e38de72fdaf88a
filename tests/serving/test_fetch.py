"""Images at addresses: from allowed hosts only, at the address that was checked, bounded, ended with the client."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from image_server import ImageServer, drip, png, send_image, serving
from tests.serving.conftest import Serve, body, choice, running
from unprior.engines.protocol import Engine
from unprior.errors import UnpriorError
from unprior.serving.backend import LocalBackend
from unprior.serving.calibrators import Calibrators
from unprior.serving.errors import RequestError
from unprior.serving.fetch import ImageFetcher, Origin, is_public
from unprior.serving.service import Service
from unprior.serving.settings import ServeSettings

ASKED = choice("Which?", "a", "b")
PUBLIC, OTHER = "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
NAME = "images.example.com"


@pytest.fixture(scope="module")
def images() -> Iterator[ImageServer]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def address(images: ImageServer, start: Serve) -> Iterator[str]:
    with start(image_hosts=(images.origin, NAME)) as served:
        yield served


@pytest.fixture
def ask(address: str, images: ImageServer) -> Callable[..., httpx.Response]:
    images.heads.clear()
    images.paths.clear()
    images.answer = send_image(png())
    return lambda url, **more: httpx.post(f"{address}/v1/decisions", json=body(url, ASKED), timeout=60, **more)


def told(reply: httpx.Response) -> str:
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == "input"
    return str(reply.json()["error"]["message"])


def test_an_image_of_an_allowed_host_is_seen(ask: Callable, address: str, images: ImageServer, plain: str) -> None:
    reply = ask(f"{images.origin}/a/b.png?size=2", headers={"x-secret": "1", "cookie": "c=d"})
    assert reply.status_code == 200, reply.text
    assert images.paths == ["/a/b.png?size=2"]
    (head,) = images.heads
    assert head.pop("user-agent").startswith("unprior/")
    assert head == {
        "host": images.origin.removeprefix("http://"),
        "accept": "image/png, image/jpeg, image/webp, image/gif",
        "accept-encoding": "identity",
        "connection": "close",
    }
    ask(images.origin)
    assert images.paths[1:] == ["/"]
    assert "cookie" not in images.heads[1]
    content = [{"type": "text", "text": "Which?"}, {"type": "image_url", "image_url": {"url": f"{images.origin}/c"}}]
    chat = {"model": "embedded", "messages": [{"role": "user", "content": content}]}
    asked = chat | {"structured_outputs": {"choice": ["a", "b"]}}
    assert httpx.post(f"{address}/v1/chat/completions", json=asked, timeout=60).status_code == 200
    assert images.paths[2:] == ["/c"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/a.png",
        "http://127.0.0.1:1/a.png",
        "https://127.0.0.1:{port}/a.png",
        "http://localhost:{port}/a.png",
        "http://127.1:{port}/a.png",
        "http://2130706433:{port}/a.png",
        "http://0x7f000001:{port}/a.png",
        "http://0177.0.0.1:{port}/a.png",
        "http://127.0.0.01:{port}/a.png",
        "http://0:{port}/a.png",
        "http://[::1]:{port}/a.png",
        "http://[::ffff:127.0.0.1]:{port}/a.png",
        "http://[::ffff:7f00:1%25lo]:{port}/a.png",
        "http://127.0.0.1.:{port}/a.png",
        "http://127.0.0.1:0{port}/a.png",
        "http://127.0.0.1:{port}0/a.png",
        "http://127.0.0.1:{port}@evil.example/a.png",
        "http://evil.example@127.0.0.1:{port}/a.png",
        "http://user:password@127.0.0.1:{port}/a.png",
        "http://127.0.0.1:{port}\\@evil.example/",
        "http://ok\\@127.0.0.1:{port}/",
        "http:\\\\127.0.0.1:{port}\\a.png",
        "http:/127.0.0.1:{port}/a.png",
        "//127.0.0.1:{port}/a.png",
        "http://127.0.0.1:{port}/a b.png",
        "http://127.0.0.1:{port}/a\r\nHost: evil",
        "http://127.0.0.1:{port}/a\u0000",
        "\thttp://127.0.0.1:{port}/a.png",
        " http://127.0.0.1:{port}/a.png",
        "http://127.0.0.1:{port}/a.png\n",
        "http://127.0.0.1:{port}/ä.png",
        "http://127.0.0.1:{port}/a.png#b",
        "http://①②⑦.0.0.1:{port}/a.png",
        "http://127。0。0。1:{port}/a.png",
        "http://127.0.0.1:{port}/../a.png",
        "http://127.0.0.1:{port}/a/%2e%2E/b.png",
        "http://127.0.0.1:{port}/.",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00::1]/a.png",
        "https://evil.example/a.png",
        "http://images.example.com/a.png",
        "https://images.example.com.evil.example/a.png",
        "https://evil.example/images.example.com",
        "https://images.example.com:8443/a.png",
        "https://images.example.com./a.png",
        "https://iｍages.example.com/a.png",
        "file:///etc/passwd",
        "ftp://127.0.0.1:{port}/a.png",
        "gopher://127.0.0.1:{port}/a.png",
        "javascript:alert(1)",
        "../a.png",
        "",
        "https://images.example.com/" + "a" * 3_000,
    ],
)
def test_everything_else_is_refused_without_a_connection(
    ask: Callable, images: ImageServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", _never(opened))
    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", _never(opened))
    assert "fetched" in told(ask(url.replace("{port}", str(images.port))))
    assert opened == images.paths == []


def _never(opened: list[Any]) -> Callable[..., Any]:
    async def call(*given: Any, **more: Any) -> Any:
        opened.append((given, more))
        raise OSError("a connection was to be opened")

    return call


def test_nothing_is_fetched_unless_hosts_are_allowed(server: str, images: ImageServer) -> None:
    images.paths.clear()
    reply = httpx.post(f"{server}/v1/decisions", json=body(f"{images.origin}/a.png", ASKED), timeout=60)
    assert "--image-host" in told(reply)
    assert images.paths == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (send_image(b"", 302, Location="http://169.254.169.254/secret"), "sends on to another one"),
        (send_image(b"", 307, Location="file:///etc/passwd"), "sends on to another one"),
        (send_image(b"the secret", 404), "could not be fetched"),
        (send_image(b"the secret", 500), "could not be fetched"),
        (send_image(png(), 206), "could not be fetched"),
        (send_image(b"the secret", Content_Encoding="gzip"), "could not be fetched"),
        (send_image(png()[:40], Content_Length="100"), "could not be fetched"),
        (send_image(png(), Transfer_Encoding="chunked"), "could not be fetched"),
        (lambda handler: handler.wfile.write(b"secret\r\n\r\n"), "could not be fetched"),
        (send_image(b"<svg>the secret</svg>", Content_Type="image/png"), "not a readable PNG"),
        (send_image(b""), "not a readable PNG"),
        (send_image(png(5_000)), "pixels are more than"),
        (send_image(png() + bytes(17 << 20)), "more than 16,777,216 bytes"),
        (send_image(png(), Content_Length=str(1 << 40)), "could not be fetched"),
    ],
)
def test_what_cannot_be_used_is_told_without_its_content(
    ask: Callable, images: ImageServer, answer: Callable[[BaseHTTPRequestHandler], None], words: str
) -> None:
    def ending(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        answer(handler)

    images.answer = ending
    message = told(ask(f"{images.origin}/a.png"))
    assert words in message
    assert "secret" not in message
    assert len(images.paths) == 1


def test_a_body_without_end_is_not_read_to_it(ask: Callable, images: ImageServer) -> None:
    sent = []

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(1 << 20))
            sent.append(1 << 20)

    images.left.clear()
    images.answer = endless
    assert "more than 16,777,216 bytes" in told(ask(f"{images.origin}/a.png"))
    assert images.left.wait(30)
    assert sum(sent) < 64 << 20  # what the sockets hold is more than the limit


def test_adripping_image_ends_with_the_deadline(start: Serve, images: ImageServer) -> None:
    images.left.clear()
    images.answer = drip
    with start(image_hosts=(images.origin,), deadline=1.0) as address:
        reply = httpx.post(f"{address}/v1/decisions", json=body(f"{images.origin}/a.png", ASKED), timeout=60)
    assert reply.status_code == 504
    assert images.left.wait(30)


def test_a_client_that_leaves_ends_the_fetch(address: str, images: ImageServer) -> None:
    images.left.clear()
    images.paths.clear()
    images.answer = drip
    leaving = HTTPConnection(address.removeprefix("http://"))
    leaving.request("POST", "/v1/decisions", json.dumps(body(f"{images.origin}/a.png", ASKED)))
    while not images.paths:
        threading.Event().wait(0.01)
    leaving.close()
    assert images.left.wait(30)


class Pinned(httpx.AsyncBaseTransport):
    """Keeps where connections would go; they go to this machine, whatever the address."""

    def __init__(self, port: int | None = None, certificates: ssl.SSLContext | None = None) -> None:
        self.asked: list[str] = []
        self._port = port
        self._inner = httpx.AsyncHTTPTransport(verify=certificates or True)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        if self._port is None:
            raise httpx.ConnectError("no further")
        request.url = request.url.copy_with(host="127.0.0.1", port=self._port)
        return await self._inner.handle_async_request(request)


class Names:
    """A resolver that gives one answer after the other."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, int]]()

    async def __call__(self, name: str, port: int) -> Sequence[str]:
        self.asked.append((name, port))
        if not self.answers:
            raise OSError("unknown")
        return self.answers.pop(0)


def fetch(url: str, names: Names, transport: Pinned, hosts: Sequence[str] = (NAME,)) -> bytes | str:
    fetcher = ImageFetcher(hosts, 16 << 20, resolve=names, transport=transport)

    async def get() -> bytes | str:
        try:
            return await fetcher.fetch(url, "input")
        except RequestError as error:
            return f"{error.status}: {error.message}"

    result: list[bytes | str] = []
    thread = threading.Thread(target=lambda: result.append(asyncio.run(get())))  # playwright has a loop in this one
    thread.start()
    thread.join()
    return result[0]


@pytest.mark.parametrize(
    "inner",
    [
        "127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "198.18.0.1", "192.0.2.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1",
        "::ffff:10.0.0.1", "::ffff:93.184.215.14", "::10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254",
        "64:ff9b:1::93.184.215.14", "2002:a00:1::", "2002:7f00:1::1", "2001:0:a00:1::1", "2001:db8::1", "fec0::1",
        "nonsense",
    ],
)  # fmt: skip
def test_a_name_that_leads_inward_is_not_followed(inner: str) -> None:
    for found in ([inner], [PUBLIC, inner], [inner, PUBLIC]):
        names, transport = Names(found), Pinned()
        message = fetch(f"https://{NAME}/a.png", names, transport)
        assert isinstance(message, str)
        assert inner not in message
        assert transport.asked == []
    assert names.asked == [(NAME, 443)]


def test_the_checked_address_is_the_one_connected_to() -> None:
    names, transport = Names([PUBLIC, OTHER], ["127.0.0.1"]), Pinned()  # the second answer would lead inward
    assert "could not be fetched" in str(fetch(f"https://{NAME}/a.png?b=c", names, transport))
    assert transport.asked == [f"https://{PUBLIC}/a.png?b=c"]
    assert len(names.asked) == 1
    for found, shown in ((OTHER, f"[{OTHER}]"), ("64:ff9b::93.184.215.14", "[64:ff9b::5db8:d70e]")):
        transport = Pinned()
        fetch(f"https://{NAME}:444", Names([found]), transport, [f"{NAME}:444"])
        assert transport.asked == [f"https://{shown}:444/"]
    assert "could not be fetched" in str(fetch(f"https://{NAME}/a.png", Names(), Pinned()))
    assert "could not be fetched" in str(fetch(f"https://{NAME}/a.png", Names([]), Pinned()))


def test_an_inner_address_can_be_allowed_by_itself() -> None:
    transport = Pinned()
    hosts = ["http://store.internal:9000", "http://10.0.0.5:9000", "http://[fd00::5]:9000"]
    for url, found in (
        ("http://store.internal:9000/a", ["10.0.0.5"]),
        ("http://10.0.0.5:9000/a", []),
        ("http://[fd00::5]:9000/a", []),
    ):
        fetch(url, Names(found), transport, hosts)
    assert transport.asked == ["http://10.0.0.5:9000/a", "http://10.0.0.5:9000/a", "http://[fd00::5]:9000/a"]
    for url, found in (
        ("http://store.internal:9000/a", ["10.0.0.6"]),
        ("http://[fd00:0::5]:9000/a", []),
        ("http://store.internal/a", ["10.0.0.5"]),
    ):
        assert isinstance(fetch(url, Names(found), transport, hosts), str)
    assert len(transport.asked) == 3


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("certificate")
    command = (
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={NAME} "
        f"-addext subjectAltName=DNS:{NAME} -keyout {place}/key.pem -out {place}/cert.pem"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    return place


def test_the_certificate_must_be_that_of_the_name(certificate: Path) -> None:
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    shown: list[str | None] = []
    own.sni_callback = lambda _, name, __: shown.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    with serving(own) as images:
        good = Pinned(images.port, trusting)
        assert fetch(f"https://{NAME}/a.png", Names([PUBLIC]), good) == png()
        assert (images.heads[0]["host"], shown) == (NAME, [NAME])
        for name, certificates in (("other.example.com", trusting), (NAME, None)):
            transport = Pinned(images.port, certificates)
            message = fetch(f"https://{name}/a.png", Names([PUBLIC]), transport, [name])
            assert message == "400: input: the image could not be fetched; check its address"
        assert len(images.heads) == 1


def test_no_proxy_of_the_environment_is_used(
    images: ImageServer, start: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    images.answer = send_image(png())
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("UNPRIOR_API_KEY", "the key of a server behind")
    with start(image_hosts=(images.origin,)) as address, httpx.Client(trust_env=False) as client:
        asked = body(f"{images.origin}/a.png", ASKED)
        assert client.post(f"{address}/v1/decisions", json=asked, timeout=60).status_code == 200
    assert "authorization" not in images.heads[-1]


def test_the_route_uses_the_resolver(embedded: Engine) -> None:
    service = Service(ServeSettings(image_hosts=(NAME,)), LocalBackend(embedded), Calibrators({}))
    names, transport = Names(["10.0.0.1"], [PUBLIC]), Pinned()
    service.fetcher = ImageFetcher((NAME,), 1 << 20, resolve=names, transport=transport)
    with running(service) as address:
        for words in ("not a public one", "could not be fetched"):
            reply = httpx.post(f"{address}/v1/decisions", json=body(f"https://{NAME}/a.png", ASKED), timeout=60)
            assert words in told(reply)
    assert transport.asked == [f"https://{PUBLIC}/a.png"]


@pytest.mark.parametrize(
    "host",
    ["*", "*.example.com", "a b", "ftp://a", "https://a/b", "a@b", "127.1", "2130706433", "0x7f.1", "[::1", "::1",
     "[0::1]", "a:70000", "a:0", "", "a..b", "a.", "-a.b", "ä.example", "http://a:80/", "127.0.0.01", "[127.0.0.1]"],
)  # fmt: skip
def test_hosts_that_cannot_be_allowed(host: str) -> None:
    with pytest.raises(UnpriorError, match="--image-host"):
        ServeSettings(image_hosts=(host,)).check()


def test_a_host_is_named_with_its_port_where_that_is_unusual() -> None:
    assert Origin.from_option("https://A.example:443").netloc == "a.example"
    assert Origin.from_option("http://[::1]:443").netloc == "[::1]:443"


@given(st.ip_addresses())
def test_public_addresses_are_what_python_calls_global(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if is_public(ip):
        assert ip.is_global
        assert not ip.is_multicast

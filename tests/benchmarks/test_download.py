"""Downloads from a server on this machine: broken connections, wrong checksums, nobody there."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from file_server import Files, git_name, serve, serve_hub
from unprior import UnpriorError
from unprior.benchmarks.card import Card
from unprior.benchmarks.download import MANIFEST, Fetched, download, fetch, read_manifest
from unprior.benchmarks.entry import Entry
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.sources import GitHubFiles, HubDataset, NamedImages, RemoteFile, Source
from unprior.prompts import YES_NO

CONTENT = bytes(range(256)) * 1000
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _no_pauses_and_no_token_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    monkeypatch.setattr("unprior.benchmarks.download._PAUSE", 0.0)


@pytest.fixture
def server() -> Iterator[Files]:
    with serve() as files:
        files.content["/file.bin"] = CONTENT
        yield files


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=5) as client:
        yield client


def remote(server: Files, checksum: str | None = f"sha256:{SHA}", size: int | None = len(CONTENT)) -> RemoteFile:
    return RemoteFile("data/file.bin", f"{server.url}/file.bin", size, checksum)


def test_a_file_comes_whole(server: Files, client: httpx.Client, tmp_path: Path) -> None:
    seen: list[int] = []
    fetch(client, remote(server), tmp_path, lambda done, size: seen.append(done))
    assert (tmp_path / "data" / "file.bin").read_bytes() == CONTENT
    assert seen[-1] == len(CONTENT)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["file.bin"]
    fetch(client, remote(server), tmp_path)
    assert len(server.asked) == 1, "what is there and whole is not fetched again"


def test_a_broken_connection_is_continued(server: Files, client: httpx.Client, tmp_path: Path) -> None:
    server.break_after = [100_000, 50_000]
    fetch(client, remote(server), tmp_path)
    assert (tmp_path / "data" / "file.bin").read_bytes() == CONTENT
    ranges = [wanted for _, wanted in server.asked]
    assert ranges[0] is None
    assert all(str(wanted).startswith("bytes=") for wanted in ranges[1:])
    assert len(ranges) == 3


@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_a_part_of_an_earlier_run_is_continued(
    server: Files, client: httpx.Client, tmp_path: Path, size: int | None
) -> None:
    server.break_after = [70_000] + [0] * 3
    with pytest.raises(
        UnpriorError, match=r"the connection broke 4 times.*bytes are kept, and the same command goes on"
    ):
        fetch(client, remote(server, size=size), tmp_path)
    part = tmp_path / "data" / "file.bin.part"
    kept = part.stat().st_size
    assert 0 < kept <= 70_000
    assert not (tmp_path / "data" / "file.bin").exists()
    fetch(client, remote(server, size=size), tmp_path)
    assert server.asked[-1] == ("/file.bin", f"bytes={kept}-")
    assert (tmp_path / "data" / "file.bin").read_bytes() == CONTENT
    assert not part.exists()


def test_a_server_without_ranges_starts_again(server: Files, client: httpx.Client, tmp_path: Path) -> None:
    server.ranges, server.break_after = False, [100_000]
    fetch(client, remote(server), tmp_path)
    assert (tmp_path / "data" / "file.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("part", [CONTENT + b"more", CONTENT])
def test_a_part_that_is_too_long_or_already_whole(
    server: Files, client: httpx.Client, tmp_path: Path, part: bytes
) -> None:
    for size in (len(CONTENT), None):
        folder = tmp_path / str(size)
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "file.bin.part").write_bytes(part)
        fetch(client, remote(server, size=size), folder)
        assert (folder / "data" / "file.bin").read_bytes() == CONTENT


def test_a_wrong_checksum_is_thrown_away(server: Files, client: httpx.Client, tmp_path: Path) -> None:
    server.content["/file.bin"] = CONTENT[:-1] + b"x"
    with pytest.raises(UnpriorError, match=f"the checksum is sha256:.*but sha256:{SHA} was published"):
        fetch(client, remote(server), tmp_path)
    assert list((tmp_path / "data").iterdir()) == []
    server.content["/file.bin"] = CONTENT
    fetch(client, remote(server), tmp_path)


def test_a_file_that_changed_on_disk_is_fetched_again(server: Files, client: httpx.Client, tmp_path: Path) -> None:
    fetch(client, remote(server), tmp_path)
    (tmp_path / "data" / "file.bin").write_bytes(b"y" * len(CONTENT))
    fetch(client, remote(server), tmp_path)
    assert (tmp_path / "data" / "file.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(("status", "remedy"), [(404, "not there"), (401, "login"), (429, "later"), (500, "later")])
def test_refusals_are_named(server: Files, client: httpx.Client, tmp_path: Path, status: int, remedy: str) -> None:
    server.status["/file.bin"] = status
    with pytest.raises(UnpriorError, match=rf"/file\.bin: the server answered {status} .*{remedy}"):
        fetch(client, remote(server), tmp_path)


def test_offline_is_said(client: httpx.Client, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(
        UnpriorError, match=rf"{address} cannot be reached .*may be offline.*--data-dir\) or UNPRIOR_DATA"
    ):
        fetch(client, RemoteFile("a", f"http://{address}/a"), tmp_path)


@pytest.mark.parametrize(
    "path",
    ["../outside", "/outside", "a/../../outside", "", ".", "..", "a/.", "a//b", "a/", "nul\0", "\x1b[31m", "x" * 300,
     "/".join("x" * 200 for _ in range(10)), "C:\\outside", "a\\..\\..\\b", "half \ud800", 7, None],
)  # fmt: skip
def test_no_file_leaves_the_folder(server: Files, client: httpx.Client, tmp_path: Path, path: str) -> None:
    with pytest.raises(UnpriorError, match="leads out of"):
        fetch(client, RemoteFile(path, f"{server.url}/file.bin"), tmp_path)
    assert server.asked == []


@pytest.mark.parametrize("size", [-1, "12", 1.5, True])
def test_sizes_that_are_none_are_refused(server: Files, size: object) -> None:
    with pytest.raises(UnpriorError, match=r"data/file\.bin: its size is .* not to be trusted"):
        remote(server, size=size)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1000, None])
def test_no_more_bytes_are_written_than_there_should_be(
    server: Files, client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int | None
) -> None:
    monkeypatch.setattr("unprior.benchmarks.download._MAX_BYTES", 100_000)
    written: list[int] = []
    with pytest.raises(UnpriorError, match=r"the file is longer than the [\d,]+ bytes of the one that was published"):
        fetch(client, remote(server, None, size), tmp_path, lambda done, _: written.append(done))
    assert max(written, default=0) <= (size or 100_000)
    assert list((tmp_path / "data").iterdir()) == []


def test_answers_that_lead_nowhere_are_named(server: Files, tmp_path: Path) -> None:
    server.redirects |= {"/loop": "/loop", "/mail": "mailto:me"}
    server.content["/gzip"], server.encodings["/gzip"] = b"no gzip", "gzip"
    with httpx.Client(timeout=5, follow_redirects=True) as client:
        for path in ("/loop", "/mail", "/gzip"):
            with pytest.raises(UnpriorError, match=f"{path}: .*(makes no sense|the connection broke)"):
                fetch(client, RemoteFile("a", server.url + path), tmp_path)


@pytest.mark.parametrize("spoil", ["loop", "gzip", "nested", "charset", "long", "elsewhere", "redirect"])
def test_lists_that_make_no_sense(server: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setattr("unprior.benchmarks.download._MAX_BYTES", 1_000_000)
    serve_hub(server, "me/mine", {"README.md": b"read", "a.parquet": b"aa"})
    tree = "/api/datasets/me/mine/tree/c0ffee?recursive=true"
    match spoil:
        case "loop":
            server.links[f"{tree}&cursor=2"] = f'<{server.url}{tree}>; rel="next"'
        case "gzip":
            server.encodings[tree] = "gzip"
        case "nested":
            server.content[tree] = b"[" * 100_000
        case "charset":
            server.content[tree] = b'"\xff\xfe"'
        case "long":
            server.content[tree], server.encodings[tree] = gzip.compress(b" " * 50_000_000), "gzip"
        case "elsewhere":
            server.links[tree] = '<http://127.0.0.1:9/more>; rel="next"'
        case "redirect":
            server.redirects[tree] = tree
    words = {"loop": "has no end", "nested": "not JSON", "charset": "not JSON", "long": "longer than",
             "elsewhere": "another server"}  # fmt: skip
    with pytest.raises(UnpriorError, match=words.get(spoil, "makes no sense")):
        download(entry(HubDataset("me/mine")), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [{"path": ""}, {"path": "../a"}, {"path": 7}, {"size": "2"}, {"size": -1}, {"oid": 7, "lfs": {"oid": None}}],
)
def test_entries_of_a_list_that_make_no_sense(
    server: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    serve_hub(server, "me/mine", {"README.md": b"read"})
    tree = "/api/datasets/me/mine/tree/c0ffee?recursive=true"
    listed = json.loads(server.content[tree])
    server.content[tree] = json.dumps([listed[0] | change]).encode()
    with pytest.raises(UnpriorError, match=r"not to be trusted|not as expected|was published"):
        download(entry(HubDataset("me/mine")), tmp_path / "in")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_gated_dataset_gets_the_token_and_nobody_else_does(
    server: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    serve_hub(server, "me/mine", {"a.parquet": b"aa"})
    with serve() as elsewhere:
        elsewhere.content["/a"] = b"aa"
        server.redirects["/datasets/me/mine/resolve/c0ffee/a.parquet"] = f"{elsewhere.url}/a"
        elsewhere.content["/coco/COCO_1.jpg"] = elsewhere.content["/coco/COCO_2.jpg"] = b"one"
        images = NamedImages("COCO", f"{elsewhere.url}/coco", "*/COCO_*.jpg", "val2014")
        download(entry(HubDataset("me/mine"), images), tmp_path)
        assert (tmp_path / "a.parquet").read_bytes() == b"aa"
        assert server.tokens == ["Bearer hf_test"] * 4
        assert elsewhere.tokens == [None] * 3


def test_a_folder_that_cannot_be_written(server: Files, client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in the way")
    with pytest.raises(UnpriorError, match="cannot be written"):
        fetch(client, remote(server), tmp_path)


def entry(*sources: Source) -> Entry:
    def load(folder: Path, seed: int = 0, *, report: object = None) -> Benchmark:
        images = [folder / "val2014" / name for name in ("COCO_1.jpg", "COCO_2.jpg")]
        return Benchmark("mine", [Example(image.stem, image, "?", "qa", YES_NO) for image in images])

    return Entry(Card("mine", "a test"), load, sources=sources)


def test_a_dataset_of_the_hub(server: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    serve_hub(server, "me/mine", {"README.md": b"read", "data/a.parquet": b"aa", "data/b.parquet": b"bbb"})
    seen: list[Fetched] = []
    (listing,) = download(entry(HubDataset("me/mine", patterns=("*.parquet",))), tmp_path, seen.append)
    assert listing.commit == "c0ffee"
    assert (tmp_path / "data" / "a.parquet").read_bytes() == b"aa"
    assert not (tmp_path / "README.md").exists()
    assert [(each.number, each.files, each.done) for each in seen] == [(1, 2, 2), (2, 2, 3)]
    assert [file.path for file in read_manifest(tmp_path)] == ["data/a.parquet", "data/b.parquet"]
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(UnpriorError, match="`unprior data get` writes it again"):
        read_manifest(tmp_path)


def test_files_of_github_and_images_by_name(server: Files, tmp_path: Path) -> None:
    tree = [{"path": "out/q.json", "type": "blob", "sha": git_name(b"{}"), "size": 2}, {"path": "out", "type": "tree"}]
    server.content["/repos/me/mine/commits/HEAD"] = b'{"sha": "abc"}'
    server.content["/repos/me/mine/git/trees/abc?recursive=1"] = json.dumps({"tree": tree}).encode()
    server.content["/me/mine/abc/out/q.json"] = b"{}"
    server.content["/coco/COCO_1.jpg"] = b"one"
    server.content["/coco/COCO_2.jpg"] = b"two"
    questions = GitHubFiles("me/mine", ("out/*.json",), api=server.url, raw=server.url)
    images = NamedImages("COCO", f"{server.url}/coco", "*/COCO_*.jpg", "val2014")
    download(entry(questions, images), tmp_path)
    assert (tmp_path / "out" / "q.json").read_bytes() == b"{}"
    assert (tmp_path / "val2014" / "COCO_2.jpg").read_bytes() == b"two"
    asked = len(server.asked)
    download(entry(questions, images), tmp_path)
    assert len(server.asked) == asked + 2, "only the lists are asked for again"


def test_answers_that_make_no_sense(server: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    server.content["/api/datasets/me/mine/revision/main"] = b"<html>log in</html>"
    with pytest.raises(UnpriorError, match="not JSON; a proxy or a login page"):
        download(entry(HubDataset("me/mine")), tmp_path)
    serve_hub(server, "me/mine", {"README.md": b"read"})
    with pytest.raises(UnpriorError, match="none of the expected files is there"):
        download(entry(HubDataset("me/mine", patterns=("*.parquet",))), tmp_path)
    server.content["/api/datasets/me/mine/revision/main"] = b"[]"
    with pytest.raises(UnpriorError, match="hub dataset me/mine: the list of files is not as expected"):
        download(entry(HubDataset("me/mine")), tmp_path)
    with pytest.raises(UnpriorError, match="mine: there is nothing to download"):
        download(entry(), tmp_path)

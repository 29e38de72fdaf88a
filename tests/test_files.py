"""Writing and reading files: what is in the way, where links lead, and what killed processes leave behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from unprior import UnpriorError, _files
from unprior._files import (
    check_output_file,
    check_output_folder,
    open_to_read,
    read_lines,
    read_whole,
    refuse_overwriting,
    replacing,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and devices are those of POSIX")


@pytest.fixture(autouse=True)
def _folders_are_tidied_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_tidied", set())


def write(path: Path, text: str = "new") -> None:
    with replacing(path) as temporary:
        temporary.write_text(text)


@pytest.mark.parametrize("relative", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, relative: bool) -> None:
    there = tmp_path / "elsewhere"
    there.mkdir()
    (there / "old.json").write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(Path("elsewhere/old.json") if relative else there / "old.json")
    second = tmp_path / "second.json"
    second.symlink_to(link)
    write(second)
    assert link.is_symlink()
    assert second.is_symlink()
    assert (there / "old.json").read_text() == "new"
    assert not (there / "old.json").is_symlink()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["elsewhere", "link.json", "old.json", "second.json"]


def test_a_dangling_link_gets_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("later/new.json")
    write(link)
    assert link.is_symlink()
    assert (tmp_path / "later" / "new.json").read_text() == "new"


def test_links_in_a_circle_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UnpriorError, match=r"a: cannot be written \(Too many levels of symbolic links\)"):
        write(tmp_path / "a")


def test_what_is_no_regular_file_is_refused_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    # A terminal of the test's own, in a file system where nobody can make files: no device of the machine can suffer.
    controller, terminal = os.openpty()
    (tmp_path / "terminal").symlink_to(os.ttyname(terminal))
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(tmp_path)  # the names of sockets are short
        listening.bind("socket")
    before = {path.name: path.lstat().st_ino for path in tmp_path.iterdir()}
    for name, kind in (("pipe", "a pipe"), ("folder", "a folder"), ("terminal", "a device"), ("socket", "a socket")):
        with pytest.raises(UnpriorError, match=f"{name}: cannot be written, because this is {kind}; give the name"):
            write(tmp_path / name)
    assert {path.name: path.lstat().st_ino for path in tmp_path.iterdir()} == before
    for handle in (controller, terminal):
        os.close(handle)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only where processes have their streams as files")
def test_standard_output_is_no_file_even_where_it_goes_to_one(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("/dev/stdout")
    code = (
        "import sys; from pathlib import Path; from unprior._files import replacing\n"
        "try:\n    with replacing(Path(sys.argv[1])) as temporary: temporary.write_text('new')\n"
        "except ValueError as error: print(error)"
    )
    for name in ("/dev/fd/1", str(tmp_path / "link.json")):
        out = tmp_path / "out.txt"
        with out.open("w") as stream:
            subprocess.run([sys.executable, "-c", code, name], stdout=stream, check=True)
        assert out.read_text() == (
            f"{name}: cannot be written, because this is a stream of this process; give the name of a file\n"
        )


def test_the_permissions_of_a_file_stay(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    old.chmod(0o600)
    write(old)
    assert old.stat().st_mode & 0o777 == 0o600
    mask = os.umask(0o027)
    try:
        write(new)
    finally:
        os.umask(mask)
    assert new.stat().st_mode & 0o777 == 0o640


def test_a_name_may_be_as_long_as_the_file_system_permits(tmp_path: Path) -> None:
    write(tmp_path / ("é" * 125 + ".json"))
    with pytest.raises(UnpriorError, match="cannot be written"):
        write(tmp_path / ("x" * 300))
    with pytest.raises(UnpriorError, match="cannot be written"):
        write(tmp_path / "nul\0")
    assert [len(path.name) for path in tmp_path.iterdir()] == [130]


KILLED = """
import os, signal, sys
from pathlib import Path
from unprior._files import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def writer(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    return process


def leftovers(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.tmp"))


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    killed, living = writer(tmp_path / "scores.parquet"), writer(tmp_path / "scores.parquet")
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        strangers = [tmp_path / ".scores.parquet.abcdefgh.tmp", tmp_path / ".notes.tmp"]
        for stranger in strangers:
            stranger.write_text("not ours")
        assert len(leftovers(tmp_path)) == 4
        write(tmp_path / "report.html")
        assert len(leftovers(tmp_path)) == 3
        assert all(stranger.exists() for stranger in strangers)
        living.communicate(b"")
        assert living.returncode == 0
        assert (tmp_path / "scores.parquet").read_text() == "half"
        assert leftovers(tmp_path) == sorted(strangers)
    finally:
        for process in (killed, living):
            process.kill()
            process.communicate()


def test_the_files_of_another_machine_are_given_a_day(tmp_path: Path) -> None:
    fresh, old = (tmp_path / f".a.unprior-00000000-{name}.tmp" for name in ("aaaaaaaa", "bbbbbbbb"))
    for path in (fresh, old):
        path.write_text("half")
    os.utime(old, (0, 0))
    write(tmp_path / "a")
    assert leftovers(tmp_path) == [fresh]


def test_many_processes_and_threads_write_into_one_folder(tmp_path: Path) -> None:
    writers = [threading.Thread(target=write, args=(tmp_path / f"{number % 3}", "x" * 10_000)) for number in range(24)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]
    assert {path.read_text() for path in tmp_path.iterdir()} == {"x" * 10_000}


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_not_read(device: str) -> None:
    with pytest.raises(UnpriorError, match=f"{device}: this is a device, a file is needed"), open_to_read(Path(device)):
        pass


def test_a_pipe_is_read_but_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "MAX_BYTES", 1 << 20)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def feed(content: bytes) -> threading.Thread:
        def run() -> None:
            with pipe.open("wb", buffering=0) as stream:
                try:
                    while stream.write(content) and len(content) > 100:
                        pass
                except BrokenPipeError:
                    pass

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    feeding = feed(b'{"a": 1}\n\n{"a": 2}\n')
    with open_to_read(pipe) as stream:
        assert list(read_lines(stream, pipe)) == [(1, b'{"a": 1}\n'), (3, b'{"a": 2}\n')]
    feeding.join()
    feeding = feed(b"\0" * 65_536)
    with (
        pytest.raises(UnpriorError, match="pipe, line 1: longer than 1 MB"),
        open_to_read(pipe) as stream,
    ):
        list(read_lines(stream, pipe))
    feeding.join()
    feeding = feed(b"\0" * 65_536)
    with pytest.raises(UnpriorError, match="pipe: larger than 1 MB"):
        read_whole(pipe)
    feeding.join()


def test_an_input_is_recognised_under_another_name(tmp_path: Path) -> None:
    source = tmp_path / "scores.jsonl"
    source.touch()
    (tmp_path / "link.jsonl").symlink_to(source)
    for name in ("scores.jsonl", "link.jsonl", "../" + tmp_path.name + "/scores.jsonl"):
        with pytest.raises(UnpriorError, match="would overwrite its own input; choose another name"):
            refuse_overwriting(tmp_path / name, tmp_path / "other.json", source)
    refuse_overwriting(tmp_path / "new.jsonl", source)
    refuse_overwriting(tmp_path / "new.jsonl", tmp_path / "missing.jsonl")


def test_outputs_are_checked_without_being_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for check in (check_output_file, check_output_folder):
        check(tmp_path / "new" / "deep")
        with pytest.raises(
            UnpriorError, match=r"file/deep: cannot be written \(Not a directory\); choose another path"
        ):
            check(tmp_path / "file" / "deep")
        with pytest.raises(UnpriorError, match="File name too long"):
            check(tmp_path / ("x" * 300))
    check_output_file(tmp_path / "file")
    with pytest.raises(UnpriorError, match="this is a folder; give the name of a file"):
        check_output_file(tmp_path)
    with pytest.raises(UnpriorError, match="file: cannot be written"):
        check_output_folder(tmp_path / "file")
    # Rights do not bind whoever runs the tests as root.
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != tmp_path)
    for check in (check_output_file, check_output_folder):
        with pytest.raises(UnpriorError, match=r"deep: cannot be written \(Permission denied\)"):
            check(tmp_path / "new" / "deep")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

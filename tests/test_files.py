"""Atomic writes: the old file remains until the new one is complete; no temporary files remain."""

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import streamsel
from streamsel.serialization import atomic
from streamsel.serialization.atomic import atomic_write, ensure_writable

posix = pytest.mark.skipif(os.name != "posix", reason="locks, modes and links are POSIX's")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_errors_keep_the_old_file(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")

    def write():
        with atomic_write(path) as alongside:
            alongside.write_text("half")
            assert path.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_file_and_directory_are_synchronised(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd)))
    path = tmp_path / "out"
    with atomic_write(path) as alongside:
        alongside.write_text("new")
    assert [stat.S_ISDIR(found.st_mode) for found in synced] == [False, True][: len(synced)]
    assert synced[0].st_ino == path.stat().st_ino
    assert synced[0].st_size == 3
    assert os.name != "posix" or len(synced) == 2


@posix
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_permissions_of_replaced_files_are_kept(tmp_path, mode):
    path = tmp_path / "model"
    path.write_text("old")
    path.chmod(mode)
    seen = []
    with atomic_write(path) as alongside:
        seen.append(stat.S_IMODE(alongside.stat().st_mode))
        alongside.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert seen == [0o600], "nobody else reads it while it is written"


@posix
def test_new_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "new") as alongside:
            alongside.write_text("new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


@posix
def test_links_are_kept(tmp_path):
    (tmp_path / "link").symlink_to("real")
    for text in ("first", "second"):
        with atomic_write(tmp_path / "link") as alongside:
            alongside.write_text(text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").read_text() == text


@pytest.mark.parametrize("name", ["n" * 250, "n" * 255, "é" * 127, "𝒳" * 63])
def test_names_of_the_maximum_length(tmp_path, name):
    ensure_writable(tmp_path / name)
    assert names(tmp_path) == []
    model = streamsel.SOSPCA(2)
    streamsel.save(model, tmp_path / name)
    assert streamsel.load(tmp_path / name).n_components == 2
    assert names(tmp_path) == [name]


def test_unwritable_paths_are_reported_early(tmp_path):
    for path in (tmp_path / ("n" * 256), tmp_path / "no" / "file", tmp_path):
        with pytest.raises(OSError, match=r"too long|No such|directory"):
            ensure_writable(path)
        with pytest.raises(OSError, match=r"too long|No such|directory"), atomic_write(path):
            raise AssertionError
    assert names(tmp_path) == []


@posix
def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Not a regular file"):
        streamsel.save(streamsel.SOSPCA(), tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


KILLED = """
import os, sys
from streamsel.serialization.atomic import atomic_write
with atomic_write(sys.argv[1]) as beside:
    beside.write_text("half")
    print(beside, flush=True)
    sys.stdin.read() if len(sys.argv) > 2 else os._exit(9)
"""


@posix
def test_only_files_of_killed_runs_are_deleted(tmp_path):
    path = tmp_path / "model"
    call = [sys.executable, "-c", textwrap.dedent(KILLED), path]
    dead = Path(subprocess.run(call, stdout=subprocess.PIPE, text=True, check=False).stdout.strip())
    assert dead.exists()
    with subprocess.Popen(
        [*call, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as living:
        # The start of a write has cleaned up already.
        alongside = Path(living.stdout.readline().strip())
        assert not dead.exists()
        with atomic_write(path) as mine:
            mine.write_text("mine")
        assert path.read_text() == "mine"
        assert alongside.exists()
        living.communicate("")
    assert living.returncode == 0
    assert path.read_text() == "half"
    assert names(tmp_path) == ["model"]


@posix
def test_files_of_others_are_kept(tmp_path):
    theirs = [
        ".model.tmp",
        ".model.000000-12345678.tmp.bak",
        f".models.{atomic._HOST_ID}-12345678.tmp",
        ".model.0a0b0c-12345678.tmp",  # of another machine, where a process may still be writing it
        f"model.{atomic._HOST_ID}-12345678.tmp",
    ]
    for name in theirs:
        (tmp_path / name).write_text("theirs")
    (tmp_path / f".model.{atomic._HOST_ID}-00000000.tmp").mkdir()
    with atomic_write(tmp_path / "model") as alongside:
        alongside.write_text("mine")
    assert names(tmp_path) == sorted([*theirs, "model", f".model.{atomic._HOST_ID}-00000000.tmp"])
    long_ago = (
        tmp_path / ".model.0a0b0c-12345678.tmp"
    ).stat().st_mtime - 2 * atomic._STALE_AFTER_SECONDS
    os.utime(tmp_path / ".model.0a0b0c-12345678.tmp", (long_ago, long_ago))
    with atomic_write(tmp_path / "model") as alongside:
        alongside.write_text("mine")
    assert ".model.0a0b0c-12345678.tmp" not in names(tmp_path)


def test_incomplete_loadings_files_are_removed(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 6))
    model = streamsel.PCA(2)
    model.learn_columns(X)
    to = tmp_path / "loadings.csv"
    to.write_text("old")

    def broken():
        yield "a", X[:, 0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.learn_loadings(streamsel.stream.iter_columns(broken()), to=to)
    assert to.read_text() == "old"
    assert names(tmp_path) == ["loadings.csv"]

"""Lines of text that are too long are refused at once, in little memory."""

import gzip
import io
import os
import subprocess
import sys

import numpy as np
import pytest

from streamsel.stream import iter_csv, iter_files
from streamsel.stream._text_cells import (
    CELL_BYTES,
    FIRST_BYTES,
    LINE_BYTES,
    BoundedLines,
    LineBound,
    line_bound,
)
from tests.seed import some

MIB = 2**20


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """Return files of 0.7 MB with gzipped lines of 700 MB."""
    folder = tmp_path_factory.mktemp("endless")
    starts = {
        "zeros": (b"", b"0" * MIB),
        "cells": (b"", b"1," * (MIB // 2)),
        "second": (b"a,b\n", b"1" * MIB),
        "variable": (b"g,1,2\nh,", b"1" * MIB),
        "quotes": (b'a,b\n1,"', b'""\n' * (MIB // 3)),
    }
    for name, (start, piece) in starts.items():
        # A gzip file may have several members: one packed piece is written 700 times.
        packed = gzip.compress(piece, mtime=0)
        folder.joinpath(f"{name}.csv.gz").write_bytes(gzip.compress(start) + 700 * packed)
    return folder


def refusing(code, *arguments, limit):
    """Run code with a memory limit in MiB; return its output."""
    head = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({limit * MIB}, {limit * MIB}))
"""
    done = subprocess.run(
        [sys.executable, "-c", head + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        check=True,
    )
    return done.stdout


READ = """
from streamsel.stream import iter_files
try:
    for _ in iter_files(sys.argv[1], orientation=sys.argv[2]):
        pass
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lie", "message"),
    some(
        [
            ("zeros", "samples", "at most 64 MiB. Got: the first line of"),
            ("zeros", "variables", "at most 64 MiB. Got: the first line of"),
            ("cells", "samples", "at most 64 MiB. Got: the first line of"),
            ("cells", "variables", "at most 64 MiB. Got: the first line of"),
            ("second", "samples", "at most 4 MiB. Got: the line after byte 4 of"),
            ("variable", "variables", "at most 64 MiB. Got: the line after byte 6 of"),
            ("quotes", "samples", "Expected closing quotes. Got: line 2 of"),
        ],
        2,
        "endless lines",
    ),
)
def test_an_endless_line_of_a_table(endless, name, lie, message):
    found = refusing(READ, endless / f"{name}.csv.gz", lie, limit=600)
    assert message in found
    assert f"{name}.csv.gz" in found


COMMAND = """
import sys
from streamsel.cli.app import app
app(sys.argv[1:])
"""


def command(*arguments, data=None, limit=600):
    head = f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({limit * MIB},) * 2)\n"
    done = subprocess.run(
        [sys.executable, "-c", head + COMMAND, *map(str, arguments)],
        input=data,
        capture_output=True,
        timeout=60,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


@pytest.mark.slow
def test_an_endless_line_of_a_target(endless, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(5))
    for given in (["--target-file", endless / "zeros.csv.gz"], ["--target-file", "/dev/zero"]):
        code, output = command("select", tmp_path / "x.npy", *given, "-k", 1)
        assert code == 1
        assert "Expected lines of at most" in output
        assert str(given[1]) in output


@pytest.mark.slow
def test_an_endless_line_of_a_pipe(tmp_path):
    np.savetxt(tmp_path / "y.txt", np.arange(5.0))
    given = ["--target-file", tmp_path / "y.txt", "-k", 1]
    code, output = command("select", "-", *given, data=b"0" * (FIRST_BYTES + MIB))
    assert code == 1
    assert "the first line of 'standard input'" in output


def test_an_endless_file_of_options():
    code, output = command("select", "--config", "/dev/zero")
    assert code == 2
    assert "--config /dev/zero: expected at most 4 MiB of TOML" in output


@pytest.mark.parametrize("lie", ["samples", "variables"])
def test_a_wide_table_is_read(tmp_path, lie):
    """Lines may exceed 4 MiB if they have many cells; the first line may do so too."""
    n_cells = LINE_BYTES // 8
    cells = ["1234567.890123"] * n_cells
    first = ["name", *(f"a{j:07}" for j in range(n_cells))]
    rows = [",".join(["x", *cells])] * 2
    path = tmp_path / "x.csv"
    path.write_text("\n".join([",".join(first), *rows]) + "\n")
    assert len(rows[0]) > LINE_BYTES
    if lie == "samples":
        values = iter_csv(path).take(["a0000007"])["a0000007"]
        assert values.tolist() == [1234567.890123] * 2
    else:
        assert [len(values) for _, values in iter_csv(path, orientation="variables")] == [
            n_cells
        ] * 2


def test_lines_beyond_the_bound_are_refused():
    def check(limit, size, data=b"ab\ncdef\r\nghi\rjklm"):
        bound = LineBound("x", 2, limit)
        for a in range(0, len(data), size):
            bound.check(data[a : a + size])

    for size in (1, 2, 3, 5):
        check(4, size)
        with pytest.raises(ValueError, match=r"the line after byte (3|9|13) of 'x', which"):
            check(3, size)
    with pytest.raises(ValueError, match="the first line of 'x'"):
        LineBound("x", 2, 9).check(b"abc")
    assert line_bound(1) == LINE_BYTES
    assert line_bound(10**6) == CELL_BYTES * 10**6
    file = BoundedLines(io.BytesIO(b"a\nb"), LineBound("x", 2, 2))
    assert io.TextIOWrapper(file, encoding="utf-8").readlines() == ["a\n", "b"]


def test_parts_have_the_same_bound(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("n,s1,s2\n" + "g,1,2\n" * 3 + "h," + "1" * (LINE_BYTES + MIB) + "\n")
    stream = iter_files(path, orientation="variables")
    for one in (stream, *(part.open() for part in stream.split(1)), stream.skip(2)):
        with pytest.raises(ValueError, match=r"at most 4 MiB\. Got: the line after byte 26"):
            list(one)

"""Many files as one stream: order, names and rows, and files that do not fit together."""

import gc
import os
import weakref

import numpy as np
import polars as pl
import pytest

from streamsel.stream import (
    _arrow,
    _csv,
    _multi_file,
    _parts,
    clean,
    iter_csv,
    iter_files,
    iter_npy,
    iter_parquet,
)


@pytest.fixture
def folder(tmp_path):
    """Return a folder of three Parquet files; numeric and alphabetical order differ."""
    for i in (2, 10, 1):
        frame = pl.DataFrame({f"a{i}": [1.0, 2.0, i], f"b{i}": [i, 0, 1]})
        frame.write_parquet(tmp_path / f"part-{i}.parquet")
    return tmp_path


def _names(stream):
    return [name for name, _ in stream]


def test_patterns_sort_naturally_and_lists_keep_order(folder):
    assert _names(iter_files(folder / "part-*.parquet")) == ["a1", "b1", "a2", "b2", "a10", "b10"]
    listed = [folder / "part-10.parquet", str(folder / "part-1.parquet")]
    assert _names(iter_files(listed)) == ["a10", "b10", "a1", "b1"]
    assert _names(iter_files(path for path in listed)) == ["a10", "b10", "a1", "b1"]


def test_order_of_names_with_numbers():
    paths = ["b2", "a10/x", "a2/x1", "a2/x01", "10", "9", "a", ""]
    assert sorted(paths, key=_multi_file._natural) == [
        "",
        "9",
        "10",
        "a",
        "a2/x01",
        "a2/x1",
        "a10/x",
        "b2",
    ]


def test_properties_are_those_of_the_files(folder):
    stream = iter_files(folder / "part-*.parquet")
    assert (stream.n_rows, stream.n_columns, stream.reiterable) == (3, 6, True)
    assert stream.take(["b10", "a1"])["b10"].tolist() == [10, 0, 1]
    assert list(stream.take(["b10", "a1"])) == ["b10", "a1"]
    assert _names(stream) == _names(stream)
    with pytest.raises(KeyError, match="did you mean 'a10'"):
        stream.take(["a100"])


def test_one_file_equals_its_own_stream(folder):
    one = iter_files(folder / "part-1.parquet")
    assert _names(one) == _names(iter_parquet(folder / "part-1.parquet"))
    assert _names(iter_files([folder / "part-1.parquet"])) == ["a1", "b1"]
    odd = folder / "[x]*.npy"
    np.save(odd, np.eye(3))
    assert iter_files(odd).n_columns == 3
    with pytest.raises(FileNotFoundError, match="No such file"):
        iter_files(folder / "nowhere.npy")


def test_no_file_is_an_error(folder):
    with pytest.raises(FileNotFoundError, match=r"pattern .*\*.csv.*\nHint"):
        iter_files(folder / "*.csv")
    with pytest.raises(ValueError, match="at least one file"):
        iter_files([])


def test_column_numbers_continue_across_arrays(tmp_path):
    X = np.arange(21.0).reshape(3, 7)
    np.save(tmp_path / "a.npy", X[:, :4])
    pl.DataFrame({"z": [1, 2, 3]}).write_csv(tmp_path / "b.csv")
    np.save(tmp_path / "c.npy", np.asfortranarray(X[:, 4:]))
    stream = iter_files(tmp_path / "*", orientation="samples")
    assert _names(stream) == [0, 1, 2, 3, "z", 4, 5, 6]
    assert stream.take([5])[5].tolist() == X[:, 5].tolist()
    arrays = iter_files(tmp_path / "*.npy")
    assert arrays.names == range(7)
    assert np.array_equal(np.column_stack([values for _, values in arrays]), X)


def test_unequal_numbers_of_rows_name_both_files(folder):
    pl.DataFrame({"c": [1.0, 2.0]}).write_parquet(folder / "part-3.parquet")
    with pytest.raises(ValueError, match=r"3 in '.*part-1.parquet', and 2 in '.*part-3.parquet'"):
        iter_files(folder / "part-*.parquet")
    (folder / "short.csv").write_text("d,e\n1,2\n")
    stream = iter_files([folder / "part-1.parquet", folder / "short.csv"], orientation="samples")
    blocks = stream.blocks()
    assert next(blocks).names == ["a1", "b1"]  # text is not parsed before it is needed
    with pytest.raises(ValueError, match=r"3 in '.*part-1.parquet', and 1 in '.*short.csv'"):
        list(blocks)


def test_repeated_names_name_both_files(folder):
    pl.DataFrame({"c": [1.0, 2, 3], "a2": [1.0, 2, 3]}).write_ipc(folder / "x.arrow")
    with pytest.raises(ValueError, match=r"'a2' in '.*part-2.parquet', and in '.*x.arrow'.\nHint"):
        iter_files([*sorted(folder.glob("part-*")), folder / "x.arrow"])


def test_repeated_names_in_texts_name_both_files(tmp_path):
    paths = [tmp_path / f"{i}.tsv" for i in range(4)]
    for i, path in enumerate(paths):
        path.write_text("".join(f"v{i}-{j}\t{j}\t1\n" for j in range(100)))
    stream = iter_files(paths, orientation="variables")
    assert len(_names(stream)) == 400
    assert stream.n_columns == 400
    with paths[2].open("a") as file:
        file.write("v1-7\t1\t2\n")
    stream = iter_files(paths, orientation="variables")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"'v1-7' in '.*1.tsv', and in '.*2.tsv'"):
            _names(stream)


def test_names_with_equal_hashes_are_distinct(tmp_path, monkeypatch):
    monkeypatch.setattr(_multi_file, "hash", lambda name: 7, raising=False)
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(f"v{i},1,2\n")
    assert _names(iter_files(tmp_path / "*", orientation="variables")) == ["v0", "v1", "v2"]


def test_texts_require_an_orientation(tmp_path):
    for i in range(2):
        (tmp_path / f"{i}.csv").write_text(f"v{i},1\n1,2\n")
    with pytest.raises(ValueError, match=r"orientation to be 'samples' or.*Got: None.\nHint"):
        iter_files(tmp_path / "*")


def test_bad_lines_are_reported(tmp_path):
    for i in range(2):
        (tmp_path / f"{i}.csv").write_text(f"v{i},1,2\nw{i},?,2\nu{i},3,4\n")
    heard = []
    stream = iter_files(
        tmp_path / "*", orientation="variables", on_bad=lambda name, *_: heard.append(name)
    )
    assert _names(stream) == ["v0", "u0", "v1", "u1"]
    assert _names(stream.skip(3)) == ["u1"]
    assert heard == ["w0", "w1"] * 2
    with pytest.raises(ValueError, match="in line 2, column 2"):
        _names(iter_files(tmp_path / "*", orientation="variables"))
    with pytest.raises(ValueError, match="Hint: use on_bad='pass'"):
        stream.skip(1).split()


def test_bad_lines_reach_the_callback(tmp_path):
    for i in range(2):
        (tmp_path / f"{i}.csv").write_text(f"v{i},1,2\nw{i},?,NA\nu{i},3,4\n")
    stream = iter_files(tmp_path / "*", orientation="variables", on_bad="pass")
    assert _names(stream) == ["v0", "w0", "u0", "v1", "w1", "u1"]
    assert _names(stream.skip(4)) == ["w1", "u1"]
    assert stream.take(["w1", "u0"])["w1"].tolist() == ["?", None]
    parts = clean(stream.skip(1)).split(3)
    opened = [part.open() for part in parts]
    assert [name for each in opened for name in _names(each)] == ["u0", "v1", "u1"]
    assert sum(each.skipped["text"] for each in opened) == 2


def test_take_and_skip_do_not_parse_other_lines(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(f"h,s,t\n\nv{i},1,2\nw{i},{'?' if i == 1 else 3},2\n")
    stream = iter_files(tmp_path / "*", orientation="variables")
    assert stream.take(["w2", "v0"])["w2"].tolist() == [3, 2]
    assert _names(stream.skip(4)) == ["v2", "w2"]
    with pytest.raises(ValueError, match="Expected a number"):
        stream.take(["w1"])
    with pytest.raises(ValueError, match="Expected a number"):
        stream.take(["nowhere"])


def test_one_file_is_open_at_a_time(folder, monkeypatch):
    opened = []
    read = _multi_file.open_columns

    def watched(*args):
        gc.collect()
        assert not any(stream() for stream in opened)
        stream = read(*args)
        opened.append(weakref.ref(stream))
        return stream

    monkeypatch.setattr(_multi_file, "open_columns", watched)
    stream = iter_files(folder / "part-*.parquet")
    assert len(_names(stream)) == 6
    assert len(opened) == 6


def test_a_text_is_transposed_once(tmp_path, monkeypatch):
    for i in range(3):
        pl.DataFrame({f"v{i}": [1.0, 2.0]}).write_csv(tmp_path / f"{i}.csv")
    turned, once = [], _csv._TransposedCsv
    monkeypatch.setattr(_csv, "_TransposedCsv", lambda *args: turned.append(args) or once(*args))
    stream = iter_files(tmp_path / "*", orientation="samples")
    assert stream.names == ["v0", "v1", "v2"]
    assert not turned
    assert list(next(stream.blocks()).names) == ["v0"]
    assert _names(stream) == ["v0", "v1", "v2"]
    assert list(stream.take(["v2"])) == ["v2"]
    assert len(turned) == 3


def test_a_file_that_changes_is_refused(folder):
    stream = iter_files(folder / "part-*.parquet")
    os.utime(folder / "part-2.parquet", ns=(1, 1))
    with pytest.raises(ValueError, match=r"part-2.parquet' to be unchanged"):
        _names(stream)
    for read in (lambda: stream.take(["a2"]), lambda: stream.split(3)):
        with pytest.raises(ValueError, match="to be unchanged"):
            read()
    assert list(stream.take(["a1"])) == ["a1"]


def test_parts_join_small_files_and_cut_large_ones(tmp_path):
    for i, width in enumerate([1, 1, 1, 30, 1, 1, 1, 1]):
        np.save(tmp_path / f"{i}.npy", np.zeros((5, width)))
    stream = iter_files(tmp_path / "*.npy")
    parts = stream.split(4)
    assert [part.n_columns for part in parts] == [11, 7, 8, 11]
    assert (
        str(parts[0])
        == f"column 0 of {tmp_path / '0.npy'}, to columns 0 to 7 of {tmp_path / '3.npy'}"
    )
    assert [part.n_columns for part in stream.split()] == [37]
    assert len({part.key for part in [*stream.split(3), *stream.split(3), *stream.split()]}) == 4


def test_files_of_up_to_two_parts_are_not_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(_parts, "PART_BYTES", 1000)
    for i, width in enumerate([2, 49, 50, 51, 75, 3, 3]):
        np.save(tmp_path / f"{i}.npy", np.zeros((5, width)))
    stream = iter_files(tmp_path / "*.npy")
    assert [part.n_columns for part in stream.split()] == [2, 49, 50, 26, 25, 25, 25, 31]
    assert [part.n_columns for part in stream.skip(52).split()] == [49, 26, 25, 25, 25, 31]
    assert len(stream.split(20)) > 10


def test_splitting_does_not_reopen_files(folder, monkeypatch):
    rows = np.array(["r0", "r1", "r2"])
    for i in (4, 5):
        pl.DataFrame({"id": rows, f"a{i}": [1.0, 2.0, i]}).write_parquet(
            folder / f"part-{i}.parquet"
        )
    stream = iter_files(folder / "part-*.parquet", ids="id")
    with monkeypatch.context() as patch:
        patch.setattr(_arrow, "ParquetFile", None)
        parts = stream.split(8)
        rest = stream.without(["a4"]).skip(3).split(2)
    names = ["a1", "b1", "a2", "b2", "a4", "a5", "a10", "b10"]
    assert [name for part in parts for name in _names(part.open())] == names
    assert [name for part in rest for name in _names(part.open())] == ["b2", "a5", "a10", "b10"]


def test_several_files_equal_one_file(tmp_path):
    from streamsel import ForwardSelection

    X = np.random.default_rng(0).normal(size=(50, 30))
    np.save(tmp_path / "whole.npy", X)
    for i in range(3):
        np.save(tmp_path / f"part-{i}.npy", X[:, 10 * i : 10 * i + 10])
        rows = "".join(
            ",".join([f"v{j}", *map(repr, X[:, j].tolist())]) + "\n"
            for j in range(10 * i, 10 * i + 10)
        )
        (tmp_path / f"part-{i}.csv").write_text(rows)
    picked = []
    for stream in (
        iter_npy(tmp_path / "whole.npy"),
        iter_files(tmp_path / "part-*.npy"),
        iter_files(tmp_path / "part-*.csv", orientation="variables"),
    ):
        model = ForwardSelection(k=5)
        model.learn_target(X[:, 3] - X[:, 17] + X[:, 29])
        model.learn_columns(stream)
        picked.append([int(str(name).strip("v")) for name in model.selected])
    assert picked[0] == picked[1] == picked[2]
    assert _names(iter_csv(tmp_path / "part-0.csv", orientation="variables")) == [
        f"v{j}" for j in range(10)
    ]

"""Encoding of text, categories, dates, times and durations as columns of numbers."""

import datetime as dt
import zoneinfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import issparse

from streamsel._utils.sparse import as_dense
from streamsel.data.chunks import Block
from streamsel.stream import (
    ColumnStream,
    clean,
    encode,
    grouped,
    iter_columns,
    iter_csv,
    iter_ipc,
    iter_parquet,
)
from tests.reference.encode import encoded

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
DAYS = [
    None if text is None else dt.datetime.fromisoformat(text)
    for text in ("2019-12-31 23:30:15", None, "2020-02-29 00:00:00.250", "1969-07-20 20:17")
]
DAYS += [dt.datetime.fromisoformat(text) for text in ("2021-06-01", "2020-01-01")]


def each(function, values=DAYS):
    return [None if value is None else function(value) for value in values]


# Values that are not numbers, and the polars type where pandas must not guess.
COLUMNS = {
    "text": (["a", None, "a_b", "a", "a", "a_b"], pl.String),
    "category": (["x", "y", "x", "x", None, "y"], pl.Categorical),
    "enum": (["lo", "hi", "hi", "lo", "lo", "lo"], pl.Enum(["lo", "mid", "hi"])),
    "digits": (["01", "02", "01", "02", "02", "02"], pl.String),
    "one": (["same"] * 6, pl.String),
    "time": (DAYS, pl.Datetime("us")),
    "zone": (each(lambda t: t.replace(tzinfo=BERLIN)), pl.Datetime("us", "Europe/Berlin")),
    "day": (each(lambda t: t.date()), pl.Date),
    "clock": (each(lambda t: t.time()), pl.Time),
    "span": (each(lambda t: t - DAYS[-1]), pl.Duration("us")),
}
FRAME = pl.DataFrame(
    {"flag": [True, False, True, True, False, False]}
    | {name: pl.Series(name, values, dtype=kind) for name, (values, kind) in COLUMNS.items()}
    | {"number": [1.5, 2.5, 0.5, 3.0, 4.0, 5.0]}
)
EXPECTED = {
    end: numbers
    for name, (values, _) in COLUMNS.items()
    for end, numbers in encoded(name, values).items()
}


def dense(values):
    return values.toarray()[:, 0] if issparse(values) else np.asarray(values, dtype=float)


def same(stream, expected):
    found = {name: dense(values) for name, values in stream}
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-12, err_msg=name)


def _parquet(folder):
    pa.parquet.write_table(FRAME.to_arrow(), folder / "x.parquet", row_group_size=4)
    return iter_parquet(folder / "x.parquet")


def _ipc(folder):
    pa.feather.write_feather(FRAME.to_arrow(), folder / "x.arrow", chunksize=4)
    return iter_ipc(folder / "x.arrow")


SOURCES = {
    "polars": lambda _: FRAME,
    "pyarrow": lambda _: FRAME.to_arrow(),
    "pandas": lambda _: FRAME.to_pandas(),
    "pandas on pyarrow": lambda _: FRAME.to_pandas(use_pyarrow_extension_array=True),
    "pandas, nullable": lambda _: FRAME.to_pandas().convert_dtypes(),
    "parquet": _parquet,
    "ipc": _ipc,
    "objects": lambda _: iter_columns(
        [("flag", FRAME["flag"].to_numpy())]
        + [(name, np.array(values, dtype=object)) for name, (values, _) in COLUMNS.items()]
        + [("number", FRAME["number"].to_numpy())]
    ),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_encoding_is_its_definition_for_every_library(source, tmp_path):
    stream = encode(source(tmp_path))
    expected = {"flag": FRAME["flag"].to_list()} | EXPECTED | {"number": FRAME["number"].to_list()}
    same(stream, expected)
    assert dict(stream.encoded) == {"categories": 5, "dates": 3, "times": 1, "durations": 1}
    names = list(expected)[::-1]
    for name, values in stream.take(names).items():
        np.testing.assert_allclose(dense(values), expected[name], rtol=1e-12, atol=1e-12)


LABELS = st.sampled_from(["a", "b", "a_b", "b_a", "Ü", "1", None])
DATES = st.none() | st.datetimes(timezones=st.none() | st.just(BERLIN)) | st.dates()
OBJECTS = [LABELS, st.datetimes() | st.none(), st.dates() | st.none(), st.times() | st.none()]
OBJECTS += [st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999)) | st.none(), DATES]


@given(data=st.data(), n=st.integers(2, 30), width=st.integers(1, 4))
def test_encoding_depends_on_the_columns_only(data, n, width):
    kinds = data.draw(st.lists(st.sampled_from([*OBJECTS, None]), min_size=1, max_size=6))
    columns, expected, groups = [], {}, {}
    for j, kind in enumerate(kinds):
        values = (
            list(range(n)) if kind is None else data.draw(st.lists(kind, min_size=n, max_size=n))
        )
        name = f"c{j}"
        columns.append((name, np.array(values, dtype=None if kind is None else object)))
        if kind is None:
            expected[name] = values
        elif any(value is not None for value in values):
            found = encoded(name, values)
            expected |= found
            groups |= dict.fromkeys(found, name) if kind is LABELS else {}
        else:
            expected[name] = [np.nan] * n

    def blocks():
        for start in range(0, len(columns), width):
            yield from iter_columns(columns[start : start + width]).blocks()

    stream = encode(ColumnStream(blocks, n_rows=n))
    found = list(stream.blocks())
    for block in found:
        assert block.groups is None or list(block.groups) == [groups[name] for name in block.names]
    ends = [name for block in found for name in block.names]
    assert ends == list(expected)
    # Each group is in one block.
    assert sum(len({*(block.groups or ())}) for block in found) == len({*groups.values()})
    same(stream, {name: np.array(values, dtype=float) for name, values in expected.items()})


def test_unknown_categories_are_0_and_unknown_columns_an_error():
    stream = encode(FRAME)
    taken = stream.take(["text_zz", "text_a_b", "time_hour", "number"])
    assert not taken["text_zz"].any()
    np.testing.assert_array_equal(taken["text_a_b"], EXPECTED["text_a_b"])
    for name in ("texts_a", "time_hours", "number_1", "text"):
        stream_of_numbers = encode(FRAME.drop("text")) if name == "text" else stream
        with pytest.raises(KeyError, match=name):
            stream_of_numbers.take([name])


def test_encoded_names_of_two_columns_may_collide():
    df = pl.DataFrame({"a": ["b_c", "x", "x", "x"], "a_b": ["y", "c", "y", "y"]})
    np.testing.assert_array_equal(encode(df).take(["a_b_c"])["a_b_c"], [1, 1, 0, 0])


def test_numeric_categories_are_labels():
    column = pd.Categorical([10, None, 20, 10, 10, 20])
    expected = {
        "c_10": [1, 0, 0, 1, 1, 0],
        "c_20": [0, 0, 1, 0, 0, 1],
        "c_None": [0, 1, 0, 0, 0, 0],
    }
    df = pd.DataFrame({"c": column})
    same(encode(df), expected)
    same(encode(pa.Table.from_pandas(df)), expected)


def test_the_numbers_of_a_row_do_not_depend_on_the_other_rows():
    """Of one row, text may be all missing, and a time midnight."""
    whole = {name: np.ravel(as_dense(values)) for name, values in encode(FRAME)}
    assert {"text_None", "time_hour"} <= {*whole}
    for row in range(len(FRAME)):
        taken = encode(FRAME[row : row + 1]).take([*whole])
        for name, values in whole.items():
            np.testing.assert_array_equal(np.ravel(as_dense(taken[name])), values[[row]], name)


def test_text_files_have_dates_and_booleans_as_text(tmp_path):
    frame = pl.DataFrame(
        {
            "at": DAYS,
            "flag": ["True", "False", None, "True", "False", "False"],
            "code": ["a", None, "b", "a", "b", "a"],
        }
    )
    same_numbers = {name: np.ravel(as_dense(values)) for name, values in encode(frame)}
    frame.with_columns(pl.col("at").dt.to_string("iso")).write_csv(tmp_path / "x.csv")
    pandas_nan = frame.to_pandas().assign(code=np.nan)[:1]
    for source in (
        frame.with_columns(pl.col("at").dt.to_string("iso")),
        frame.with_columns(pl.col("flag") == "True"),
        iter_csv(tmp_path / "x.csv"),
    ):
        taken = encode(source).take([*same_numbers])
        for name, values in same_numbers.items():
            np.testing.assert_array_equal(np.ravel(as_dense(taken[name])), values, name)
    # pandas reads a column without a value as NaN.
    assert encode(pandas_nan).take(["code_a", "code_None"])["code_None"].tolist() == [1]
    with pytest.raises(KeyError):
        encode(pandas_nan).take(["code_a"])
    for text in ("31/12/2024", "3 days 01:00:00"):
        other = frame.with_columns(at=pl.lit(text))
        # As a label it is one.
        assert encode(other).take([f"at_{text}"])[f"at_{text}"].all()
        with pytest.raises(ValueError, match=rf"dates in column 'at', .* at_.*{text}.*\n.*8601"):
            encode(other).take(["at_seconds", "code_a"])


def test_labels_may_be_named_like_the_numbers_of_dates():
    frame = pl.DataFrame({"plan": ["month", "year", "2 weeks", "2 weeks"]})
    taken = encode(frame).take(["plan_month", "plan_hour"])
    assert [values.tolist() for values in taken.values()] == [[1, 0, 0, 0], [0, 0, 0, 0]]


def test_excluded_columns_are_counted_and_reported():
    n = 6
    df = pd.DataFrame(
        {
            "id": [f"u{i}" for i in range(n)],
            "lab": ["<0.01", "0.5", "1.5", "2", "3", "4"],
            "sum": ["1,304", "1,200", "2,000", "3,100", "4,250", "5,000"],
            "bytes": [b"a"] * n,
            "lists": [[1]] * n,
            "good": ["a", "b"] * 3,
        }
    )
    reported = []
    stream = encode(df, report=lambda *line: reported.append(line))
    for _ in range(2):
        assert [name for name, _ in stream] == ["good_a", "good_b"]
    assert (stream.n_read, stream.last_read, stream.n_made) == (6, "good", 2)
    assert dict(stream.skipped) == {"text": 3, "mixed": 1, "ambiguous": 1}
    assert [line[0] for line in reported] == ["id", "lab", "sum", "bytes", "lists"]
    assert reported[0][2] == "more than 3 categories in 6 rows, such as 'u0'"
    assert stream.examples == reported
    stream = encode(df, max_categories=1)
    assert list(stream) == []
    assert stream.n_read == 6


def test_complex_and_object_numbers_are_accepted():
    columns = [("c", np.array([1j, 2j])), ("o", np.array([1.5, None], dtype=object))]
    found = dict(encode(iter_columns(columns)))
    assert found["c"].dtype.kind == "c"
    assert found["o"].tolist() == [1.5, None]


def test_columns_before_an_error_are_yielded():
    def broken():
        yield "a", np.array(["x", "y", "x", "x"])
        yield "b", np.array(["x", "y", "x", "x"])
        raise ValueError("broken")

    stream, blocks = encode(iter_columns(broken)), []
    with pytest.raises(ValueError, match="broken"):
        blocks.extend(stream.blocks())
    assert [name for block in blocks for name in block.names] == ["a_x", "a_y", "b_x", "b_y"]
    assert (stream.n_read, stream.encoded["categories"]) == (2, 2)


def test_n_read_follows_the_blocks():
    unique = np.array(list("abcdef"))
    columns = [(f"c{j}", np.array(["x", "y", None, "x", "y", "y"])) for j in range(3)]
    columns.insert(1, ("id", unique))
    columns += [("n", np.arange(6.0)), ("last", unique)]
    stream = encode(iter_columns(columns))
    seen = [(stream.n_read, list(block.names)[-1]) for block in stream.blocks()]
    assert seen == [(4, "c2_y"), (5, "n")]
    assert (stream.n_read, dict(stream.skipped)) == (6, {"text": 2})


def test_clean_keeps_groups_and_counts_columns_of_the_source():
    df = FRAME.with_columns(pl.Series("id", list("abcdef")))
    screened = clean(encode(df), min_count=2)
    groups = {}
    for block in screened.blocks():
        groups |= zip(block.names, block.groups or [None] * len(block.names), strict=True)
    # The None indicator (one in six rows) and a column's only category are left out.
    assert {n: g for n, g in groups.items() if g} == {
        "text_a": "text",
        "text_a_b": "text",
        "category_x": "category",
        "category_y": "category",
        "enum_hi": "enum",
        "enum_lo": "enum",
        "digits_01": "digits",
        "digits_02": "digits",
    }
    assert (screened.n_read, screened.last_read) == (len(df.columns), "id")
    assert screened.skipped["text"] == 1
    assert screened.encoded["dates"] == 3
    missing = [name for name, _ in clean(encode(df), missing="mean")]
    assert "day_month" in missing
    assert "day_month" not in groups


def test_a_text_column_with_missing_values_is_text():
    reported = []
    screened = clean(
        pd.DataFrame({"a": ["x", np.nan, np.nan, np.nan]}),
        report=lambda *line: reported.append(line),
    )
    assert list(screened) == []
    assert reported[0][1] == "text"


def test_parts_are_encoded_on_reading(tmp_path):
    stream = encode(_parquet(tmp_path), max_categories=2, groups=False)
    whole = dict(stream)
    parts = stream.split(4)
    assert len(parts) > 1
    found = {name: dense(values) for part in parts for name, values in part.open()}
    assert list(found) == list(whole)
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name], dense(values))
    with pytest.raises(ValueError, match="skip before encode"):
        stream.skip(1).split(2)


def test_text_files(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("colour,size,age\nred,1,5\nblue,2,7\nNA,1,2\nred,2,9\nred,2,1\nblue,3,3\n")
    stream = encode(iter_csv(path))
    assert list(stream.names or []) == []
    assert [name for name, _ in stream] == [
        "colour_None",
        "colour_blue",
        "colour_red",
        "size",
        "age",
    ]
    assert stream.take(["colour_red"])["colour_red"].tolist() == [1, 0, 0, 1, 1, 0]


@pytest.mark.parametrize("bad", [0, 1.5, "many", True])
def test_invalid_limits_are_refused(bad):
    with pytest.raises(ValueError, match="max_categories"):
        encode(FRAME, max_categories=bad)


def test_blocks_are_bounded(monkeypatch):
    from streamsel.stream import _encode

    monkeypatch.setattr(_encode, "BLOCK_BYTES", 5 * 100 * 3)
    columns = [(f"c{j}", np.array(["x", "y"] * 50)) for j in range(10)]
    sizes = [len(block.names) for block in encode(iter_columns(columns)).blocks()]
    assert sizes == [6, 6, 6, 2]


def test_blocks_of_several_columns_of_text():
    block = Block(["a", "b"], np.array([["x", "1"], ["y", "2"], ["x", "1"], ["x", "2"]]))
    stream = encode(ColumnStream(lambda: [block]))
    assert [name for name, _ in stream] == ["a_x", "a_y", "b_1", "b_2"]


def test_groups_of_numbers_are_kept_and_others_refused():
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 3.0], "z": [2, 1, 1, 2], "c": ["a", "b", "a", "b"]})

    def groups_of(stream):
        return {
            name: group
            for block in stream.blocks()
            for name, group in zip(
                block.names, block.groups or [None] * len(block.names), strict=True
            )
        }

    indicators = {"c_a": "c", "c_b": "c"}
    assert (
        groups_of(encode(grouped(frame, {"x": "g", "z": "g"})))
        == {
            "x": "g",
            "z": "g",
        }
        | indicators
    )
    of_encoded = grouped(encode(frame), {"g": ["x", "c_a", "c_b"]})
    assert groups_of(of_encoded) == {"x": "g", "c_a": "g", "c_b": "g", "z": None}
    for groups in ({"x": "g", "c": "g"}, {"c": "g"}):
        with pytest.raises(ValueError, match="group 'g' with text, categories or dates among"):
            list(encode(grouped(frame, groups)).blocks())


def test_categories_of_numbers_are_labels_in_files_of_pandas(tmp_path):
    days = pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"])
    frame = pd.DataFrame(
        {
            "number": pd.Categorical([1, 2, None] * 10),
            "x": np.arange(30.0),
            "float": pd.Categorical([1.5, 2.5, 3.5] * 10),
            "flag": pd.Categorical([True, False, True] * 10),
            "text": pd.Categorical(["a", "b", "c"] * 10),
            "day": pd.Categorical([*days] * 10),
        }
    )
    paths = tmp_path / "x.feather", tmp_path / "x.parquet"
    frame.to_feather(paths[0])
    frame.to_parquet(paths[1])
    expected = {name: np.ravel(as_dense(values)) for name, values in encode(frame)}
    assert "number_1" in expected
    for path in paths:
        found = {name: np.ravel(as_dense(values)) for name, values in encode(str(path))}
        assert list(found) == list(expected)
        assert all(np.array_equal(found[name], expected[name]) for name in expected)
    stream = iter_parquet(paths[1], columns=["x", "flag", "number"])
    assert stream.take(["flag"])["flag"].tolist() == ["True", "False", "True"] * 10
    parts = [pair for part in stream.split(2) for pair in part.open()]
    assert [name for name, _ in parts] == ["number", "x", "flag"]
    assert parts[0][1].tolist() == ["1", "2", None] * 10

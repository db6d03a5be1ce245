"""`clean`: which columns pass unchanged, which are skipped and why, which values are filled in."""

from decimal import Decimal

import numpy as np
import pytest
from scipy import sparse

from streamsel.data.chunks import Block
from streamsel.stream import ColumnStream, as_stream, clean, iter_array, iter_columns, iter_sparse


def stream_of(*blocks, reiterable=True):
    return ColumnStream(lambda: iter(blocks), reiterable=reiterable)


def names_of(stream):
    return [name for name, _ in stream]


class Reports(list):
    def __call__(self, name, reason, detail):
        self.append((name, reason, detail))

    @property
    def reasons(self):
        return {name: reason for name, reason, _ in self}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "uint8", "int64"])
@pytest.mark.parametrize("order", ["F", "C"])
def test_good_blocks_pass_untouched(rng, dtype, order):
    X = np.asarray(rng.integers(0, 100, size=(20, 7)), dtype=dtype, order=order)
    screened = clean(stream_of(Block(list("abcdefg"), X)))
    (block,) = screened.blocks()
    assert block.values is X
    assert screened.n_read == 7
    assert not screened.skipped


def test_good_sparse_blocks_pass_untouched(rng):
    X = sparse.random_array((20, 7), density=0.5, format="csc", random_state=rng)
    (block,) = clean(stream_of(Block(range(7), X))).blocks()
    assert block.values is X


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("order", ["F", "C"])
def test_missing_columns_are_left_out(rng, bad, dtype, order):
    X = np.asarray(rng.normal(size=(10, 5)), dtype=dtype, order=order)
    X[3, 1] = X[9, 4] = bad
    reports = Reports()
    screened = clean(stream_of(Block(list("abcde"), X)), report=reports)
    (block,) = screened.blocks()
    assert list(block.names) == ["a", "c", "d"]
    assert block.values.dtype == dtype
    np.testing.assert_array_equal(block.values, X[:, [0, 2, 3]])
    assert screened.skipped == {"missing": 2}
    assert reports.reasons == {"b": "missing", "e": "missing"}
    assert "1 of 10" in reports[0][2]
    assert "row 3" in reports[0][2]


def test_infinities_of_both_signs_do_not_cancel():
    X = np.array([[np.inf, 1.0], [-np.inf, 2.0]])
    assert names_of(clean(iter_array(X, names=["bad", "good"]))) == ["good"]


def test_an_overflowing_sum_is_not_missing():
    X = np.array([[3e38, 1.0], [3e38, 2.0], [2e38, 4.0]], dtype=np.float32)
    assert names_of(clean(iter_array(X, names=["huge", "small"]))) == ["huge", "small"]


def test_fortran_order_of_blocks_is_kept(rng):
    X = np.asfortranarray(rng.normal(size=(10, 4)))
    X[0, 2] = np.nan
    (block,) = clean(stream_of(Block(range(4), X))).blocks()
    assert block.values.flags.f_contiguous


def test_sparse_missing_columns_are_left_out():
    X = sparse.csc_array(np.array([[0, 1.0, 0, 2], [0, np.nan, 3, 0], [1, 0, 0, np.inf]]))
    screened = clean(iter_sparse(X, names=list("abcd")))
    (block,) = screened.blocks()
    assert list(block.names) == ["a", "c"]
    np.testing.assert_array_equal(block.values.toarray(), [[0, 0], [0, 3], [1, 0]])
    assert screened.skipped == {"missing": 2}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_missing_values_are_replaced_by_the_mean(dtype):
    X = np.array([[1, np.nan, 5], [3, 4, 6], [np.inf, np.nan, 8]], dtype=dtype)
    before = X.copy()
    screened = clean(iter_array(X, names=list("abc")), missing="mean")
    columns = dict(screened)
    np.testing.assert_allclose(columns["a"], [1, 3, 2])
    assert columns["a"].dtype == dtype
    np.testing.assert_array_equal(columns["c"], [5, 6, 8])
    assert "b" not in columns  # one value and its mean: constant
    assert screened.skipped == {"constant": 1}
    assert screened.n_filled == 2
    np.testing.assert_array_equal(X, before)


def test_mean_of_values_near_the_end_of_the_range():
    X = np.array([[1.5e308], [1.7e308], [np.nan]])
    ((_, values),) = clean(iter_array(X), missing="mean")
    np.testing.assert_allclose(values[2], 1.6e308)


def test_mean_counts_the_zeros_of_a_sparse_column():
    X = sparse.csc_array(np.array([[np.nan], [4.0], [0.0], [0.0]]))
    (block,) = clean(iter_sparse(X), missing="mean").blocks()
    np.testing.assert_allclose(block.values.toarray()[:, 0], [4 / 3, 4, 0, 0])


@pytest.mark.parametrize("missing", ["skip", "mean"])
def test_columns_without_any_value_are_left_out(missing):
    X = np.array([[np.nan, 1], [np.nan, 2]])
    screened = clean(iter_array(X, names=["none", "some"]), missing=missing)
    assert names_of(screened) == ["some"]
    assert screened.skipped == {"missing": 1}


@pytest.mark.parametrize("form", [np.asfortranarray, np.ascontiguousarray, sparse.csc_array])
def test_missing_values_can_be_kept(form):
    gap = np.nan
    columns = {
        "whole": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "gaps": [gap, 2.0, gap, 4.0, 0.0, 3.0],
        "infinite": [gap, np.inf, 1.0, 2.0, 3.0, 4.0],
        "nothing": [gap] * 6,
        "once": [gap, 2.0, gap, gap, gap, gap],
        "same": [3.0, gap, 3.0, 3.0, 3.0, 3.0],
        "rare": [3.0, gap, 3.0, 3.0, 7.0, 3.0],
    }
    X = np.column_stack(list(columns.values()))
    reported = []
    screened = clean(
        as_stream(form(X), list(columns)),
        missing="keep",
        min_count=2,
        report=lambda *line: reported.append(line),
    )
    (block,) = screened.blocks()
    found = block.values.toarray() if sparse.issparse(block.values) else block.values
    assert list(block.names) == ["whole", "gaps"]
    np.testing.assert_array_equal(found, X[:, :2])
    assert sorted(reported) == [
        ("infinite", "missing", "2 of 6 values are missing or infinite, the first in row 0"),
        ("nothing", "missing", "6 of 6 values are missing or infinite, the first in row 0"),
        ("once", "constant", "every value is 2.0"),
        ("rare", "rare", "1 of 5 values differ from 3.0"),
        ("same", "constant", "every value is 3.0"),
    ]


def test_missing_values_can_stop_the_stream():
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    screened = clean(iter_array(X, names=["good", "gap"]), missing="error")
    with pytest.raises(ValueError, match=r"'gap'.*1 of 2 values is missing"):
        list(screened)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.array([["red"], ["blue"]], dtype=object), "text"),
        (np.array([["red"], ["blue"]]), "text"),
        (np.array([["2020-01-01"], ["2020-01-02"]], dtype="datetime64[D]"), "text"),
        (np.array([[1j], [2j]]), "complex"),
    ],
    ids=["object", "str", "date", "complex"],
)
def test_columns_that_are_not_numeric(values, reason):
    reports = Reports()
    stream = stream_of(Block(["colour"], values), Block(["x"], np.array([[1.0], [2.0]])))
    screened = clean(stream, report=reports)
    assert names_of(screened) == ["x"]
    assert screened.skipped == {reason: 1}
    assert reports.reasons == {"colour": reason}
    with pytest.raises(TypeError, match="'colour'"):
        list(clean(stream, missing="error"))


@pytest.mark.parametrize(
    ("cells", "culprit"),
    [(["1", "n.a.", None], "'n.a.' in row 1"), (["1", "2", None], "'1' in row 0")],
)
def test_text_among_numbers_is_named(cells, culprit):
    reports = Reports()
    stream = stream_of(Block(["x"], np.array([[cell] for cell in cells], dtype=object)))
    assert not list(clean(stream, report=reports))
    assert reports == [("x", "text", culprit)]


def test_objects_of_numbers_are_numeric():
    values = np.array([[Decimal("1.5")], [None], [True]], dtype=object)
    ((_, filled),) = clean(stream_of(Block(["x"], values)), missing="mean")
    np.testing.assert_array_equal(filled, [1.5, 1.25, 1.0])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 100])
def test_constant_columns_are_left_out(n, dtype):
    X = np.ones((n, 3 + n), dtype=dtype)
    X[:, 1] = 0
    for row in range(
        n
    ):  # all columns except the first two and the last differ from a constant in one row
        X[row, 2 + row] = 0
    reports = Reports()
    screened = clean(iter_array(X), report=reports)
    assert names_of(screened) == list(range(2, 2 + n))
    assert screened.skipped == {"constant": 3}
    assert set(reports.reasons) == {0, 1, n + 2}


def test_sparse_constant_columns_are_left_out():
    dense = np.array([[0, 2, 0, 1, 0.0], [0, 2, 3, 1, 0], [0, 2, 0, 2, 0]])
    X = sparse.csc_array(dense)
    X = sparse.csc_array(
        (np.append(X.data, [0.0]), np.append(X.indices, [1]), np.append(X.indptr[:-1], X.nnz + 1)),
        shape=X.shape,
    )  # the last column has an explicit zero
    screened = clean(iter_sparse(X))
    assert names_of(screened) == [2, 3]
    assert screened.skipped == {"constant": 3}


def rare(x, min_count):
    """Return whether fewer than `min_count` rows differ from the most frequent value."""
    return len(x) - np.unique(x, return_counts=True)[1].max() < min_count


@pytest.mark.parametrize("min_count", [0, 1, 2, 3, 10, 25])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csc_array])
def test_rare_columns_are_left_out(rng, min_count, form):
    n = 50
    common = rng.integers(-1, 2, size=61)  # zero, as in sparse columns, or another value
    X = np.tile(common, (n, 1))
    for j in range(51):  # 0, 1, ... rows at random that differ
        rows = rng.permutation(n)[:j]
        X[rows, j] += rng.integers(1, 4, size=j)
    X[:, 51:] = rng.integers(0, 3, size=(n, 10))
    reports = Reports()
    screened = clean(form(X.astype(float)), min_count=min_count, report=reports)
    kept = [j for j in range(61) if not rare(X[:, j], max(1, min_count))]
    assert names_of(screened) == kept
    assert sum(screened.skipped.values()) == 61 - len(kept)
    assert screened.skipped["constant"] == sum(rare(x, 1) for x in X.T) == 1
    assert {reports.reasons[name] for name in reports.reasons} <= {"constant", "rare"}
    for name, _, text in (report for report in reports if report[1] == "rare"):
        differing = n - np.unique(X[:, name], return_counts=True)[1].max()
        assert text == f"{differing} of 50 values differ from {common[name]}.0"


def test_invalid_min_count_is_refused():
    with pytest.raises(ValueError, match=r"at most half the rows, 2\. Got: 3"):
        list(clean(np.eye(5), min_count=3))
    with pytest.raises(ValueError, match=r"Expected min_count of .*Got: -1"):
        clean(np.eye(5), min_count=-1)


def test_a_stored_zero_is_a_zero():
    X = sparse.csc_array(
        (np.array([0.0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1]), np.array([0, 3, 5])), shape=(6, 2)
    )
    screened = clean(iter_sparse(X), min_count=2)
    assert names_of(screened) == [1]


def test_blocks_of_bad_columns_are_only_counted():
    screened = clean(
        stream_of(Block(["a"], np.ones((3, 1))), Block(["b"], np.array([[1.0], [2], [3]])))
    )
    assert [list(block.names) for block in screened.blocks()] == [["b"]]
    assert screened.n_read == 2
    assert screened.last_read == "b"


def test_wrong_length():
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match=r"Expected columns of 4 values.*Got: 3"):
        list(clean(iter_array(X), n_rows=4))


def test_second_pass_is_the_same_and_counts_nothing_again(rng):
    X = rng.normal(size=(10, 6))
    X[0, 2] = np.nan
    X[:, 4] = 1
    reports = Reports()
    screened = clean(iter_array(X), report=reports)
    assert names_of(screened) == names_of(screened) == [0, 1, 3, 5]
    assert screened.n_read == 6
    assert screened.skipped == {"missing": 1, "constant": 1}
    assert len(reports) == 2


def test_counts_continue_after_an_interrupted_pass():
    X = np.array([[1.0, 2, 3], [1.0, 1, 1]])
    pieces = [Block([j], X[:, [j]]) for j in range(3)]
    screened = clean(stream_of(*pieces))
    next(screened.blocks())
    assert screened.n_read == 2  # the first column is constant
    assert names_of(screened) == [1, 2]
    assert screened.n_read == 3
    assert screened.skipped == {"constant": 1}


def test_streams_of_one_pass(rng):
    X = rng.normal(size=(5, 3))
    screened = clean(iter_columns(iter([(j, X[:, j]) for j in range(3)]), n_rows=5))
    assert not screened.reiterable
    assert names_of(screened) == [0, 1, 2]


def test_size_is_that_of_the_source(rng):
    screened = clean(rng.normal(size=(5, 3)))
    assert (screened.n_rows, screened.n_columns, screened.reiterable) == (5, 3, True)


@pytest.mark.parametrize("missing", ["skip", "mean", "keep"])
def test_take_equals_the_stream(missing):
    X = np.array([[1.0, np.nan], [2.0, 3.0], [5.0, 6.0]])
    columns = clean(iter_array(X, names=["a", "b"]), missing=missing).take(["b", "a"])
    np.testing.assert_array_equal(columns["a"], X[:, 0])
    np.testing.assert_array_equal(columns["b"], [4.5 if missing == "mean" else np.nan, 3, 6])


def test_unknown_options_for_missing_values_are_refused():
    with pytest.raises(ValueError, match=r"skip.*Got: 'drop'"):
        clean(np.eye(3), missing="drop")

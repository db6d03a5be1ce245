"""Plots of p-values along a genome: every column is at its chromosome and position."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamsel
from streamsel import ProjSe, SelectKBest, plot
from streamsel.plot._genome import lay_out
from streamsel.plot._manhattan import _dots
from streamsel.plot.style import figure, to_svg
from streamsel.stream import iter_array
from tests.page.reading import read
from tests.plot.test_relevance import by_gid

P = 300


@pytest.fixture(scope="module")
def model(columns):
    X, y = columns
    model = SelectKBest(k=4)
    model.learn_target(y)
    model.learn_columns(X)
    return model


@pytest.fixture(scope="module")
def positions():
    rng = np.random.default_rng(1)
    names = np.array([*map(str, range(1, 20)), "X"])
    return {
        "name": np.arange(P),
        "chromosome": names[np.arange(P) // 15],
        "position": rng.integers(1, 10**8, P),
    }


class TestLayout:
    """`lay_out`: positions computed from metadata."""

    def test_chromosomes_are_in_natural_order(self):
        given = ["chrX", "10", "2", "chr1", "MT", "Y", "scaffold_7", "22", "0", 3.0, None, "chr02"]
        found = lay_out({"chromosome": given}, range(len(given)))
        assert found.labels == ["1", "2", "3", "10", "22", "X", "Y", "MT", "scaffold_7", "?"]
        assert (np.diff(found.ends) > 0).all()

    def test_without_positions_columns_are_evenly_spaced(self):
        found = lay_out({"chromosome": ["2", "1", "2", "1", "2"]}, range(5))
        assert found.x.tolist() == [3.0, 1.0, 4.0, 2.0, 5.0]
        assert found.ends.tolist() == [2.0, 5.0]
        assert found.centres.tolist() == [1.0, 3.5]

    @given(data=st.data(), p=st.integers(1, 30))
    def test_columns_are_ordered_along_the_genome(self, data, p):
        chromosome = data.draw(st.lists(st.integers(1, 25), min_size=p, max_size=p))
        position = data.draw(st.lists(st.integers(1, 10**9), min_size=p, max_size=p))
        table = {"chromosome": chromosome, "position": position}
        found = lay_out(table, range(p))
        order = sorted(range(p), key=lambda j: (chromosome[j], position[j]))
        assert (np.diff(found.x[order]) >= 0).all()
        assert (found.x <= found.ends[found.chromosomes]).all()
        assert [found.labels[i] for i in found.chromosomes] == [*map(str, chromosome)]
        # The layout of some columns depends on their names, not on their order in the metadata.
        back = {key: values[::-1] for key, values in table.items()}
        again = lay_out(back | {"name": range(p)[::-1]}, range(p))
        assert again.x.tolist() == found.x.tolist()

    def test_unknown_columns_and_positions(self):
        table = {"name": ["a", "b"], "chromosome": ["1", "2"], "position": [np.nan, 7.0]}
        for unknown in (np.nan, 0.0, -9.0):
            found = lay_out(table | {"position": [unknown, 7.0]}, ["a", "b", "probe"])
            assert found.labels == ["2", "?"]
            np.testing.assert_array_equal(found.x, [np.nan, 7.0, 7.0])
        found = lay_out(table | {"position": [0, 0]}, ["a", "b"])
        assert found.x.tolist() == [1.0, 2.0]

    @pytest.mark.parametrize(
        ("metadata", "error", "message"),
        [
            (3, TypeError, "Expected metadata to be a ColumnStream, a mapping or a data frame"),
            (["1"], TypeError, "Got: list"),
            ({}, ValueError, "Got: no metadata.\nHint: iter_bed"),
            ({"position": [1]}, ValueError, "chromosome of each column. Got: 'position'"),
            (
                {"chromosome": ["1"], "position": [1, 2]},
                ValueError,
                "'chromosome' has 1, 'position' has 2",
            ),
            ({"chromosome": "1"}, ValueError, "one-dimensional arrays. Got: 'chromosome' of str"),
            ({"chromosome": [["1"]]}, ValueError, "'chromosome' of shape (1, 1)"),
            ({"chromosome": iter("1")}, ValueError, "'chromosome' of str_ascii_iterator"),
            ({"chromosome": ["1"], "position": ["p1"]}, ValueError, "to be a number. Got: 'p1'"),
            (
                {"chromosome": ["1"], "name": np.array([{}], dtype=object)},
                TypeError,
                "to be hashable, such as texts or numbers. Got: {}",
            ),
            ((c for c in "1"), TypeError, "Got: generator"),
            ({"chromosome": ["1"], "name": ["b"]}, ValueError, "such as 'a'. Got: none of them"),
        ],
    )
    def test_invalid_metadata_are_refused(self, metadata, error, message):
        with pytest.raises(error) as refused:
            lay_out(metadata, ["a"])
        assert message in str(refused.value)


class TestValues:
    """`lay_out`: forms of values."""

    def test_missing_chromosomes_and_positions(self):
        missing = [None, np.nan, pd.NA, pd.NaT, ".", ""]
        table = {"chromosome": [*missing, b"chr2", 3], "position": [*missing, "7", 8]}
        found = lay_out(table, range(8))
        assert found.labels == ["2", "3"]
        np.testing.assert_array_equal(found.x, [np.nan] * 6 + [7.0, 15.0])
        found = lay_out(table | {"position": range(1, 9)}, range(8))
        assert found.labels == ["2", "3", "?"]
        assert found.x.tolist() == [16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 7.0, 15.0]

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_frames_of_metadata(self, make):
        table = {"name": ["a", "b"], "chromosome": ["1", "2"], "position": [5, 6]}
        assert lay_out(make(table), ["b", "a"]).x.tolist() == [11.0, 5.0]

    def test_names_that_are_tuples_or_of_several_types(self):
        names = [("a", 1), "b", 3]
        found = lay_out({"name": names, "chromosome": ["1"] * 3}, names[::-1])
        assert found.labels == ["1"]


class TestManhattan:
    """`plot.manhattan` with metadata."""

    def test_every_column_has_its_p_value(self, model, positions):
        ax = plot.manhattan(model, metadata=positions)
        gids = ("columns", "columns of every other chromosome")
        x, y = np.hstack([by_gid(ax, gid).get_data() for gid in gids])
        names, _, p_values = model._all_scores()
        assert sorted(y) == pytest.approx(sorted(-np.log10(p_values)))
        expected = lay_out(positions, names).x
        order = np.argsort(x)
        assert x[order] == pytest.approx(np.sort(expected))
        assert y[order] == pytest.approx(-np.log10(p_values[np.argsort(expected)]))
        chosen = dict(zip(*by_gid(ax, "chosen").get_data(), strict=True))
        for name, p in model.p_values.items():
            assert chosen[expected[name]] == pytest.approx(-np.log10(p))
        assert {str(name) for name in model.selected} <= {text.get_text() for text in ax.texts}

    def test_line_separates_columns_above_the_noise_floor(self, columns, positions):
        X, y = columns
        for permutations in (0, 200):
            model = SelectKBest(k="all", permutations=permutations)
            model.learn_target(y)
            model.learn_columns(X)
            ax = plot.manhattan(model, figure()[1], metadata=positions)
            (line, _) = by_gid(ax, "floor").get_ydata()
            above = [p <= 10.0**-line * (1 + 1e-9) for p in model.p_values.values()]
            floor = model.noise_floor()
            assert above == [r > floor for r in model.relevance.values()]
            assert any(above)

    @pytest.mark.slow
    def test_sources_frames_and_mappings_give_the_same_plot(self, model, positions):
        source = SimpleNamespace(column_metadata=positions)
        drawn = {
            to_svg(plot.manhattan(model, figure()[1], metadata=metadata).figure)
            for metadata in (positions, source, pd.DataFrame(positions))
        }
        assert len(drawn) == 1

    def test_many_columns_are_drawn_as_an_image(self, rng):
        X = rng.normal(size=(50, 2_001))
        model = SelectKBest(k=1)
        model.learn_target(X[:, 0])
        model.learn_columns(X)
        metadata = {"chromosome": ["1"] * 1_001 + ["2"] * 1_000}
        ax = plot.manhattan(model, figure()[1], metadata=metadata)
        alpha = by_gid(ax, "shade").get_array()[..., 3]
        half = alpha.shape[1] // 2
        assert alpha[:, : half - 10].max() > alpha[:, half + 10 :].max() > 0
        assert not np.isinf(ax.get_ylim()[1])
        assert to_svg(ax.figure, page=True) == to_svg(ax.figure, page=True)

    @pytest.mark.parametrize("n_points", [0, 2_000])
    def test_columns_without_a_position_are_omitted(self, n_points, model, positions, monkeypatch):
        monkeypatch.setattr("streamsel.plot._manhattan._N_POINTS", n_points)
        unplaced = [*range(7), model.selected[0]]
        position = positions["position"].copy()
        position[unplaced] = 0
        ax = plot.manhattan(model, metadata=positions | {"position": position})
        assert f"{len(set(unplaced))} columns have no known position, not drawn" in ax.get_label()
        assert len(by_gid(ax, "chosen").get_xdata()) == 3
        assert str(model.selected[0]) not in {text.get_text() for text in ax.texts}
        if n_points:
            gids = ("columns", "columns of every other chromosome")
            x, _ = np.hstack([by_gid(ax, gid).get_data() for gid in gids])
            assert x.size == P - len(set(unplaced))
            assert x.min() > 0

    def test_text_alternative(self, model, positions):
        best = min(model.p_values.values())
        assert plot.manhattan(model, metadata=positions).get_label() == (
            "p-values of 300 columns by chromosome and position, with 4 selected; noise 1.7e-04. "
            f"The smallest p-value is {best:.1e}, on chromosome 2."
        )

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: SelectKBest(2, max_candidates=5), "SelectKBest, which discarded columns"),
            (lambda: SelectKBest(2, score="margin"), "Got: score='margin', which has none"),
            (lambda: ProjSe(2), "Got: ProjSe."),
        ],
    )
    def test_models_without_all_p_values_are_refused(self, make, message, columns, positions):
        model = make()
        model.learn_target(columns[1] > 0)
        model.learn_columns(columns[0])
        with pytest.raises(ValueError, match="Hint: ") as refused:
            plot.manhattan(model, metadata=positions)
        assert message in str(refused.value)

    def test_model_of_constant_columns_is_refused(self, positions):
        model = SelectKBest()
        model.learn_target([1.0, 2.0, 4.0])
        model.learn_columns(np.ones((3, 5)))
        for draw in (plot.manhattan, plot.qq, lambda m: plot.manhattan(m, metadata=positions)):
            with pytest.raises(ValueError, match="SelectKBest, which has seen 5 constant columns"):
                draw(model)

    def test_labels_are_not_parsed_as_formulas(self, model):
        ax = plot.manhattan(model, metadata={"chromosome": ["$x^2$"] * P})
        assert [label.get_text() for label in ax.get_xticklabels()] == [r"\$x^2\$"]
        assert "x^2" in to_svg(ax.figure)

    def test_report_without_p_values_is_refused(self, model, positions):
        with pytest.raises(ValueError, match="Got: a report"):
            plot.manhattan(model.report(), metadata=positions)
        with pytest.raises(ValueError, match="SelectKBest without columns"):
            plot.manhattan(SelectKBest(), metadata=positions)


@given(points=st.lists(st.tuples(st.floats(0, 0.999), st.floats(0, 0.999)), min_size=1, max_size=5))
def test_every_point_has_a_dot(points):
    x, y = np.array(points).T
    image = _dots(x, y, np.full(x.size, 0.5))[..., 3]
    height, width = image.shape
    assert (image[(y * height).astype(int), (x * width).astype(int)] == 128).all()
    assert np.count_nonzero(image) <= 45 * x.size


@pytest.mark.slow
def test_report_has_it_if_the_source_has_chromosomes(model, columns, positions):
    source = iter_array(columns[0])
    source.column_metadata = positions
    seen = read(streamsel.report(model, source)).text
    assert "Manhattan plot" in seen
    assert "Relevance of all columns" not in seen
    for other in (None, iter_array(columns[0])):
        seen = read(streamsel.report(model, other)).text
        assert "Manhattan plot" not in seen
        assert "Relevance of all columns" in seen
    other = ProjSe(2)
    other.learn_target(columns[1])
    other.learn_columns(columns[0])
    assert "Relevance of all columns" in read(streamsel.report(other, source)).text

"""Plots show the values of the model, one by one."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from scipy.optimize import isotonic_regression

from streamsel import MRMR, PCA, SOSPCA, Lasso, ProjSe, SelectKBest, plot
from streamsel.plot._heatmap import correlation_matrix
from streamsel.plot._labels import _spread
from streamsel.plot._scree import noise_share
from streamsel.plot.style import SERIES, figure
from streamsel.stream import grouped


def learnt(model, columns, names=None):
    X, y = columns
    if model._is_supervised:
        model.learn_target(y)
    model.learn_columns(X, names)
    return model


def line(ax, gid):
    (found,) = [line for line in ax.lines if line.get_gid() == gid]
    return np.asarray(found.get_data(), dtype=float)


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


class TestPath:
    """`plot.selection_path`."""

    @pytest.mark.parametrize("quantity", ["relevance", "score"])
    def test_values_in_order(self, columns, quantity):
        """A single quantity has its own axis."""
        model = learnt(MRMR(k=6), columns)
        ax = plot.selection_path(model, quantity=quantity)
        assert ticks(ax.yaxis) == [str(name) for name in model.selected]
        values = {"relevance": model.relevance, "score": model.scores}[quantity]
        assert line(ax, quantity).tolist() == [[*values.values()], [*range(6)]]
        assert [each.get_gid() for each in ax.lines if each.get_gid()] == [quantity]
        assert ax.get_xlabel() == quantity
        assert ax.get_ylim()[0] > ax.get_ylim()[1]

    def test_unknown_quantity_is_refused(self, report):
        with pytest.raises(ValueError, match="Expected quantity of selection_path"):
            plot.selection_path(report, quantity="arrival")

    def test_noise_floor_is_drawn(self, columns):
        model = learnt(SelectKBest(k=4), columns)
        ax = plot.selection_path(model)
        (floor,) = [line for line in ax.lines if line.get_label() == "noise floor"]
        assert list(floor.get_xdata()) == [model.noise_floor()] * 2

    def test_uncertified_variables_have_open_markers(self, report):
        found = [row | {"certified": rank < 1} for rank, row in enumerate(report.results)]
        ax = plot.selection_path(replace(report, results=found))
        values = [row["relevance"] for row in found]
        assert line(ax, "relevance").tolist() == [values[:1], [0]]
        assert line(ax, "relevance, not certified").tolist() == [values[1:], [1, 2, 3]]

    def test_rounds_are_separated(self, report):
        found = [row | {"round": rank // 2} for rank, row in enumerate(report.results)]
        ax = plot.selection_path(replace(report, results=found))
        parted = [line.get_ydata()[0] for line in ax.lines if line.get_gid() == "round"]
        assert parted == [1.5]

    def test_negative_scores_are_within_the_axes(self, report):
        found = [row | {"score": 1.0 - rank} for rank, row in enumerate(report.results)]
        ax = plot.selection_path(replace(report, results=found), quantity="score")
        assert ax.get_xlim()[0] < line(ax, "score")[0].min() < 0.0

    def test_many_variables_have_ranks_instead_of_names(self, report):
        row = report.results[0]
        ax = plot.selection_path(replace(report, results=[row | {"name": j} for j in range(80)]))
        assert ax.get_ylabel() == "rank"
        assert ticks(ax.yaxis) == ["1", *(str(rank) for rank in range(10, 81, 10))]
        assert ax.get_yticks().tolist() == [0, *range(9, 80, 10)]

    def test_only_scores_without_a_target(self, columns):
        model = ProjSe(k=3)
        model.learn_target(None)
        model.learn_columns(columns[0])
        ax = plot.selection_path(model)
        assert line(ax, "score").shape == (2, 3)

    def test_coefficients_of_a_lasso(self, columns):
        model = learnt(Lasso(k=9), columns)
        ax = plot.selection_path(model)
        solutions = model.path
        named = [line for line in ax.lines if (line.get_gid() or "other").isdecimal()]
        largest = sorted(model.coefficients, key=lambda name: -abs(model.coefficients[name]))[:5]
        assert [text.get_text() for text in ax.texts] == [str(name) for name in largest]
        assert {line.get_gid() for line in named} == {str(name) for name in largest}
        for drawn in named:
            alphas, values = drawn.get_data()
            name = int(drawn.get_gid())
            assert list(alphas) == list(solutions)
            assert list(values) == [found.get(name, 0.0) for found in solutions.values()]


class TestScree:
    """`plot.scree`."""

    def test_shares_of_variance(self, columns):
        model = learnt(PCA(n_components=5), columns)
        ax = plot.scree(model)
        shares = np.sort(model.explained_variance_ratio)[::-1]
        np.testing.assert_array_equal(line(ax, "components")[1], shares)
        # There is no noise level for columns of different variances.
        assert "noise" not in [line.get_gid() for line in ax.lines]

    def test_details_of_the_report_determine_the_noise_floor(self, columns):
        report = learnt(SOSPCA(n_components=3), columns).report()
        ax = plot.scree(replace(report, learner="OfAnotherPackage"))
        assert list(line(ax, "noise")[1]) == [report.noise_floor] * 2
        ax = plot.scree(replace(report, details={}), plt.figure().gca())
        assert "noise" not in [line.get_gid() for line in ax.lines]

    def test_relevances_and_the_noise_floor(self, columns):
        model = learnt(SOSPCA(n_components=3), columns)
        ax = plot.scree(model)
        assert line(ax, "components")[1].tolist() == sorted(model.relevance.values())[::-1]
        assert list(line(ax, "noise")[1]) == [model.noise_floor()] * 2
        ranked = sorted(model.relevance, key=model.relevance.get, reverse=True)
        assert [f"sospca{number}" for number in ticks(ax.xaxis)] == ranked

    @pytest.mark.parametrize(("n", "p"), [(30, 20), (20, 200), (60, 60)])
    def test_noise_exceeds_its_level_in_five_percent_at_most(self, n, p):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, n, p))
        X -= X.mean(axis=1, keepdims=True)
        X /= X.std(axis=1, keepdims=True)
        largest = np.linalg.svd(X, compute_uv=False)[:, 0] ** 2 / (n * p)
        level = np.quantile(largest, 0.95)
        assert level <= noise_share(n, p) < 1.15 * level

    def test_noise_level_is_drawn(self, columns):
        ax = plot.scree(learnt(PCA(n_components=5, scale=True), columns))
        assert list(line(ax, "noise")[1]) == [noise_share(60, 300)] * 2


class TestLoadings:
    """`plot.loadings`."""

    def test_largest_loadings_come_first(self, columns):
        names = [f"v{j}" for j in range(300)]
        model = learnt(PCA(n_components=3), columns, names)
        ax = plot.loadings(model, component=1, n=7)
        deviations = dict(zip(names, columns[0].std(axis=0), strict=True))
        weights = {name: parts["pca1"] * deviations[name] for name, parts in model.loadings.items()}
        largest = sorted(weights, key=lambda name: -abs(weights[name]))[:7]
        assert ticks(ax.yaxis) == largest
        bars = [bar.get_width() for bar in ax.patches]
        assert bars == pytest.approx([weights[name] for name in largest])

    @pytest.mark.parametrize("component", [3, 10**6])
    def test_unknown_component_is_refused(self, columns, component):
        with pytest.raises(ValueError, match=rf"from 0 to 2\. Got: {component}"):
            plot.loadings(learnt(PCA(n_components=3), columns), component=component)

    @pytest.mark.parametrize("how", [{"component": -1}, {"component": "pca0"}, {"n": 0}])
    def test_invalid_numbers_are_refused(self, columns, how):
        with pytest.raises(ValueError, match=f"Expected {next(iter(how))} of loadings"):
            plot.loadings(learnt(PCA(n_components=3), columns), **how)


@pytest.fixture(scope="module")
def components(columns):
    return learnt(PCA(n_components=3), columns)


class TestScatter:
    """`plot.scatter`."""

    def test_learnt_rows_are_drawn(self, components):
        (points,) = plot.scatter(components, components=(2, 0)).collections
        np.testing.assert_array_equal(points.get_offsets(), components.embedding[:, [2, 0]])

    @pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
    def test_given_rows_are_drawn(self, components, columns, kind):
        X = columns[0][:7]
        (points,) = plot.scatter(components, kind(X)).collections
        expected = components.transform_many(X)[:, :2]
        np.testing.assert_allclose(points.get_offsets(), expected, rtol=1e-12)

    def test_labels_have_a_colour_and_a_marker_each(self, components):
        y = np.array([*"aaaaaaaabbbbbbbccccccddddddeeeeeeffffffgh".ljust(60, "a")])
        ax = plot.scatter(components, y=y)
        drawn = {part.get_label(): part.get_offsets().tolist() for part in ax.collections}
        assert [label[0] for label in drawn] == [*"abcdefgh"]
        Z = components.embedding[:, :2]
        assert drawn["c (6)"] == Z[y == "c"].tolist()
        looks = {
            (tuple(part.get_facecolor()[0]), part.get_paths()[0].vertices.tobytes())
            for part in ax.collections
        }
        assert len(looks) == 8

    def test_numbers_in_labels_are_sorted_by_value(self, components):
        y = [f"class {i % 12}" for i in range(60)]
        drawn = [part.get_label() for part in plot.scatter(components, y=y).collections]
        assert drawn == [f"class {i} (5)" for i in range(12)]

    def test_legend_of_many_labels_is_truncated(self, components):
        ax = plot.scatter(components, y=[f"class {i}" for i in range(60)])
        assert len(ax.collections) == 60
        shown = [text.get_text() for text in ax.get_legend().get_texts()]
        assert shown[-1] == "and 20 more"
        assert len(shown) == 41

    def test_numeric_y_has_a_colour_bar(self, components, columns):
        ax = plot.scatter(components, y=columns[1])
        np.testing.assert_array_equal(ax.collections[0].get_array(), columns[1])
        assert len(ax.figure.axes) == 2

    def test_few_integers_are_labels(self, components):
        ax = plot.scatter(components, y=np.arange(60) % 2)
        assert [part.get_label() for part in ax.collections] == ["0 (30)", "1 (30)"]
        ax = plot.scatter(components, y=np.arange(60.0) % 2)
        assert [part.get_label() for part in ax.collections[2:]] == ["0 (30)", "1 (30)"]

    @pytest.mark.parametrize("y", [[1.0], np.zeros((60, 2)), 3])
    def test_y_of_other_length_is_refused(self, components, y):
        with pytest.raises(ValueError, match="Expected a y for each of 60 rows"):
            plot.scatter(components, y=y)

    @pytest.mark.parametrize("indices", [(0, 3), (0,), (0, 1, 2), (-1, 0), ("a", 0), 0])
    def test_unknown_components_are_refused(self, components, indices):
        with pytest.raises(ValueError, match="Expected two components, from 0 to 2"):
            plot.scatter(components, components=indices)

    def test_report_is_refused(self, components):
        with pytest.raises(TypeError, match=r"Expected an extractor\. Got: a report of PCA"):
            plot.scatter(components.report())

    def test_many_points_are_rasterized(self, components):
        X = np.random.default_rng(0).normal(size=(2_500, 300))
        assert plot.scatter(components, X).collections[0].get_rasterized()


class TestHeatmap:
    """`plot.heatmap`."""

    @pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
    def test_correlations_of_selected_variables(self, columns, kind):
        model = learnt(SelectKBest(k=5), columns)
        X = columns[0] + 0.5 * columns[1][:, None]
        drawn = plot.heatmap(model, kind(X)).images[0].get_array()
        np.testing.assert_allclose(drawn, np.corrcoef(X[:, model.selected].T), atol=1e-12)

    def test_constant_variable_has_no_correlation(self, columns):
        model = learnt(SelectKBest(k=3), columns)
        X = columns[0].copy()
        X[:, model.selected[1]] = 0.1
        drawn = plot.heatmap(model, X).images[0].get_array()
        assert drawn.mask.tolist() == [[i == 1 or j == 1 for j in range(3)] for i in range(3)]

    @pytest.mark.parametrize("k", [5, 18, 40])
    def test_names_do_not_overlap(self, columns, k):
        model = learnt(SelectKBest(k=k), columns)
        figure_, ax = figure()
        plot.heatmap(model, columns[0], ax)
        figure_.canvas.draw()
        assert (ax.get_xlabel() == "rank") is (k == 40)
        assert len(ticks(ax.yaxis)) == (k if k < 40 else 5)
        for axis, side in ((ax.xaxis, "x"), (ax.yaxis, "y")):
            boxes = [text.get_window_extent() for text in axis.get_ticklabels()]
            ends = sorted((getattr(b, f"{side}0"), getattr(b, f"{side}1")) for b in boxes)
            assert all(a[1] <= b[0] + 1.0 for a, b in itertools.pairwise(ends))

    @pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
    def test_columns_of_selected_groups(self, columns, kind):
        X, y = columns
        model = SelectKBest(k=3)
        model.learn_target(y)
        groups = {"low": [0, 1, 2], "both": [2, 3]}
        model.learn_columns(grouped(X[:, :5], groups))
        names = list(dict.fromkeys(itertools.chain(*model.members.values())))
        assert sorted(names) == [0, 1, 2, 3, 4]
        drawn = plot.heatmap(model, kind(X)).images[0].get_array()
        np.testing.assert_allclose(drawn, np.corrcoef(X[:, names].T), atol=1e-12)
        with pytest.raises(ValueError, match="Expected a model, as its groups have columns"):
            plot.heatmap(model.report(), X)

    @pytest.mark.slow
    @pytest.mark.parametrize("size", [(6, 4), (2, 2)])
    def test_repeated_plots_keep_the_layout(self, columns, size):
        """Repeated colour bars do not accumulate, which would leave no room for the axes."""
        names = [f"a rather long name of the column {j}" for j in range(300)]
        model = learnt(SelectKBest(k=9), columns, names)
        figure_, ax = plt.subplots(layout="constrained", figsize=size)
        for _ in range(12):
            plot.heatmap(model, pd.DataFrame(columns[0], columns=names), ax)
            figure_.canvas.draw()
        assert len(figure_.axes) == 2
        assert (ax.get_xlabel() == "rank") is (size == (2, 2))

    def test_infinite_value_is_refused(self, columns):
        model = learnt(SelectKBest(k=3), columns)
        X = columns[0].copy()
        X[3, model.selected[0]] = np.inf
        with pytest.raises(ValueError, match="finite"):
            plot.heatmap(model, X)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    ("draw", "model"), [(plot.heatmap, SelectKBest(k=3)), (plot.scatter, PCA(n_components=2))]
)
def test_frame_of_other_variables_is_refused(columns, kind, draw, model):
    model = learnt(model.clone(), columns)
    X = kind({f"other{i}": x for i, x in enumerate(columns[0][:, :5].T)})
    with pytest.raises(ValueError, match="Got: a frame that has none of them"):
        draw(model, X)


@given(
    values=st.lists(
        st.lists(st.floats(-1e3, 1e3) | st.just(float("nan")), min_size=3, max_size=3),
        min_size=2,
        max_size=8,
    )
)
@settings(max_examples=50)
def test_missing_values_count_as_the_mean(values):
    X = np.array(values)
    some = np.isfinite(X).any(axis=0)
    mean = np.array([X[np.isfinite(X[:, j]), j].mean() if some[j] else 0.0 for j in range(3)])
    filled = np.where(np.isnan(X), mean, X)
    found = correlation_matrix(X)
    varies = filled.std(axis=0) > 1e-9 * np.abs(filled).max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.corrcoef(filled.T)
    inside = np.ix_(varies, varies)
    np.testing.assert_allclose(found[inside], expected[inside], atol=1e-6)


@pytest.mark.parametrize("n", [0, 1])
def test_correlations_of_fewer_than_two_rows_are_nan(n):
    assert np.isnan(correlation_matrix(np.ones((n, 2)))).all()


class TestStability:
    """`plot.stability`."""

    def test_selection_frequencies_are_drawn(self):
        ax = plot.stability([["a", "b"], ["b"], ["b", "c"], []])
        assert ticks(ax.yaxis) == ["b", "a", "c"]
        assert [bar.get_width() for bar in ax.patches] == [0.75, 0.25, 0.25]
        assert ax.get_title() == ""

    def test_index_and_selected_variables_are_shown(self):
        found = SimpleNamespace(
            frequency={"a": 0.9, "b": 0.5},
            index=(0.5, 0.25, 0.75),
            selected=["b"],
            selections=[[]] * 10,
        )
        ax = plot.stability(found)
        assert ax.get_title() == "stability 0.50 (0.25 to 0.75)"
        colours = [bar.get_facecolor() for bar in ax.patches]
        assert colours[0] != colours[1]

    def test_intervals_are_wilson_intervals(self):
        from scipy.stats import binomtest

        ax = plot.stability([["a", "b"], ["b"], ["b", "c"], []])
        (lines,) = ax.collections
        for line, times in zip(lines.get_segments(), (3, 1, 1), strict=True):
            expected = binomtest(times, 4).proportion_ci(method="wilson")
            np.testing.assert_allclose(line[:, 0], expected, atol=1e-9)

    def test_at_most_twenty_variables_are_drawn(self):
        assert len(plot.stability([range(100), range(100)]).patches) == 20

    @pytest.mark.parametrize("found", [3, "abc", [3], ["abc"]])
    def test_other_objects_are_refused(self, found):
        with pytest.raises(TypeError, match="Expected "):
            plot.stability(found)

    def test_empty_selections_are_refused(self):
        with pytest.raises(ValueError, match="Got: only empty ones"):
            plot.stability([[], []])


@given(wanted=st.lists(st.integers(-50, 50), min_size=1, max_size=8), gap=st.integers(1, 20))
def test_labels_minimise_distances_to_their_lines(wanted, gap):
    """The labels minimise squared distances, in order and at least `gap` apart."""
    found = np.array(_spread(wanted, gap))
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    expected = isotonic_regression(np.array(wanted)[order] - steps).x + steps
    np.testing.assert_allclose(found[order], expected, atol=1e-9)


def test_six_groups_at_most():
    assert len(SERIES) == 6

"""Plots of relevance by arrival, and against the null distribution, agree with the report."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from streamsel import PCA, ProjSe, SelectKBest, plot
from streamsel.plot._labels import variable_label
from streamsel.plot._manhattan import _shade
from streamsel.plot._qq import quantiles
from streamsel.plot.style import figure
from tests.plot.learnt import density_of


def by_gid(ax, gid):
    (found,) = [artist for artist in ax.get_children() if artist.get_gid() == gid]
    return found


@pytest.fixture(scope="module")
def ax(report):
    return plot.manhattan(report)


class TestRelevance:
    """`plot.manhattan`."""

    def test_selected_columns_are_at_their_arrival(self, ax, report):
        x, y = by_gid(ax, "chosen").get_data()
        assert list(x) == [row["name"] + 0.5 for row in report.results]
        assert list(y) == [row["relevance"] for row in report.results]

    def test_noise_floor_is_drawn(self, ax, report):
        assert list(by_gid(ax, "floor").get_ydata()) == [report.noise_floor] * 2

    def test_selected_columns_are_named(self, ax, report):
        written = {text.get_text() for text in ax.texts}
        assert {str(row["name"]) for row in report.results} <= written

    def test_few_columns_are_drawn_as_points(self, ax, report, columns):
        x, y = by_gid(ax, "columns").get_data()
        correlations = np.abs(np.corrcoef(columns[0].T, columns[1])[-1, :-1])
        np.testing.assert_allclose(x, np.arange(300) + 0.5)
        np.testing.assert_allclose(y, correlations)

    def test_no_block_is_drawn_below_the_least_relevant(self):
        """All columns have relevances of about .7, so the area below is empty."""
        rng = np.random.default_rng(0)
        y = rng.normal(size=400)
        model = ProjSe(k=2)
        model.learn_target(y)
        model.learn_columns(y[:, None] + rng.normal(size=(400, 600)))
        density = model.report().density
        assert 0.5 < density.edges[0] < min(model.report().density.edges[1:])
        image = by_gid(plot.manhattan(model), "shade")
        bottom, top = image.get_extent()[2:]
        alpha = image.get_array()[..., 3]
        below = int(len(alpha) * density.edges[0] / (top - bottom))
        assert not alpha[: below - 1].any()
        assert alpha[below:].any()

    def test_many_columns_are_shaded(self, report):
        ax = plot.manhattan(replace(report, density=replace(report.density, points=None)))
        image = by_gid(ax, "shade")
        left, right, bottom, top = image.get_extent()
        assert (left, right, bottom) == (0, report.density.step * len(report.density.counts), 0)
        assert top >= max(row["relevance"] for row in report.results)
        alpha = image.get_array()[..., 3]
        assert (alpha.any(axis=0) == report.density.counts.any(axis=1)).all()

    def test_selected_columns_of_unknown_arrival(self, report):
        found = [row | {"arrival": None} for row in report.results]
        ax = plot.manhattan(replace(report, results=found))
        x, y = by_gid(ax, "chosen at the edge").get_data()
        assert list(x) == [report.columns_seen] * len(found)
        assert list(y) == [row["relevance"] for row in found]

    def test_without_a_noise_floor(self, report):
        ax = plot.manhattan(replace(report, noise_floor=None))
        assert not [child for child in ax.get_children() if child.get_gid() == "floor"]

    def test_without_selected_columns(self, report):
        plot.manhattan(replace(report, results=[], noise_floor=None))


@given(
    counts=st.lists(
        st.lists(st.integers(0, 10**7), min_size=5, max_size=5), min_size=1, max_size=4
    ),
    top=st.floats(0.02, 1.0),
)
@settings(max_examples=30)
def test_shading_covers_the_bins_with_columns(counts, top):
    counts, edges = np.array(counts), np.append(0.0, np.geomspace(0.2, 1.0, 5))
    alpha = _shade(counts, edges, top)[..., 3]
    shown = counts[:, edges[:-1] < top]
    assert (alpha.any(axis=0) == shown.any(axis=1)).all()
    # A bin with twice as many columns of the same width is not lighter.
    for row, column in zip(counts, alpha.T, strict=True):
        middle = np.searchsorted(edges, top * (np.arange(len(column)) + 0.5) / len(column)) - 1
        inside = np.r_[True, middle[1:] == middle[:-1]] & np.r_[middle[:-1] == middle[1:], True]
        density = row / np.diff(edges)
        order = np.argsort(density[middle[inside]], kind="stable")
        assert (np.diff(column[inside][order].astype(int)) >= 0).all()


class TestNull:
    """`plot.qq`."""

    def test_up_to_500_columns_have_the_p_values_of_the_results(self, rng):
        X, weights = rng.normal(size=(60, 12)), rng.random(60)
        for options in ({}, {"permutations": 50}, {"target_type": "numeric"}):
            model = SelectKBest(12, **options)
            y = X[:, 0] + rng.normal(size=60)
            model.learn_target(y, weights=None if options else weights)
            model.learn_columns(np.column_stack([X, np.ones(60)]))
            for shown in (model, model.report()):
                _, drawn = by_gid(plot.qq(shown, figure()[1]), "observed").get_data()
                p_values = np.array([row["p_value"] for row in model.report().results])
                if options.get("permutations"):
                    p_values = model.report().density.p_values[:12]
                np.testing.assert_allclose(np.sort(10.0**-drawn), np.unique(p_values), rtol=1e-12)

    def test_points_are_quantiles_at_the_bin_edges(self, report):
        density = replace(report.density, p_values=None)
        x, y = by_gid(plot.qq(replace(report, density=density)), "observed").get_data()
        per_bin = density.counts.sum(axis=0)
        null = density.null[:-1]
        for expected, observed in zip(x, y, strict=True):
            (edge,) = np.flatnonzero(np.isclose(-np.log10(null), observed))
            above = per_bin[edge:].sum()
            assert expected == pytest.approx(-np.log10(above / 301.0))
        assert len(x) == np.count_nonzero(per_bin)

    def test_known_inflation_factor_is_shown(self, report):
        for factor, shown in ((1.234, "λ = 1.23"), (None, None)):
            ax = plot.qq(replace(report, inflation=factor), figure()[1])
            written = [text.get_text() for text in ax.texts if "λ" in text.get_text()]
            assert written == ([] if shown is None else [shown])
            assert ("Inflation factor 1.23." in ax.get_label()) == (shown is not None)

    def test_noise_is_within_the_confidence_band(self):
        inside = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            relevances = np.sqrt(rng.beta(0.5, 99.0, size=2_000))
            density = density_of(relevances, 200, 1)
            found = quantiles(density.counts.sum(axis=0), density.null)
            inside.append(np.mean((found.low <= found.observed) & (found.observed <= found.high)))
        assert np.mean(inside) > 0.9

    @pytest.mark.parametrize(
        "options",
        [
            *({"score": score} for score in ("rank", "xi", "mutual_info")),
            *({"target_type": kind} for kind in ("binary", "count")),
        ],
        ids=lambda options: next(iter(options.values())),
    )
    def test_p_values_of_the_score(self, options, rng):
        """The p-values are not those of the relevance, as the columns have outliers."""
        X = np.exp(2.0 * rng.normal(size=(80, 1_100)))
        y = np.log(X[:, 0]) + rng.normal(size=80)
        y = y > 0.0 if options.get("target_type") else y
        model, bounded = (SelectKBest(2, **options, **more) for more in ({}, {"max_candidates": 9}))
        for one in (model, bounded):
            one.learn_target(1 * y)
            one.learn_columns(X)
        p_values = np.sort(model._all_scores()[2])
        x, drawn = by_gid(plot.qq(model), "observed").get_data()
        ranks = np.rint(10.0**-x * 1_101).astype(int)
        assert drawn == pytest.approx(-np.log10(p_values[ranks - 1]))
        assert ranks.min() == 1
        median = chi2.isf(np.median(p_values), 1) / chi2.isf(0.5, 1)
        assert model.report().inflation == pytest.approx(median)
        assert bounded.report().inflation is None
        for unknown in (model.report(), bounded, bounded.report()):
            with pytest.raises(ValueError, match="pass the learner rather than its report"):
                plot.qq(unknown)

    def test_every_bin_is_at_its_lower_edge(self):
        """The first bin too, although no column is less relevant."""
        found = quantiles(np.array([90, 10]), np.array([0.2, 0.1, 0.0]))
        np.testing.assert_allclose(found.expected, -np.log10([100 / 101, 10 / 101]))
        np.testing.assert_allclose(found.observed, -np.log10([0.2, 0.1]))

    def test_bins_of_zero_null_probability_are_omitted(self):
        found = quantiles(np.array([5, 3, 2]), np.array([1.0, 1e-5, 0.0, 0.0]))
        assert found.observed.tolist() == [0.0, 5.0]

    def test_unknown_null_distribution_is_refused(self, report):
        unknown = replace(report, density=replace(report.density, null=None))
        with pytest.raises(ValueError, match=r"known null distribution of relevance.*Got: ProjSe"):
            plot.qq(unknown)


@pytest.mark.parametrize("draw", [plot.manhattan, plot.qq])
class TestRefused:
    """Models without such a plot."""

    def test_model_without_a_target_is_refused(self, draw):
        model = PCA(n_components=2)
        model.learn_columns(np.random.default_rng(0).normal(size=(20, 5)))
        with pytest.raises(ValueError, match=r"Got: PCA, without a target\.\nHint: "):
            draw(model)

    def test_unfitted_model_is_refused(self, draw):
        with pytest.raises(ValueError, match=r"Got: ProjSe, which has seen none\.\nHint: "):
            draw(ProjSe())

    @pytest.mark.parametrize("what", [ProjSe, 3, "model", None])
    def test_other_objects_are_refused(self, draw, what):
        with pytest.raises(TypeError, match=r"Expected a learner, or its report\(\)\. Got: "):
            draw(what)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gene", "gene"),
        (7, "7"),
        ("$x^2$", r"\$x^2\$"),
        ("a\x1b[31m", r"a\x1b[31m"),
        ("x" * 40, "x" * 15 + "…" + "x" * 8),
    ],
)
def test_formulas_and_control_characters_are_escaped(name, shown):
    assert variable_label(name) == shown

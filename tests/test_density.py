"""The histogram of relevance by arrival in reports."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsel import MRMR, PCA, PLS, SAOLA, SOSPCA, OnlineFDR, ProjSe, SelectKBest, load, save
from streamsel.reporting.json import as_json
from streamsel.state.histogram import EDGES, RelevanceHistogram
from tests import in_parts
from tests.conformance.modes import bits
from tests.reference import density as reference
from tests.reference import target as space

N = 40


@pytest.fixture(scope="module")
def columns():
    """Return columns, some of them relevant and some constant, and a target of two columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 700))
    y = rng.normal(size=(N, 2))
    X[:, 100:110] += 3.0 * y[:, :1]
    X[:, [0, 300, 699]] = 2.0
    X[:, 5] = 1.0 - 4.0 * y[:, 0]
    return np.asfortranarray(X), y


def begun(build, y, **further):
    model = build()
    model.learn_target(y, **further)
    return model


def learnt(build, X, y, size=None, **further):
    model = begun(build, y, **further)
    for start in range(0, X.shape[1], size or X.shape[1]):
        stop = min(X.shape[1], start + (size or X.shape[1]))
        model.learn_columns(X[:, start:stop], range(start, stop))
    return model


def counts(model):
    """Return all bins of a report's histogram, after checks of its other fields."""
    density = model.report().density
    edges = EDGES[-density.edges.size :].copy()
    if edges.size == EDGES.size:
        edges[0] = 0.0
    np.testing.assert_array_equal(density.edges, edges)
    assert density.counts.dtype == np.int64
    assert density.counts[:, 0].any()
    missing = EDGES.size - density.edges.size
    return np.pad(density.counts, [(0, 0), (missing, 0)])


LEARNERS = {
    "SOSPCA": lambda: SOSPCA(n_components=3),
    "ProjSe": lambda: ProjSe(k=2),
    "ProjSe of few": lambda: ProjSe(k=2, max_candidates=4),
    "SelectKBest of few": lambda: SelectKBest(k=2, max_candidates=4),
    "PLS": lambda: PLS(n_components=2),
}


def test_edges():
    np.testing.assert_array_equal(EDGES, reference.edges())
    assert 0.03 < (EDGES[1:] / EDGES[:-1] - 1.0).min() < (EDGES[1:] / EDGES[:-1] - 1.0).max() < 0.07


@given(
    relevances=st.lists(
        st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0, np.nan, *EDGES.tolist()]),
        min_size=1,
        max_size=300,
    ),
    seed=st.integers(0, 100),
)
def test_histograms_are_equal_however_filled(relevances, seed):
    """The histogram is the same if filled in pieces, with rollbacks, from files, or by merges."""
    rng, found = np.random.default_rng(seed), RelevanceHistogram()
    relevances = np.array(relevances)
    expected = reference.density(relevances)
    values, at = np.where(np.isnan(relevances), -np.inf, relevances), 0
    while at < values.size:
        stop = min(values.size, at + int(rng.integers(1, 1 + values.size)))
        restore = found.snapshot()
        found.add(rng.random(int(rng.integers(200))), at)
        restore()
        if stop == at + 1 and values[at] >= 0.0:
            if at >= found.last_bin_end:
                found.start_bin(at)
            found.singles[max(0, np.searchsorted(EDGES[:-1], values[at], side="right") - 1)] += 1
        else:
            found.add(values[at:stop], at)
        found = RelevanceHistogram.restored(found.to_state(), stop)
        at = stop
    np.testing.assert_array_equal(found.counts, expected)
    cut = int(rng.integers(values.size + 1))
    one, other = RelevanceHistogram(), RelevanceHistogram()
    one.add(values[:cut], 0)
    other.add(values[cut:], 0)
    one.merge(other, cut, values.size - cut)
    np.testing.assert_array_equal(one.counts.sum(axis=0), expected.sum(axis=0))
    assert one.counts.shape == expected.shape
    if cut % one.bin_width == 0:
        np.testing.assert_array_equal(one.counts, expected)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("c", [1, 2])
def test_density_is_its_definition(columns, name, c):
    X, y = columns
    y = y[:, :c]
    expected = reference.density(reference.relevances(X, y))
    model = learnt(LEARNERS[name], X, y)
    np.testing.assert_array_equal(counts(model), expected)
    assert model.report().density.step == 16
    assert expected.sum() == X.shape[1] - 3


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("size", [1, 7, 64, 699])
def test_density_does_not_depend_on_blocks(columns, name, size):
    X, y = columns
    model = learnt(LEARNERS[name], X, y, size)
    np.testing.assert_array_equal(counts(model), counts(learnt(LEARNERS[name], X, y)))


@pytest.mark.parametrize("name", LEARNERS)
def test_column_by_column(columns, name):
    X, y = columns
    model = begun(LEARNERS[name], y[:, 0])
    for j, x in enumerate(np.ascontiguousarray(X.T)):
        model.learn_column(j, x)
    np.testing.assert_array_equal(counts(model), counts(learnt(LEARNERS[name], X, y[:, 0])))


def test_threads_copies_and_files(columns, tmp_path):
    X, y = columns
    model = learnt(lambda: SOSPCA(n_components=3, n_jobs=2), X[:, :400], y)
    expected = reference.density(reference.relevances(X[:, :400], y))
    np.testing.assert_array_equal(counts(model), expected)
    save(model, tmp_path / "model")
    for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):  # noqa: S301
        np.testing.assert_array_equal(counts(copy), expected)
        copy.learn_columns(X[:, 400:], range(400, 700))
        assert bits(copy) == bits(learnt(LEARNERS["SOSPCA"], X, y))
    np.testing.assert_array_equal(counts(model), expected)


def test_a_column_alone_does_not_change_a_copy(columns):
    X, y = columns
    model = learnt(LEARNERS["SOSPCA"], X, y[:, 0])
    other = begun(LEARNERS["PLS"], y[:, 0])
    other.learn_columns(X)
    shares = begun(LEARNERS["PLS"], y[:, 0])
    shares.learn_from(other)
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    before = counts(shares), counts(copy)
    for one in (model, other):
        one.learn_column("new", np.random.default_rng(1).normal(size=N))
    for found, was in zip((shares, copy), before, strict=True):
        np.testing.assert_array_equal(counts(found), was)
    assert counts(model).sum() == counts(other).sum() == before[0].sum() + 1


def test_no_density_for_another_target(columns):
    X, y = columns
    other = learnt(LEARNERS["PLS"], X, y[:, 0])
    model = begun(LEARNERS["PLS"], y[:, 1])
    model.learn_from(other)
    assert model.report().density is None
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert copy.report().density is None
    copy.learn_column("new", X[:, 5])
    assert copy.report().density is None
    merged = learnt(LEARNERS["PLS"], X[:, :1], y[:, 1])
    merged.merge(model)
    assert merged.report().density is None


def test_density_in_parts(columns):
    X, y = columns
    rng, model = np.random.default_rng(0), begun(lambda: MRMR(k=3, max_candidates=6, exact=True), y)
    found = in_parts.learn(model, in_parts.streams(X, [0, 200, 201, 700]), rng)
    expected = reference.density(reference.relevances(X, y))
    np.testing.assert_array_equal(counts(found).sum(axis=0), expected.sum(axis=0))


def test_further_passes_are_not_counted(columns):
    X, y = columns
    model = learnt(lambda: MRMR(k=3, max_candidates=6, exact=True), X, y)
    assert model.n_passes > 1
    expected = reference.density(reference.relevances(X, y))
    np.testing.assert_array_equal(counts(model), expected)


def test_density_with_covariates(columns):
    X, y = columns
    z = np.random.default_rng(1).normal(size=N)
    model = learnt(LEARNERS["ProjSe"], X, y[:, 0], covariates=z)
    Z = np.column_stack([np.ones(N), z])
    left, target = (part - Z @ np.linalg.lstsq(Z, part)[0] for part in (X, y[:, 0]))
    left[:, np.ptp(X, axis=0) == 0.0] = 0.0
    expected = reference.density(reference.relevances(left, target))
    np.testing.assert_array_equal(counts(model), expected)


def test_with_a_kernel(columns):
    """With a kernel the histogram is of relevance in feature space, without a null distribution."""
    X, y = columns
    model = learnt(lambda: ProjSe(k=2, kernel="rbf"), X, y)
    shown = model._state.relevance()
    expected = reference.density(np.where(shown < 0.0, np.nan, shown))
    np.testing.assert_array_equal(counts(model), expected)
    assert model.report().density.null is None


@pytest.mark.parametrize("c", [1, 2])
def test_noise_follows_the_null_distribution(c):
    """Counts of noise columns above each edge follow the null distribution."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 5000)), rng.normal(size=(N, c))
    density = learnt(LEARNERS["SOSPCA"], X, y).report().density
    above = density.counts.sum(axis=0)[::-1].cumsum()[::-1]
    expected = 5000 * density.null[:-1]
    assert (np.abs(above - expected)[1:] < 4.0 * np.sqrt(expected[1:]) + 1.0).all()
    assert (np.diff(density.null) <= 0.0).all()
    assert density.null[-1] == 0.0


def test_size_is_constant():
    rng = np.random.default_rng(0)
    h, relevance = RelevanceHistogram(), rng.random(1 << 17)
    for start in range(0, 1 << 22, 1 << 17):
        h.add(relevance, start)
    assert h.counts.shape == (64, EDGES.size - 1)
    assert h.bin_width == 1 << 16
    np.testing.assert_array_equal(h.counts.sum(axis=1), 1 << 16)


# ------------------------------------------------------------------------------------------- rows


def test_density_on_rows_is_of_tracked_variables(columns):
    X, y = columns
    rows = ProjSe(k=2)
    rows.learn_many(X[:, :30], y[:, 0])
    expected = reference.density(reference.relevances(X[:, :30], y[:, :1]))
    np.testing.assert_array_equal(counts(rows), expected)
    goes_on = learnt(LEARNERS["ProjSe"], X[:25], y[:25])
    goes_on.learn_many(X[25:], y[25:])
    expected = reference.density(reference.relevances(X, y))
    np.testing.assert_array_equal(counts(goes_on), expected)
    assert [row["arrival"] for row in goes_on.report().results] == goes_on.selected


def test_no_density_after_evictions_on_rows(columns):
    X, y = columns
    model = ProjSe(k=2, max_features=5, grace_period=1)
    model.learn_many(X[:, :30], y[:, 0])
    assert model.report().density is None
    assert {row["arrival"] for row in model.report().results} == {None}


def test_windows_of_rows(columns):
    X, y = columns
    model = OnlineFDR(window_size=20)
    model.learn_many(X[:15, :30], y[:15, 0])
    assert model.report().density is None
    model.learn_many(X[15:, :30], y[15:, 0])
    expected = reference.density(reference.relevances(X[20:, :30], y[20:, :1]))
    np.testing.assert_array_equal(counts(model), expected)


# ----------------------------------------------------------------------------------------- reports


def test_without_a_target_and_without_columns(columns):
    X, y = columns
    pca = PCA(n_components=2)
    pca.learn_columns(X)
    assert pca.report().density is None
    assert begun(LEARNERS["SOSPCA"], y).report().density is None
    assert ProjSe(k=2).report().density is None
    assert learnt(LEARNERS["SOSPCA"], np.ones((N, 3)), y).report().density is None


@pytest.mark.parametrize("size", [None, 50])
@pytest.mark.parametrize("name", ["ProjSe", "ProjSe of few", "SelectKBest of few"])
def test_arrivals_of_selected_columns(columns, name, size):
    X, y = columns
    order = np.random.default_rng(2).permutation(X.shape[1])
    model = begun(LEARNERS[name], y)
    for start in range(0, 700, size or 700):
        part = order[start : start + (size or 700)]
        model.learn_columns(X[:, part], [f"v{j}" for j in part])
    arrivals = [int(np.flatnonzero(order == int(name[1:]))[0]) for name in model.selected]
    assert [row["arrival"] for row in model.report().results] == arrivals


def test_impossible_states_are_refused(columns):
    X, y = columns
    model = learnt(LEARNERS["SOSPCA"], X, y)
    good = model._get_state()
    assert good["summary"]["histogram"]["counts"].dtype == np.uint8
    more = good["summary"]["histogram"]["counts"].copy()
    more[:, -1] = 16
    counts = good["summary"]["histogram"]["counts"]
    for name, value in (
        *(("first", first) for first in (-1, 0, 500, None)),
        *(("counts", bad) for bad in (more, counts[1:], counts[:, 1:], counts * 1.0, None)),
        *(("counts", bad) for bad in (counts.astype(np.uint64) - 2**63, counts.tolist())),
    ):
        state = pickle.loads(pickle.dumps(good))  # noqa: S301
        state["summary"]["histogram"][name] = value
        with pytest.raises(ValueError, match="Expected"):
            SOSPCA(n_components=3)._set_state(state)


def test_density_in_json(columns):
    """JSON has one line per arrival bin."""
    X, y = columns
    report = learnt(LEARNERS["ProjSe"], X, y).report()
    text = as_json(report.as_dict(), indent=2)
    decoded = json.loads(text)["density"]
    density = report.density
    assert decoded["step"] == density.step
    for name in ("counts", "edges", "null"):
        np.testing.assert_array_equal(decoded[name], getattr(density, name))
    assert len(text.splitlines()) < 150
    assert as_json({"names": ["[\n1,\n2]", 1]}, indent=2).count("\n") == 5


# ------------------------------------------------------------------ alternatives, exclusions


@pytest.fixture(scope="module")
def copies():
    """Return columns with near copies of a relevant one, of either sign."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 300))
    y = X[:, 20] + X[:, 200] + 0.5 * rng.normal(size=N)
    for k, j in enumerate((5, 60, 110, 160, 250)):
        X[:, j] = (-1.0) ** k * X[:, 20] + (0.1 + 0.1 * k) * rng.normal(size=N)
    X[:, [7, 8]] = 1.0
    return X, y


def alternatives(X, chosen, most=3):
    """Return the alternatives of selected columns by definition, from all columns."""
    varies = [j for j in range(X.shape[1]) if np.ptp(X[:, j]) and j not in chosen]
    found = {}
    for name in chosen:
        r = {j: space.correlation(X[:, j], X[:, name]) for j in varies}
        near = sorted((j for j in varies if abs(r[j]) >= 0.8), key=lambda j: -abs(r[j]))
        found[name] = [(j, r[j]) for j in near[:most]]
    return found


@pytest.mark.parametrize("on_rows", [False, True])
def test_alternatives(copies, on_rows):
    X, y = copies
    model = MRMR(k=2)
    if on_rows:
        model.learn_many(X, y)
    else:
        model = learnt(lambda: MRMR(k=2), X, y)
    found, expected = model.report().alternatives, alternatives(X, model.selected)
    assert max(map(len, expected.values())) == 3
    assert {r > 0.0 for others in expected.values() for _, r in others} == {False, True}
    assert [*found] == model.selected
    for name, others in expected.items():
        assert [one for one, _ in found[name]] == [one for one, _ in others]
        np.testing.assert_allclose([r for _, r in found[name]], [r for _, r in others], rtol=1e-9)
    decoded = json.loads(json.dumps(model.report().as_dict()))["alternatives"]
    assert [(row["name"], len(row["like"])) for row in decoded] == [
        (name, len(others)) for name, others in found.items()
    ]


def test_alternatives_of_a_pool_are_its_columns(copies):
    X, y = copies
    model = learnt(lambda: MRMR(k=2, max_candidates=4), X, y)
    found = model.report().alternatives
    listed = {name for others in found.values() for name, _ in others}
    assert listed
    assert listed <= {*model._state.names} - {*model.selected}


@pytest.mark.parametrize(
    "build",
    [lambda: ProjSe(k=2), lambda: SOSPCA(n_components=2), SAOLA],
    ids=["ProjSe", "SOSPCA", "SAOLA"],
)
def test_no_alternatives_without_stored_observations(copies, build):
    """Alternatives are None if observations are not stored, or only those of selected columns."""
    assert learnt(build, *copies).report().alternatives is None


SELECTORS = {
    "all": lambda: ProjSe(k=3),
    "few": lambda: ProjSe(k=3, max_candidates=6),
    "joint": lambda: MRMR(k=3),
    "joint, few": lambda: MRMR(k=3, max_candidates=6),
    "on arrival": SAOLA,
    "more than there are": lambda: SelectKBest(k=1000),
    "by fdr": lambda: SelectKBest(fdr=0.1),
}


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("with_covariate", [False, True])
def test_all_excluded_columns_are_reported(copies, name, with_covariate):
    X, y = copies
    z = X[:, 7] + X[:, 9] if with_covariate else None
    model = learnt(SELECTORS[name], X, y, covariates=z)
    report, chosen = model.report(), model.selected
    assert sum(report.excluded.values()) == 300 - len(chosen)
    assert all(type(n) is int and n > 0 for n in report.excluded.values())
    if "more" not in name:
        assert report.excluded["do not vary"] == 2
    given = report.excluded.get("explained by the covariates", 0)
    assert given == with_covariate * (name != "more than there are" or 9 not in chosen)
    left = np.nan_to_num(model._state.relevance(), neginf=-1.0) if name == "all" else None
    if left is not None:
        others = np.delete(left, chosen)
        floor = report.noise_floor
        assert report.excluded["below the noise floor"] == ((others >= 0) & (others < floor)).sum()
        assert report.excluded["relevant, but not among the k"] == (others >= floor).sum()


def test_near_copies_are_distinguished(copies):
    X, y = copies
    model = learnt(lambda: MRMR(k=2), X, y)
    near = {name for others in alternatives(X, model.selected, 300).values() for name, _ in others}
    relevances = reference.relevances(X, y)
    above = [name for name in near if relevances[name] >= model.noise_floor()]
    assert 3 < len(above) < len(near)
    assert model.report().excluded["nearly identical to a selected column"] == len(above)


def test_estimated_counts_are_close(copies):
    """Estimated counts of excluded columns are close to the exact ones."""
    X, y = copies
    exact, about = (
        learnt(SELECTORS[name], X, y).report().excluded["below the noise floor"]
        for name in ("all", "few")
    )
    assert abs(exact - about) <= 3


def test_excluded_counts_without_a_target(copies):
    X, _ = copies
    model = learnt(lambda: ProjSe(k=3), X, None)
    assert model.report().excluded == {"do not vary": 2, "not selected": 295}
    assert ProjSe(k=3).report().excluded == {}
    pca = PCA(n_components=2)
    pca.learn_columns(X)
    assert pca.report().excluded == {}


@pytest.mark.parametrize("learner", [lambda: SelectKBest(k=3), lambda: MRMR(k=3), SAOLA])
def test_relevance_at_the_noise_floor_is_not_above_it(learner):
    """A relevance equal to the noise floor is not above it: with two rows all relevances are 1."""
    X = np.random.default_rng(0).normal(size=(2, 9))
    report = learnt(learner, X, np.array([0.0, 1.0])).report()
    assert report.noise_floor == 1.0
    assert not any(row["above_noise"] for row in report.results)
    assert not any("relevant" in why or "above" in why for why in report.excluded)

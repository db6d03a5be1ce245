"""Every plot of every learner is drawn, or refused with a hint at those that it has."""

import re

import numpy as np
import pytest

from streamsel import plot
from tests.conformance.modes import CLASSES, REGISTERED, Mode, data, learnt

SELECTORS = {entry.name for entry in REGISTERED if entry.kind == "selector"}
EXTRACTORS = {entry.name for entry in REGISTERED} - SELECTORS
# Methods that compare new rows with landmarks, or derive weights from names.
WITHOUT_LOADINGS = {"KernelPCA", "LaplacianEigenmaps", "RandomProjection", "RandomFourier"}
WITHOUT_SCREE = {
    *("LaplacianEigenmaps", "RandomProjection", "RandomFourier"),
    # Methods whose codes have variance 1.
    *("SparsePCA", "RobustPCA", "ProbabilisticPCA"),
}
TARGETED = {entry.name for entry in REGISTERED if CLASSES[entry.name]._is_supervised}
DRAWN = {
    "manhattan": TARGETED,
    "qq": TARGETED,
    "selection_path": SELECTORS,
    "heatmap": SELECTORS,
    "scree": EXTRACTORS - WITHOUT_SCREE,
    "loadings": EXTRACTORS - WITHOUT_LOADINGS,
    "scatter": EXTRACTORS,
}
REFUSED = re.compile(r"Expected .*\. Got: .*\.\nHint: .*\.", re.DOTALL)


@pytest.fixture(scope="module", params=REGISTERED, ids=lambda entry: entry.name)
def learned(request):
    """Return a learner in one of its modes that has learnt, and its columns."""
    name = request.param.name
    cls = CLASSES[name]
    mode = Mode(name, next(iter(cls._unit_test_params())), cls._is_supervised)
    X, y = data(mode)
    return learnt(mode, X, y), X


@pytest.mark.parametrize("kind", DRAWN)
def test_plot_is_drawn_or_refused(learned, kind):
    model, X = learned
    draw = getattr(plot, kind)
    further = (X,) if kind == "heatmap" else ()
    if type(model).__name__ in DRAWN[kind]:
        ax = draw(model, *further)
        assert ax.get_label()
        assert ax.has_data()
        assert ax.get_xlabel() or kind == "heatmap"
        return
    with pytest.raises((TypeError, ValueError)) as refused:
        draw(model, *further)
    assert REFUSED.fullmatch(str(refused.value)), str(refused.value)


def test_report_suffices_for_plots_without_rows(learned):
    """The plots of a report equal those of the model."""
    model, _ = learned
    name = type(model).__name__
    for kind in ("selection_path", "scree", "loadings"):
        # Some plots need coefficients or embeddings, which reports do not contain.
        if name not in DRAWN[kind] or (kind, name) == ("selection_path", "Lasso"):
            continue
        if kind == "scree" and (np.array([*model.relevance.values()]) == 1.0).all():
            continue
        draw = getattr(plot, kind)
        drawn = [
            [np.asarray(line.get_data(), dtype=float).tolist() for line in ax.lines]
            for ax in (draw(model), draw(model.report()))
        ]
        assert drawn[0] == drawn[1]


@pytest.mark.parametrize("name", ["ProjSe", "SOSPCA"])
def test_relevances_of_models_learnt_on_rows(name):
    mode = Mode(name, next(iter(CLASSES[name]._unit_test_params())), has_target=True)
    X, y = data(mode, n=60, p=12)
    model = mode.cls(**mode.params)
    model.learn_many(X, y)
    ax = plot.manhattan(model)
    assert ax.get_xlim() == (0, 12)
    assert plot.qq(model).has_data()


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("name", ["ProjSe", "PCA"])
def test_unfitted_models_are_refused(kind, name):
    further = (np.zeros((3, 2)),) if kind == "heatmap" else ()
    with pytest.raises((TypeError, ValueError)) as refused:
        getattr(plot, kind)(CLASSES[name](), *further)
    assert REFUSED.fullmatch(str(refused.value)), str(refused.value)


@pytest.mark.parametrize("kind", DRAWN)
def test_other_objects_are_refused(kind):
    further = (np.zeros((3, 2)),) if kind == "heatmap" else ()
    with pytest.raises(TypeError, match=r"Expected a learner, or its report\(\)\. Got: list"):
        getattr(plot, kind)([], *further)


def test_array_as_axes_is_refused(report):
    with pytest.raises(TypeError, match=r"Expected the axes of matplotlib as ax\. Got: ndarray"):
        plot.manhattan(report, np.zeros((3, 2)))

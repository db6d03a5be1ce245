"""The experiments with PCA and related extractors: planted structure, and a short run."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

PAPERS = Path(__file__).parents[1] / "demos" / "papers"


@pytest.fixture
def papers(monkeypatch):
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PAPERS))
    yield
    for name in set(sys.modules) - before:
        if str(PAPERS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.slow
@pytest.mark.usefixtures("papers")
def test_a_quick_run_needs_no_files(monkeypatch, tmp_path):
    import gram_family

    monkeypatch.setattr(gram_family, "N_PLANTED", 60)
    monkeypatch.setattr(gram_family, "N_TEST", 60)
    options = ["--quick", "--data", "nowhere", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["gram_family.py", *options])
    gram_family.main()
    text = (tmp_path / "gram-family.md").read_text()
    assert "low-variance signal, 100 columns (60 × 100)" in text
    assert "(gram-family.svg)" in text
    assert (tmp_path / "gram-family.svg").is_file()
    assert (tmp_path / "gram-family.csv").is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("papers")
def test_signals_have_low_or_high_variance():
    import gram_family

    for plan, pca_finds_it in zip(gram_family.PLANS, (False, False, True), strict=True):
        errors = {(row["method"], row["q"]): row["LDA"] for row in gram_family.work({}, 0, plan, 0)}
        assert (errors["PCA", 10] < 15.0) is pca_finds_it
        assert (errors["PCA", 10] > 40.0) is not pca_finds_it
        assert errors["Discriminant", 1] < 15.0


@pytest.mark.usefixtures("papers")
def test_leakage_audits_find_a_property_but_not_in_noise():
    import private_features

    images, digits = load_digits(return_X_y=True)
    images, odd = images[:600] / 16.0, digits[:600] % 2
    found = private_features.accuracy(images[:400], odd[:400], images[400:], odd[400:])
    assert all(value > 80.0 for value in found.values())
    noise = np.random.default_rng(0).standard_normal(images.shape)
    found = private_features.accuracy(noise[:400], odd[:400], noise[400:], odd[400:])
    assert all(35.0 < value < 65.0 for value in found.values())


@pytest.mark.usefixtures("papers")
def test_robust_components_resist_gross_errors():
    import factorisations

    found = {
        method: factorisations.recovery(factorisations.GROSS, method, 0, 100)[0]
        for method in ("PCA", "RobustPCA")
    }
    assert found["RobustPCA"]["found"] > 95.0
    assert found["PCA"]["found"] < 80.0
    assert found["PCA"]["zeros"] == 0.0


@pytest.mark.usefixtures("papers")
def test_explained_variance_of_rows():
    import pca_regression

    class Oracle:
        """Model that predicts twice the feature and learns nothing."""

        def predict_one(self, x):
            return 2.0 * x[0]

        def learn_one(self, x, y):
            pass

    rng = np.random.default_rng(0)
    B = rng.standard_normal((50, 1))
    assert pca_regression.explained(Oracle(), B, 2.0 * B[:, 0]) == pytest.approx(100.0)
    assert np.isnan(pca_regression.explained(Oracle(), 1e6 * B, B[:, 0]))
    A, stored, B, coming = pca_regression.halves({}, "diabetes, squares", 0, 100)
    np.testing.assert_allclose(A.std(axis=0), 1.0)
    assert stored.std() == pytest.approx(1.0)
    assert A.shape == B.shape == (100, 65)
    assert coming.shape == (100,)

"""PCA, then linear regression: eight components of 100 channels as the inputs of a model.

python demos/pca_then_regression.py [SEED]

A spectrometer measures mixtures of eight substances in 100 channels; the target is the amount of
one substance. The bands of the substances overlap, so the channels are nearly redundant, and linear
regression by gradient steps converges slowly. PCA computes eight components of 300 stored spectra,
one column per channel. Then 600 spectra come row by row; each is predicted first and learnt then.
From row 301 on all bands are shifted by a hundredth of the spectrum, as in an instrument that gets
warm. PCA follows, with `fading_factor=0.005`.

The script compares PCA with:

- PCA that starts without the stored spectra;
- the current components, recomputed at every row, instead of the snapshot `in_use`;
- RidgeComponents and SOSPCA, which use the target;
- all channels, with a tenth of River's default step, at which they would diverge.

A scaler and River's linear regression follow each of them. Another seed gives other bands.
"""

import sys
import time
from typing import Any

import numpy as np
from river import base, linear_model, optim, preprocessing

from streamsel import PCA, SOSPCA, RidgeComponents

N_CHANNELS, N_STORED, N_ROWS, CHANGE, REPORT_EVERY = 100, 300, 600, 300, 60
CHANNELS = [f"channel {i}" for i in range(N_CHANNELS)]
PARAMETERS = {"n_components": 8, "fading_factor": 0.005, "refresh_factor": 1.1}


def measure(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the spectra, stored ones first, and the amounts of one substance."""
    centres, widths = rng.uniform(0.0, 1.0, 8), rng.uniform(0.05, 0.2, 8)
    amounts = rng.gamma(3.0, 1.0, size=(N_STORED + N_ROWS, 8))
    positions = np.linspace(0.0, 1.0, N_CHANNELS)
    cold, warm = (
        np.exp(-0.5 * ((positions - centres[:, None] - shift) / widths[:, None]) ** 2)
        for shift in (0.0, 0.01)
    )
    spectra = 0.05 * rng.normal(size=(len(amounts), N_CHANNELS)) + amounts @ cold
    spectra[N_STORED + CHANGE :] += amounts[N_STORED + CHANGE :] @ (warm - cold)
    return spectra, amounts[:, 2]


class CurrentPCA(base.Transformer):
    """PCA that transforms by its current components instead of the snapshot `in_use`."""

    def __init__(self, stored: np.ndarray) -> None:
        self.pca = PCA(**PARAMETERS)
        self.pca.learn_columns(stored, CHANNELS)
        self.n, self.mean = len(stored), stored.mean(axis=0)
        self.previous: np.ndarray | None = None
        self.n_rotations = 0

    def learn_one(self, x: dict[Any, float]) -> None:
        self.pca.learn_one(x)
        self.n += 1
        self.mean = self.mean + (np.array([x[name] for name in CHANNELS]) - self.mean) / self.n

    def transform_one(self, x: dict[Any, float]) -> dict[str, float]:
        weights = self.pca.loadings
        loadings = np.array([list(weights[name].values()) for name in CHANNELS])
        if self.previous is not None:
            cosines = (loadings * self.previous).sum(axis=0)
            self.n_rotations += bool(np.any(cosines < np.cos(np.pi / 6)))
        self.previous = loadings
        values = (np.array([x[name] for name in CHANNELS]) - self.mean) @ loadings
        return dict(zip(self.pca.components, values.tolist(), strict=True))


def fitted_pipeline(
    transformer: Any, rows: list[dict[str, float]], y: list[float], **parameters: Any
) -> Any:
    """Return a pipeline whose scaler and regression have learnt the stored rows."""
    scaler = preprocessing.StandardScaler()
    regression = linear_model.LinearRegression(**parameters)
    for x, target in zip(rows, y, strict=True):
        z = x if transformer is None else transformer.transform_one(x)
        scaler.learn_one(z)
        regression.learn_one(scaler.transform_one(z), target)
    if transformer is None:
        return scaler | regression
    return transformer | scaler | regression


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    X, y = measure(np.random.default_rng(seed))
    stored, later = X[:N_STORED], X[N_STORED:].tolist()
    stored_rows = [dict(zip(CHANNELS, spectrum, strict=True)) for spectrum in stored.tolist()]
    stored_y, later_y = y[:N_STORED].tolist(), y[N_STORED:].tolist()

    pca, ridge, sospca = PCA(**PARAMETERS), RidgeComponents(**PARAMETERS), SOSPCA(**PARAMETERS)
    pca.learn_columns(stored, CHANNELS)
    for model in (ridge, sospca):
        model.learn_target(stored_y)
        model.learn_columns(stored, CHANNELS)
    share = pca.explained_variance_ratio.sum()
    print(f"eight components explain {share:.2%} of the variance of {N_CHANNELS} channels\n")

    current = CurrentPCA(stored)
    scaler, regression = preprocessing.StandardScaler(), linear_model.LinearRegression()
    pipelines = {
        "PCA": fitted_pipeline(pca, stored_rows, stored_y),
        "cold start": PCA(**PARAMETERS) | scaler | regression,
        "current": fitted_pipeline(current, stored_rows, stored_y),
        "Ridge": fitted_pipeline(ridge, stored_rows, stored_y),
        "SOSPCA": fitted_pipeline(sospca, stored_rows, stored_y),
        "all channels": fitted_pipeline(None, stored_rows, stored_y, optimizer=optim.SGD(0.001)),
    }
    print(
        f"mean absolute error of {REPORT_EVERY} rows; the standard deviation of the target is "
        f"{np.std(later_y):.2f}\n"
    )
    print("   row   " + "   ".join(f"{name:>12}" for name in pipelines))
    errors, seconds = dict.fromkeys(pipelines, 0.0), dict.fromkeys(pipelines, 0.0)
    for row, (spectrum, amount) in enumerate(zip(later, later_y, strict=True), start=1):
        x = dict(zip(CHANNELS, spectrum, strict=True))
        for name, pipeline in pipelines.items():
            start = time.perf_counter()
            errors[name] += abs(amount - pipeline.predict_one(x))
            pipeline.learn_one(x, amount)
            seconds[name] += time.perf_counter() - start
        if row % REPORT_EVERY == 0:
            cells = "   ".join(f"{error / REPORT_EVERY:>12.3f}" for error in errors.values())
            print(f"  {row:>4}   {cells}")
            errors = dict.fromkeys(pipelines, 0.0)
        if row == CHANGE:
            print("         from here on all bands are shifted")
    print("\nrows/s   " + "   ".join(f"{N_ROWS / taken:>12,.0f}" for taken in seconds.values()))
    print(f"\nrows at which a current component rotated by at least 30°: {current.n_rotations}")


if __name__ == "__main__":
    main()

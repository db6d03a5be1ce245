"""PCA, then linear regression: a hundred channels of a spectrum become eight inputs of a model.

A spectrometer measures mixtures of eight substances in 100 channels. Their bands overlap, so that
channels say much the same, which linear regression by gradient steps takes badly. In the warehouse
lie 300 spectra, a column a channel, with the amount of one substance; eight components are made of
them. Another 600 come row by row, are answered first and learnt then. From row 301 on every band
has moved by a hundredth of the spectrum, as an instrument does that gets warm; a model that forgets
a two-hundredth at every row follows.

Beside the components of columns: those of a model that has never seen the warehouse; the components
as they are now, at every row, instead of those that stand; those of RidgeComponents and of SOSPCA,
which look at the target; and all channels, with steps a tenth as large, for at River's default they
diverge. Behind each stand a scaler and River's linear regression. Another seed draws other bands.
"""

import sys
import time
from typing import Any

import numpy as np
from river import base, linear_model, optim, preprocessing

from streamsel import PCA, SOSPCA, RidgeComponents

N_CHANNELS, N_STORED, N_ROWS, CHANGE, EVERY = 100, 300, 600, 300, 60
CHANNELS = [f"channel {i}" for i in range(N_CHANNELS)]
RULES = {"n_components": 8, "fading_factor": 0.005, "refresh_factor": 1.1}


def measure(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return spectra, stored ones and those to come, and the amounts of one substance."""
    centres, widths = rng.uniform(0.0, 1.0, 8), rng.uniform(0.05, 0.2, 8)
    amounts = rng.gamma(3.0, 1.0, size=(N_STORED + N_ROWS, 8))
    at = np.linspace(0.0, 1.0, N_CHANNELS)
    cold, warm = (
        np.exp(-0.5 * ((at - centres[:, None] - moved) / widths[:, None]) ** 2)
        for moved in (0.0, 0.01)
    )
    spectra = 0.05 * rng.normal(size=(len(amounts), N_CHANNELS)) + amounts @ cold
    spectra[N_STORED + CHANGE :] += amounts[N_STORED + CHANGE :] @ (warm - cold)
    return spectra, amounts[:, 2]


class AsOfNow(base.Transformer):
    """PCA with what it finds now, at every row, in the place of what stands."""

    def __init__(self, stored: np.ndarray) -> None:
        self.pca = PCA(**RULES)
        self.pca.learn_columns(stored, CHANNELS)
        self.n, self.mean = len(stored), stored.mean(axis=0)
        self.before: np.ndarray | None = None
        self.turned = 0

    def learn_one(self, x: dict[Any, float]) -> None:
        self.pca.learn_one(x)
        self.n += 1
        self.mean = self.mean + (np.array([x[name] for name in CHANNELS]) - self.mean) / self.n

    def transform_one(self, x: dict[Any, float]) -> dict[str, float]:
        loadings = self.pca.loadings
        found = np.array([list(loadings[name].values()) for name in CHANNELS])
        if self.before is not None:
            self.turned += bool(np.any((found * self.before).sum(axis=0) < np.cos(np.pi / 6)))
        self.before = found
        values = (np.array([x[name] for name in CHANNELS]) - self.mean) @ found
        return dict(zip(self.pca.components, values.tolist(), strict=True))


def warmed(front: Any, rows: list[dict[str, float]], y: list[float], **steps: Any) -> Any:
    """Return a pipeline whose model has learnt the rows of the warehouse."""
    scaler = preprocessing.StandardScaler()
    regression = linear_model.LinearRegression(**steps)
    for x, target in zip(rows, y, strict=True):
        z = x if front is None else front.transform_one(x)
        scaler.learn_one(z)
        regression.learn_one(scaler.transform_one(z), target)
    return scaler | regression if front is None else front | scaler | regression


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    X, y = measure(np.random.default_rng(seed))
    stored, coming = X[:N_STORED], X[N_STORED:].tolist()
    history = [dict(zip(CHANNELS, spectrum, strict=True)) for spectrum in stored.tolist()]
    amounts, asked = y[:N_STORED].tolist(), y[N_STORED:].tolist()

    learnt = {}
    for method in (PCA, RidgeComponents, SOSPCA):
        learnt[method] = method(**RULES)
        if method is not PCA:
            learnt[method].learn_target(amounts)
        learnt[method].learn_columns(stored, CHANNELS)
    share = learnt[PCA].explained_variance_ratio.sum()
    print(f"eight components have {100 * share:.2f} % of the variance of {N_CHANNELS} channels\n")

    of_now = AsOfNow(stored)
    scaler, cold = preprocessing.StandardScaler(), linear_model.LinearRegression()
    pipelines = {
        "PCA": warmed(learnt[PCA], history, amounts),
        "from nothing": PCA(**RULES) | scaler | cold,
        "as of now": warmed(of_now, history, amounts),
        "Ridge": warmed(learnt[RidgeComponents], history, amounts),
        "SOSPCA": warmed(learnt[SOSPCA], history, amounts),
        "all channels": warmed(None, history, amounts, optimizer=optim.SGD(0.001)),
    }
    print(f"mean absolute error of {EVERY} rows; the amount varies by {np.std(asked):.2f}\n")
    print("   row   " + "   ".join(f"{name:>12}" for name in pipelines))
    errors, seconds = dict.fromkeys(pipelines, 0.0), dict.fromkeys(pipelines, 0.0)
    for row, (spectrum, amount) in enumerate(zip(coming, asked, strict=True), start=1):
        x = dict(zip(CHANNELS, spectrum, strict=True))
        for name, pipeline in pipelines.items():
            start = time.perf_counter()
            errors[name] += abs(amount - pipeline.predict_one(x))
            pipeline.learn_one(x, amount)
            seconds[name] += time.perf_counter() - start
        if row % EVERY == 0:
            cells = "   ".join(f"{error / EVERY:>12.3f}" for error in errors.values())
            print(f"  {row:>4}   {cells}")
            errors = dict.fromkeys(pipelines, 0.0)
        if row == CHANGE:
            print("         all bands move")
    print("\nrows/s   " + "   ".join(f"{N_ROWS / taken:>12,.0f}" for taken in seconds.values()))
    print(f"\nrows at which a component of now turned by 30 degrees or more: {of_now.turned}")


if __name__ == "__main__":
    main()

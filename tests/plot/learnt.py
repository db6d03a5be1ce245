"""Reports to draw: of models that have learnt, and with a density that is built from relevances."""

from dataclasses import replace

import numpy as np

from streamsel.learner.noise import chance
from streamsel.learner.report import Density

BINS, ARRIVALS = 180, 64


def density_of(relevances, n, rank):
    """Count relevances, in order of arrival, as a model that learns would."""
    relevances = np.asarray(relevances)
    edges = np.append(0.0, np.geomspace(1e-3, 1.0, BINS))
    step = 1
    while step * ARRIVALS < relevances.size:
        step *= 2
    arrivals = np.arange(relevances.size) // step
    counts, *_ = np.histogram2d(arrivals, relevances, [np.arange(arrivals.max() + 2) - 0.5, edges])
    return Density(counts.astype(np.int64), step, edges, chance(edges, n, rank))


def told(model, relevances, rank=1):
    """Return the report of a model, with where its columns lie and when the chosen came."""
    report = model.report()
    names = range(len(relevances))
    found = [
        row | {"arrival": row["name"] if row["name"] in names else None} for row in report.found
    ]
    return replace(report, found=found, density=density_of(relevances, report.rows, rank))


def correlations(X, y):
    """Return |Pearson correlation| of every column with y; 0 of one that does not vary."""
    X, y = X - X.mean(axis=0), y - y.mean()
    length = np.linalg.norm(X, axis=0)
    return np.abs(X.T @ y) / np.where(length > 0.0, length, 1.0) / np.linalg.norm(y)

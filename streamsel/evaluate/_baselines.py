"""Baselines of a selection: random columns, and random probes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from streamsel import params
from streamsel.data.names import probe_number
from streamsel.serialization.json_values import is_iterable_collection


class RandomColumns:
    """Uniform random sample of the names of a stream.

    Parameters
    ----------
    max_size
        Size of the sample.
    seed
        Random seed; the sample does not depend on how columns are cut into blocks.
    """

    def __init__(self, max_size: int, seed: Any) -> None:
        self._max_size, self._rng = max_size, np.random.default_rng(seed)
        self._keys = np.empty(0)
        self._names: list[Hashable] = []

    def record(self, names: Sequence[Hashable]) -> None:
        """Sample the next columns."""
        keys = self._rng.random(len(names))
        full = len(self._names) == self._max_size
        sampled = np.flatnonzero(keys < self._keys[-1]) if full else np.arange(len(keys))
        keys = np.concatenate([self._keys, keys[sampled]])
        candidates = self._names + [names[j] for j in sampled.tolist()]
        order = np.argsort(keys, kind="stable")[: self._max_size]
        self._keys, self._names = keys[order], [candidates[j] for j in order.tolist()]

    def sample(self, n: int) -> list[Hashable]:
        """Return n names of the sample, or as many as there are."""
        return self._names[:n]


def selected_before_probes(selected: Iterable[Hashable], n_probes: int = 1) -> list[Hashable]:
    """Return the names selected before a number of random probes, without the probes.

    A selector that reads [`with_probes`](stream.md#streamsel.stream.with_probes) selects a probe
    when no remaining column is better than chance, *given* the earlier selections. With as many
    probes as noise columns, each selected noise column is a probe with probability 1/2: the number
    of probes estimates the number of false selections among the others, up to any position in the
    order.

    Parameters
    ----------
    selected
        Names in the order in which they were selected: `model.selected`.
    n_probes
        The number of probes that end the list, at least 1. If there are fewer, all of `selected`
        counts; the selection was then too short.

    Returns
    -------
    The names up to the last of these probes, without the probes.

    Raises
    ------
    ValueError
        If `n_probes` is below 1.

    See Also
    --------
    selection_stability : whether the selection is the same on other data.

    Notes
    -----
    If noise columns are distributed like probes, the list contains on average at most
    `n_probes / per_column` false selections. This is an average: with one probe per column and
    `n_probes=1`, pure noise leaves nothing in half of all cases, and one, two or more columns in
    the others. A larger `per_column` keeps fewer false selections, and fewer true ones too.

    It is an estimate without a guarantee on the share of false selections. The selector of
    Machkour, Muma and Palomar[^1], on which this is modelled, has one: it repeats the competition
    many times with new probes and keeps the columns that are selected often enough.

    Probes are independent of all other data, and normal. They do not represent a column that
    correlates with a signal. With 1,000 columns of 200 rows, ten of them signals, false selections
    before the first probe, nearly all next to a signal, were:

    | correlation of neighbours | false selections |
    |---|---|
    | 0 | 1 |
    | 0.7 | 3 |
    | 0.95 | 11 |

    Probes do not represent columns of another distribution either: for columns with two ones each
    and a heavy-tailed target, without any signal, ten came before the first probe.
    [`clean`](stream.md#streamsel.stream.clean) with `min_count` excludes such columns.
    Knockoffs[^2] resemble the columns that they represent:
    [`knockoff_filter`](evaluate.md#streamsel.evaluate.knockoff_filter) generates them for columns
    that depend on their neighbours only.

    References
    ----------
    [^1]: Machkour, J., Muma, M. and Palomar, D. P. (2022). The terminating-random experiments
    selector: fast high-dimensional variable selection with false discovery rate control.
    arXiv:2110.06048.

    [^2]: Candès, E., Fan, Y., Janson, L. and Lv, J. (2018). Panning for gold: 'model-X' knockoffs
    for high dimensional controlled variable selection. Journal of the Royal Statistical Society B
    80 (3), 551–577.

    Examples
    --------
    >>> from streamsel.evaluate import selected_before_probes
    >>> selected = ["a", "b", ("probe", 7), "c", ("probe", 2), "d"]
    >>> selected_before_probes(selected)
    ['a', 'b']
    >>> selected_before_probes(selected, n_probes=2)
    ['a', 'b', 'c']
    """
    params.check("selected_before_probes", {"n_probes": params.IntRule(1)}, {"n_probes": n_probes})
    if not is_iterable_collection(selected):
        raise TypeError(f"Expected selected: an iterable of names. Got: {type(selected).__name__}.")
    before: list[Hashable] = []
    n_found = 0
    for name in selected:
        if probe_number(name) is None:
            before.append(name)
            continue
        n_found += 1
        if n_found == n_probes:
            break
    return before

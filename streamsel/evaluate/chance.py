"""Selection before random probes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from streamsel import params
from streamsel.plain import is_many
from streamsel.stream._dummies import number_of_dummy


def before_dummies(selected: Iterable[Hashable], most: int = 1) -> list[Hashable]:
    """Return the names selected before a number of random probes, without the probes.

    A selector that reads [`with_dummies`](stream.md#streamsel.stream.with_dummies) selects a probe
    when no remaining column is better than chance, *given* the earlier selections. With as many
    probes as noise columns, each selected noise column is a probe with probability 1/2: the number
    of probes estimates the number of false selections among the others, up to any position in the
    order.

    Parameters
    ----------
    selected
        Names in the order in which they were selected: `model.selected`.
    most
        The number of probes that end the list, at least 1. If there are fewer, all of `selected`
        counts; the selection was then too short.

    Returns
    -------
    The names up to the last of these probes, without the probes.

    Raises
    ------
    ValueError
        If `most` is below 1.

    See Also
    --------
    selection_stability : whether the selection is the same on other data.

    Notes
    -----
    If noise columns are distributed like probes, the list contains on average at most `most /
    per_column` false selections. This is an average: with one probe per column and `most=1`, pure
    noise leaves nothing in half of all cases, and one, two or more columns in the others. A larger
    `per_column` keeps fewer false selections, and fewer true ones too.

    It is an estimate without a guarantee on the share of false selections. The selector of
    Machkour, Muma and Palomar[^1], on which this is modelled, has one: it repeats the competition
    many times with new probes and keeps the columns that are selected often enough.

    Probes are independent of all other data, and normal. They do not represent a column that
    correlates with a signal: among 1,000 columns of 200 rows, ten of them signals, one false
    selection came before the first probe for independent columns, three for correlations of 0.7
    between neighbours and eleven for 0.95, nearly all next to a signal. Probes do not represent
    columns of another distribution either: for columns with two ones each and a heavy-tailed
    target, without any signal, ten came before the first probe;
    [`screen`](stream.md#streamsel.stream.screen) with `min_count` excludes such columns.
    Knockoffs[^2] resemble the columns that they represent, but require a model of their joint
    distribution.

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
    >>> from streamsel.evaluate import before_dummies
    >>> selected = ["a", "b", ("dummy", 7), "c", ("dummy", 2), "d"]
    >>> before_dummies(selected)
    ['a', 'b']
    >>> before_dummies(selected, most=2)
    ['a', 'b', 'c']
    """
    params.check("before_dummies", {"most": params.Whole(1)}, {"most": most})
    if not is_many(selected):
        raise TypeError(f"Expected selected: an iterable of names. Got: {type(selected).__name__}.")
    before: list[Hashable] = []
    n_dummies = 0
    for name in selected:
        if number_of_dummy(name) is None:
            before.append(name)
            continue
        n_dummies += 1
        if n_dummies == most:
            break
    return before

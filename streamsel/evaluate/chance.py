"""Chance: what was selected before columns of random numbers were."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from streamsel import params
from streamsel.plain import is_many
from streamsel.stream._dummies import number_of_dummy


def before_dummies(selected: Iterable[Hashable], most: int = 1) -> list[Hashable]:
    """Return what was selected before so many dummies were, without these.

    A selector that reads [`with_dummies`](stream.md#streamsel.stream.with_dummies) takes a dummy
    where nothing left is better than chance, *given* what it took before. With as many dummies as
    columns of noise, each pick of noise is a dummy with chance 1/2: the number of dummies estimates
    the number of false picks among the others, up to any place in the order.

    Parameters
    ----------
    selected
        Names in the order in which they were selected: `model.selected`.
    most
        How many dummies end the list, at least 1. All of `selected` counts where there are fewer;
        it was too short to tell then.

    Returns
    -------
    The names up to the last of these dummies, without the dummies.

    Raises
    ------
    ValueError
        If `most` is below 1.

    See Also
    --------
    selection_stability : whether other data would select the same.

    Notes
    -----
    Where noise columns are like dummies, the false picks in the list number `most / per_column` on
    average, or fewer. That is an average: with one dummy a column and `most=1` pure noise leaves
    nothing in half of all cases, and one, two or more columns in the others. A larger `per_column`
    keeps fewer false ones, and fewer true ones too.

    It is an estimate, no guarantee on the share of false picks. The selector of Machkour, Muma and
    Palomar[^1], which this follows in spirit, has one: it repeats the competition many times with
    new dummies and keeps what is selected often enough.

    Dummies are independent of all else, and normal. They do not speak for a column that correlates
    with a signal: of 1,000 columns of 200 rows, ten of them signals, one false pick came before the
    first dummy where columns were independent, three where each correlated with the next by 0.7 and
    eleven by 0.95, nearly all beside a signal. Nor do they speak for columns of another shape: of
    columns with two ones each and a heavy-tailed target, with nothing to find, ten came before the
    first dummy; [`screen`](stream.md#streamsel.stream.screen) with `min_count` leaves such out.
    Knockoffs[^2] resemble the columns that they stand for, at the price of a model of their joint
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
        raise TypeError(f"Expected the names selected. Got: {type(selected).__name__}.")
    kept: list[Hashable] = []
    n_dummies = 0
    for name in selected:
        if number_of_dummy(name) is None:
            kept.append(name)
            continue
        n_dummies += 1
        if n_dummies == most:
            break
    return kept

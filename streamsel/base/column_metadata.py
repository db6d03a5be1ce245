"""Read metadata of columns from a mapping of arrays or a data frame."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamsel.base.frame_columns import as_frame
from streamsel.params import parameter_repr, type_name


def metadata_arrays(metadata: Any, kinds: str) -> dict[str, NDArray[Any]]:
    """Return metadata of columns as one-dimensional arrays of equal length, by title.

    Parameters
    ----------
    metadata
        A mapping of arrays or sequences, or a data frame.
    kinds
        The accepted types, for errors.

    Raises
    ------
    TypeError
        For metadata of another type.
    ValueError
        For arrays that are not one-dimensional, or of unequal lengths.
    """
    if isinstance(metadata, Mapping):
        arrays = {str(title): _array(str(title), metadata[title]) for title in metadata}
    else:
        frame = as_frame(metadata)
        if frame is None:
            raise TypeError(
                f"Expected metadata to be {kinds}. Got: {type_name(metadata)}.\n"
                "Hint: pass the column_metadata of the stream."
            )
        arrays = {str(title): frame[title].to_numpy() for title in frame.columns}
    sizes = {title: values.size for title, values in arrays.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{title!r} has {size:,}" for title, size in sizes.items())
        raise ValueError(f"Expected metadata of arrays of equal length. Got: {found}.")
    return arrays


def _array(title: str, given: Any) -> NDArray[Any]:
    values = given
    if isinstance(given, Sequence | range) and not isinstance(given, str | bytes):
        mixed = any(isinstance(value, tuple) for value in given) or (
            any(isinstance(value, str | bytes) for value in given)
            and not all(isinstance(value, str | bytes) for value in given)
        )
        if mixed:
            values = np.empty(len(given), dtype=object)
            values[:] = list(given)
    try:
        array = np.asarray(values)
    except ValueError:  # sequences of unequal lengths
        shape = "sequences of unequal lengths"
    else:
        shape = f"shape {array.shape}" if array.ndim else type_name(given)
        if array.ndim == 1:
            return array
    raise ValueError(
        f"Expected metadata of one-dimensional arrays. Got: {title!r} of {shape}.\n"
        "Hint: pass one value per column."
    )


def locate_names(known: NDArray[Any] | range, names: Sequence[Hashable]) -> NDArray[np.intp]:
    """Return the index of each name in the metadata, -1 for an unknown one.

    Parameters
    ----------
    known
        Names of the columns in the metadata.
    names
        Names of the columns of the model.

    Raises
    ------
    TypeError
        For names that are not hashable.
    ValueError
        If the metadata has none of the names.
    """
    found = known if isinstance(known, range) else known.tolist()
    for name in found:
        try:
            hash(name)
        except TypeError:
            raise TypeError(
                "Expected the names of columns to be hashable, such as texts or numbers. Got: "
                f"{parameter_repr(name)}."
            ) from None
    index_of = {name: i for i, name in enumerate(found)}
    indices = np.array([index_of.get(name, -1) for name in names], dtype=np.intp)
    if indices.size and indices.max() < 0:
        raise ValueError(
            f"Expected metadata of the columns of the model, such as {names[0]!r}. Got: none of "
            f"them in {len(found):,} names.\nHint: pass the source that was learnt, or the names "
            "of its columns as 'name'."
        )
    return indices

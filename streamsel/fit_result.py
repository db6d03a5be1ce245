"""The result of fitting a learner to a table or file: model, report and transformed rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.sparse import is_sparse
from streamsel.base.embedder import Embedder
from streamsel.base.extractor import Extractor
from streamsel.base.frame_columns import as_frame, frame_columns, refuse_text
from streamsel.base.selector import Selector
from streamsel.stream import ColumnStream, StreamPart, as_stream
from streamsel.stream.files import open_by_name
from streamsel.stream.inputs import EncodedStream

if TYPE_CHECKING:
    from streamsel.evaluate import SubsampleStability
    from streamsel.stream.files import CleanStream

# Names that are shown of a result, and listed in an error.
_MAX_SHOWN, _MAX_LISTED = 20, 5


class FitResult:
    """The result of `select` or `extract`: a fitted model, and the data that it was fitted to.

    Attributes
    ----------
    model
        The fitted learner; it can be saved, and go on learning from rows.
    skipped
        Number of columns that were skipped, by reason, as by `stream.clean`.

    Notes
    -----
    In a notebook it shows the summary, the warnings and the table of results. It refers to the
    data, and does not copy them. A pickle or a copy of a result refers to the files that it was
    fitted to, which must not change; it has no stream of columns in memory, such as that of
    `iter_columns` or an AnnData, so that `transform` requires rows.

    Examples
    --------
    >>> import numpy as np
    >>> import streamsel
    >>> X = np.random.default_rng(0).normal(size=(50, 20))
    >>> result = streamsel.select(X, X[:, 3] - X[:, 5], k=2)
    >>> sorted(result.selected), result.transform().shape
    ([3, 5], (50, 2))
    """

    def __init__(
        self, model: Any, source: Any, target: Any, columns: CleanStream, facts: Mapping[str, Any]
    ) -> None:
        self.model = model
        self.skipped = dict(columns.skipped)
        # X as it came, or a stream of its columns (None or a part of it, to open, if the result was
        # pickled); and the target of all its rows.
        self._source, self._target = source, target
        self._metadata = {"columns_read": columns.n_read, "skipped": self.skipped, **facts}
        self._metadata |= {"encoded": dict(columns.encoded), "columns_made": columns.n_made}

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if isinstance(self._source, ColumnStream):
            state["_source"] = _part_of(self._source)
        return state

    def _rows_of_fit(self) -> Any:
        """Return the rows of the fit; None if no further pass is possible."""
        if isinstance(self._source, StreamPart):
            self._source = self._source.open()
        is_spent = isinstance(self._source, ColumnStream) and not self._source.reiterable
        return None if is_spent else self._source

    @property
    def selected(self) -> list[Hashable]:
        """Names of the selected variables, in order; only of `select`."""
        names: list[Hashable] = self.model.selected
        return names

    @property
    def components(self) -> list[str]:
        """Names of the components; only of `extract`."""
        names: list[str] = self.model.components
        return names

    @property
    def warnings(self) -> list[dict[str, str]]:
        """Warnings about the result, each with a `code` and a `text`, as the report has them."""
        from streamsel.reporting.sections import all_warnings

        return all_warnings(self.model.report(), self._metadata)

    def transform(self, X: Any = None) -> Any:
        """Return the selected variables, or the components, of rows.

        Parameters
        ----------
        X
            Rows with the variables that the model uses: as `transform_many` takes them, a path or
            an AnnData. None for the rows of the fit.

        Returns
        -------
        A frame if X is a frame; an array of shape (n, number of outputs) for any other input.

        Raises
        ------
        ValueError
            If a variable is missing or has a value that is not a number, or X is None and the
            source could be read only once, or was a stream in memory and the result was pickled.
        """
        rows = self._rows_of_fit() if X is None else source_of(X, [*map(str, self.model.in_use)])
        if isinstance(X, str | os.PathLike) and self.model._encodes_tables:
            rows = EncodedStream(rows, groups=False)
        if rows is None:
            raise ValueError(
                "Expected rows, as the source of the fit could be read only once, or was a stream "
                "in memory, which a pickled result does not have. Got: None.\n"
                "Hint: transform(X)."
            )
        self._expect_variables(rows)
        return self.model.transform_many(rows)

    def _expect_variables(self, rows: Any) -> None:
        """Raise ValueError for a frame without numbers in a variable that a transform uses."""
        by_variable = isinstance(self.model, Selector | Extractor)
        if as_frame(rows) is None or not by_variable or isinstance(self.model, Embedder):
            return
        names = list(self.model.in_use)
        found, part = frame_columns(rows, names) or ([], None)
        if len(found) < len(names):
            has = {*found}
            absent = [str(name) for i, name in enumerate(names) if i not in has]
            listed = ", ".join(map(repr, absent[:_MAX_LISTED]))
            more = len(absent) - _MAX_LISTED
            raise ValueError(
                f"Expected all {len(names)} variables of the model in the frame. Got: a frame "
                f"without {listed}{f' and {more:,} more' if more > 0 else ''}."
            )
        refuse_text(part)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        stability: SubsampleStability | None = None,
        format: str | None = None,  # noqa: A002 (as in streamsel.report)
    ) -> str:
        """Return the report on the result, and write it to a file.

        Parameters
        ----------
        path
            The file to write; None writes no file.
        stability
            Selections over subsamples, as from `streamsel.evaluate.subsample_stability`.
        format
            `"html"`, `"json"` or `"md"`; None for that of the suffix of `path`, HTML without one.

        Returns
        -------
        The report, as `streamsel.report` returns it: with the rows of the fit, unless the
        source allowed one pass only, or was a stream in memory and the result was pickled.

        Raises
        ------
        ValueError
            For a suffix of another format.
        ImportError
            For HTML, without matplotlib.
        OSError
            If the file cannot be written.
        """
        from streamsel.reporting import report
        from streamsel.reporting.page import format_of_path
        from streamsel.serialization.atomic import atomic_write

        if format is None:
            format = format_of_path(path)  # noqa: A001 (as in streamsel.report)
        found: dict[str, Any] = {"metadata": self._metadata, "stability": stability}
        # Extractors store the components of their rows.
        if format == "html" and self.model.report().kind == "selected":
            rows = self._rows_of_fit()
            found |= {} if rows is None else {"data": rows, "y": self._target}
        text = report(self.model, format=format, **found)
        if path is not None:
            with atomic_write(os.fspath(path)) as file:
                file.write_text(text, encoding="utf-8", errors="backslashreplace")
        return text

    def __repr__(self) -> str:
        from streamsel.reporting.summary import summarize

        report = self.model.report()
        names = [str(row["name"]) for row in report.results]
        if report.kind != "selected":
            names = self.components  # in the order of transforms, not of relevance
        more = f", … ({len(names) - _MAX_SHOWN:,} more)" if len(names) > _MAX_SHOWN else ""
        listed = f"\n{', '.join(names[:_MAX_SHOWN])}{more}" if names else ""
        warnings = "".join(f"\nwarning: {warning['text']}" for warning in self.warnings)
        return f"{self.model!r}: {summarize(report)}{listed}{warnings}"

    def _repr_html_(self) -> str:
        from streamsel.reporting.notebook import render_notebook

        return render_notebook(self.model, self._metadata)


def _part_of(stream: ColumnStream) -> StreamPart | None:
    """Return all columns of a stream as one part, which can be pickled; None if they have no file.

    The part keeps the metadata of the columns, such as their positions in the genome.
    """
    parts = stream.split(1) if stream._cut is not None and stream.reiterable else []
    if not parts:
        return None
    (part,) = parts
    metadata = dict(stream.column_metadata)
    step = partial(_with_column_metadata, metadata)
    return part.then(step, part.n_columns) if metadata else part


def _with_column_metadata(metadata: Mapping[str, Any], stream: ColumnStream) -> ColumnStream:
    stream.column_metadata = metadata
    return stream


def source_of(X: Any, expected_names: Collection[str] = ()) -> Any:
    """Return X, or the stream of a path or AnnData, whose columns have names.

    Parameters
    ----------
    X
        The source.
    expected_names
        Names of some columns, which show whether the lines of a text file are samples.
    """
    if isinstance(X, str | os.PathLike):
        return open_by_name(X, expected_names)
    is_matrix = isinstance(X, np.ndarray) or is_sparse(X)
    if is_matrix or isinstance(X, ColumnStream) or as_frame(X) is not None:
        return X
    return as_stream(X)

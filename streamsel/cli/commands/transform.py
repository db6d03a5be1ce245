"""Apply a saved model to another file, or show its contents."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.sparse import dense_column
from streamsel.cli.errors import CommandError, missing_columns_text
from streamsel.cli.exclusions import expand_drop
from streamsel.cli.identifiers import split_id_option
from streamsel.cli.inputs import check_layer, expand_files, open_source
from streamsel.cli.output import (
    check_distinct_outputs,
    check_table,
    prepend_columns,
    write_csv_to_stdout,
    write_table,
)
from streamsel.cli.request import read_options_of
from streamsel.cli.results import show_info
from streamsel.cli.target import read_passthrough
from streamsel.stream import ColumnStream
from streamsel.stream.inputs import EncodedStream, encoded_names

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from streamsel.cli.log import Log
    from streamsel.cli.source import Source
    from streamsel.stream.files import OnBad


def transform_files(
    log: Log,
    model_path: str,
    given: Sequence[str],
    orientation: str,
    options: Mapping[str, Any],
    keep: Sequence[str],
    out: str | None,
) -> None:
    """Apply a saved model to the rows of files, and write or print the result.

    Parameters
    ----------
    log
        The log.
    model_path
        The model file.
    given
        The files of columns, or patterns.
    orientation
        Orientation of text files: "samples", "variables" or "auto".
    options
        Options that set how files are read.
    keep
        Names of columns of the files that are copied to the output.
    out
        The file to write; None prints CSV.
    """
    from streamsel.serialization.archive import load

    files = expand_files(given)
    check_layer(files, log, layer=options["layer"], raw=options["raw"])
    if out is not None:
        check_distinct_outputs(
            {"--out": out}, {"MODEL": model_path} | {path: path for path in files}
        )
        check_table(out)
    model = load(model_path)
    needed, names = input_and_output_names(model)
    accepts_any_variable = model.report().details.get("any_variable", False)
    if not needed and not accepts_any_variable:
        raise CommandError(
            f"{model_path}: the model has not learnt enough columns to transform data"
        )
    metadata = read_run_metadata(model_path)
    if orientation == "auto":
        orientation = metadata.get("orientation") or orientation
    input_names = [str(name) for name in needed]
    column, header = split_id_option(metadata["id"]) if metadata.get("id") else (None, None)
    log.begin("transform", model=model_path, file=given)
    read_options = read_options_of(options, metadata)
    is_encoded = has_encoded_columns(model, metadata)
    on_bad: OnBad | None = "pass" if is_encoded else None
    source = open_source(
        files,
        log,
        orientation,
        [*input_names, *encoded_names(input_names)] if is_encoded else input_names,
        on_bad,
        read_options,
        display_name=given[0],
        id_=column,
    )
    passthrough = read_passthrough(keep, source, out, header=header)
    with report_missing_columns(source):
        stream = with_exclusions(source, metadata) if accepts_any_variable else source.stream
        if is_encoded and not accepts_any_variable:
            # Indicators and numbers of dates are found by their names.
            stream = EncodedStream(stream)
        transformed = _transformed_columns(model, stream)
    names, columns = prepend_columns(passthrough, names, transformed)
    if out is None:
        write_csv_to_stdout(names, columns)
    else:
        write_table(out, names, columns)


def _transformed_columns(model: Any, stream: ColumnStream) -> list[Any]:
    """Return the columns of a transform; selected ones with the dtypes of the file.

    A column whose missing values are replaced has the float64 values of `transform_many`.
    """
    read: dict[Hashable, Any] = {}

    def take(names: Sequence[Hashable]) -> dict[Hashable, Any]:
        read.update(stream.take(names))
        return {name: read[name] for name in names}

    if model.report().kind != "selected":
        return list(np.asarray(model.transform_many(stream)).T)
    matrix = model.transform_many(
        ColumnStream(stream.blocks, n_rows=stream.n_rows, names=stream.names, take=take)
    )
    columns = list(np.asarray(matrix).T)
    for j, name in enumerate(model.in_use):
        values = np.ravel(dense_column(read[name]))
        if values.dtype.kind in "biuf" and np.array_equal(values, columns[j], equal_nan=True):
            columns[j] = values
    return columns


@contextmanager
def report_missing_columns(source: Source) -> Iterator[None]:
    """Report which columns of a model are missing from a source, with close matches."""
    try:
        yield
    except ValueError as error:
        if isinstance(error.__cause__, KeyError):
            raise CommandError(missing_columns_text(source.path, error.__cause__)) from None
        raise


def has_encoded_columns(model: Any, metadata: Mapping[str, Any]) -> bool:
    """Return whether a model may have learnt columns of numbers that encode text or dates."""
    # A model of Python does not always have a record: `select` encodes before the model learns.
    return bool(
        metadata.get("encoded", "command" not in metadata) or model.report().details.get("encoded")
    )


def open_rows(
    log: Log,
    given: Sequence[str],
    names: list[str],
    model: Any,
    metadata: dict[str, Any],
    options: Mapping[str, Any],
) -> tuple[Source, ColumnStream]:
    """Open the files of --data with the columns of these names, which a model uses.

    Columns of numbers that encode text or dates are found by their names.
    """
    is_encoded = has_encoded_columns(model, metadata)
    source = open_source(
        expand_files(given),
        log,
        options["orientation"],
        [*names, *encoded_names(names)] if is_encoded else names,
        "pass" if is_encoded else None,
        read_options_of(options, metadata),
        display_name=given[0],
    )
    return source, EncodedStream(source.stream) if is_encoded else source.stream


def input_and_output_names(model: Any) -> tuple[list[Any], list[Any]]:
    """Return the names of the input columns of a model, and those of its output columns."""
    if model.report().kind == "selected":
        return list(model.in_use), list(model.in_use)
    return list(model._map_in_use().names), model.components


def read_run_metadata(path: str) -> dict[str, Any]:
    """Return the metadata that a run saved with this model; empty if it was not saved by a run."""
    from streamsel.serialization.archive import read_metadata

    metadata = read_metadata(path)
    return metadata if isinstance(metadata, dict) else {}


def with_exclusions(source: Source, metadata: dict[str, Any]) -> ColumnStream:
    """Return the columns that a run with the same exclusions would read from a file."""
    from streamsel.stream.files import CleanStream

    excluded = [
        *metadata.get("dropped", ()),
        *metadata.get("index", ()),
        *([split_id_option(metadata["id"])[0]] if metadata.get("id") else []),
    ]
    excluded += [metadata[name] for name in ("weights", "strata") if metadata.get(name)]
    names = {source.name(name) for name in expand_drop(source, excluded, strict=False)}
    present = names if source.stream.names is None else names & {*source.stream.names}
    stream = source.stream.without(sorted(present, key=str)) if present else source.stream
    return CleanStream(
        stream, None, metadata.get("missing", "error"), None, metadata.get("min_count", 0)
    )


def print_info(path: str, *, as_json: bool, verbose: bool) -> None:
    """Print the contents of a saved model.

    Parameters
    ----------
    path
        The model file.
    as_json
        Whether to print JSON.
    verbose
        Whether to print all parameters and all metadata.
    """
    from streamsel.serialization.archive import load, read_metadata

    model, metadata = load(path), read_metadata(path)
    complete = not isinstance(metadata, dict) or bool(metadata.get("complete", True))
    report = model.report()
    report = report if complete else report.without_certification()
    show_info(path, report, metadata, as_json=as_json, verbose=verbose)

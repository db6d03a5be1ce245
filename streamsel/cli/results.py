"""Outputs of a run: write columns, print results, and explain fewer results than requested."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils.sparse import dense_column
from streamsel._utils.text import (
    bytes_text,
    count_text,
    encoded_text,
    filled_text,
    printable,
    rows_excluded_text,
    seconds_text,
    skipped_text,
    stopped_text,
)
from streamsel._version import __version__
from streamsel.cli.diagnostics import exclusion_warning
from streamsel.cli.display import SELECTED_FIELDS, show_table, stdout_console
from streamsel.cli.errors import EXPECTED_ERRORS, CommandError, reason_of
from streamsel.cli.output import cell_text, prepend_columns, row_writer, write_table
from streamsel.reporting.json import as_json as json_of
from streamsel.reporting.provenance import changed_parameters_of
from streamsel.reporting.summary import certification_text, is_certificate_needed
from streamsel.stream import ColumnStream

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from streamsel.base.report import Report
    from streamsel.cli.run import Run

TOP_MODELS = 20


def write_results(run: Run, report: Report, unwritten: dict[str, str]) -> None:
    """Write and print the results of a run.

    Parameters
    ----------
    run, report
        The run, and its results.
    unwritten
        Outputs that could not be written, by option, with the reason.

    Raises
    ------
    CommandError
        If there are no results, or a file could not be written; the results are printed first.
    Exception
        An unexpected error in writing a file, which is a bug; the results are printed and the other
        files are written first.
    """
    check_skipped(run)
    errors = _write_files(run, report)
    show_results(run, report)
    paths = {"--out": run.settings.out, "--statistics": run.settings.statistics}
    texts = unwritten | {
        option: f"{option} {paths[option]}: not written ({reason_of(error)})"
        for option, error in errors.items()
    }
    for error in errors.values():
        if not isinstance(error, EXPECTED_ERRORS):
            for text in texts.values():
                error.add_note(text)
            raise error
    n, asked = n_results(report), report.n_requested
    if not n:
        done = {"select": "selected", "reduce": "learnt"}[run.settings.command]
        raise CommandError(f"nothing was {done}: {_shortfall_reason(run, report)}")
    if asked is not None and n < asked:
        done = {"select": "selected", "reduce": "built"}[run.settings.command]
        run.log.note(f"{done} {n} of {asked} requested: {_shortfall_reason(run, report)}")
    if texts:
        raise CommandError("; ".join(texts.values()))


def _write_files(run: Run, report: Report) -> dict[str, Exception]:
    """Write --out and --statistics; return the errors by option.

    An error in one file must not lose the other file or the printed results, even if it is a bug.
    """
    out, statistics = run.settings.out, run.settings.statistics
    writers: dict[str, Callable[[], None]] = {}
    if out is not None and n_results(report):
        writers["--out"] = partial(_write, run, out, report)
    if statistics is not None:
        writers["--statistics"] = partial(_write_statistics, run, statistics)
    errors: dict[str, Exception] = {}
    for option, write in writers.items():
        try:
            write()
        except Exception as error:  # noqa: BLE001 (raised once the results are printed)
            errors[option] = error
    return errors


def check_skipped(run: Run) -> None:
    """Raise if more columns were skipped than --max-skipped allows."""
    metadata, path = run.metadata, run.settings.model
    if metadata["max_skipped"] is None:
        return
    found = exclusion_warning(metadata)
    if found is not None:
        kept = "" if path is None else f"; the model was saved to {path}"
        raise CommandError(
            f"--max-skipped {metadata['max_skipped']:g}: {found.text} (results not written{kept})"
        )


def show_results(run: Run, report: Report) -> None:
    """Print the results, and how many columns were skipped."""
    metadata, log = run.metadata, run.log
    show_report(report, metadata, as_json=run.settings.as_json)
    if sys.stdout.isatty():
        return
    if "caution" in report.details:
        log.note(f"caution: {report.details['caution']}")
    is_open = report.details.get("n_certified", n_results(report)) < n_results(report)
    certified = certification_text(report) if is_open else ""
    for text in (encoded_text(metadata), stopped_text(report.details), certified):
        if text:
            log.note(text)
    if skipped := skipped_text(metadata["skipped"]):
        n_skipped = sum(metadata["skipped"].values())
        log.note(f"skipped {count_text(n_skipped, 'column')}: {skipped}")
    if filled := filled_text(metadata):
        log.note(filled)


def _shortfall_reason(run: Run, report: Report) -> str:
    n_usable = report.columns_seen - report.columns_constant
    if not n_usable:
        n_read = run.metadata["columns_read"]
        return f"none of {count_text(n_read, 'column')} read could be used"
    if run.settings.groups:
        usable = count_text(n_usable, report.candidate)
    elif report.candidate == "group":
        # Encoded columns are groups; any other column is one by itself.
        usable = f"{n_usable:,} groups and columns"
    else:
        usable = count_text(n_usable, "column")
    if report.n_requested is None and report.kind == "selected":
        return f"none of {usable} passes the selection criterion"
    n = n_results(report)
    if n == n_usable:
        return f"only {usable} could be used"
    if report.parameters.get("on_rank_exhausted") == "stop":
        return "the target is explained in full (--on-rank-exhausted stop)"
    # Degrees of freedom after the mean and the covariates.
    max_components = report.rows - 1 - len(run.model.covariates or ())
    if report.kind == "components" and n >= max_components:
        return f"{count_text(report.rows, 'row')} allow no more components"
    why: str = run.model._stop_reason
    return why


def _write(run: Run, out: str, report: Report) -> None:
    if report.kind == "selected":
        # Of groups, their members.
        names = list(dict.fromkeys(chain.from_iterable(run.model.members.values())))
        found = in_all_rows(run, names)
        columns = [found[name] for name in names]
    else:
        matrix = _components(run)
        names, columns = run.model.components[: matrix.shape[1]], list(matrix.T)
    write_table(out, *prepend_columns(run.side_inputs.passthrough, names, columns))


def _write_statistics(run: Run, path: str) -> None:
    """Write the statistics of all columns, with what the source shows about these."""
    metadata, state = run.source.stream.column_metadata, run.model._state
    # A model that continues may have kept columns of earlier sources only.
    if state is None or {*metadata.get("name", ())}.isdisjoint(state.names):
        metadata = {}
    table = run.model.statistics(metadata)
    if {"effect_allele", "position"} <= metadata.keys():
        table["position"] = _with_none(table["position"], table["position"] == 0)  # unknown
    write_table(path, [*table], [_with_empty_cells(values) for values in table.values()])


def _with_empty_cells(values: Any) -> Any:
    """Return values with None for NaN."""
    return _with_none(values, np.isnan(values)) if values.dtype.kind == "f" else values


def _with_none(values: Any, lacks: Any) -> Any:
    """Return values with None where they are missing."""
    return np.where(lacks, None, values.astype(object)) if lacks.any() else values


def _components(run: Run) -> Any:
    """Return the components of the training rows."""
    if hasattr(run.model, "landmarks") or run.model._takes_missing:
        # transform_many approximates: by landmarks, or with means for missing values. The
        # embedding of the training rows is more accurate.
        return run.model.embedding
    # The second pass reads only the columns that the components use.
    if run.side_inputs.used_rows.kept is None:
        return run.model.transform_many(run.all_columns())
    return run.model.transform_many(
        ColumnStream(tuple, n_rows=run.side_inputs.used_rows.kept.n, take=partial(in_all_rows, run))
    )


def in_all_rows(run: Run, names: Sequence[Hashable]) -> dict[Hashable, Any]:
    """Return dense columns with a value in every row of FILE, including rows that are not used.

    In an unused row, a missing or infinite value becomes the mean of the used rows with
    `--missing mean`, and NaN otherwise.
    """
    found, kept = run.clean_stream.take(names), run.side_inputs.used_rows.kept
    if kept is None:
        return {name: dense_column(found[name]) for name in names}
    others = np.ones(kept.n, dtype=np.bool_)
    others[kept.index] = False
    whole = run.take_whole(names)
    for name in names:
        values, used = (dense_column(columns[name]) for columns in (whole, found))
        if values.dtype.kind not in "biu":
            values = np.array(values, dtype=used.dtype)
            fill = used.mean() if run.metadata["missing"] == "mean" else np.nan
            values[others & ~np.isfinite(values)] = fill
            values[kept.index] = used
        whole[name] = values
    return whole


def n_results(report: Report) -> int:
    """Return the number of results; components without loadings do not count.

    They do count if any variable may be used, or if components are built from landmark rows.
    """
    if report.details.get("any_variable") or "n_landmarks" in report.details:
        return len(report.results)
    return sum(1 for row in report.results if row.get("loadings", True))


def show_report(report: Report, metadata: Any, *, as_json: bool) -> None:
    """Print the results of a model, and the metadata of its run, in the format for stdout."""
    if as_json:
        from streamsel.reporting.sections import all_warnings

        of_run = metadata if isinstance(metadata, Mapping) else {}
        known = {
            "streamsel": __version__,
            **report.as_dict(),
            "warnings": all_warnings(report, of_run),
            "metadata": metadata,
        }
        sys.stdout.write(json_of(known, indent=2) + "\n")
    elif sys.stdout.isatty():
        show_table(report, metadata)
    else:
        _show_text(report)
    sys.stdout.flush()


def _show_text(report: Report) -> None:
    """Print tab-separated values: a line per variable, or per loading."""
    lines = _selection_lines(report) if report.kind == "selected" else _loading_lines(report)
    row_writer(sys.stdout, "\t").writerows(lines)


def _selection_lines(report: Report) -> list[Sequence[str]]:
    titles = list(report.results[0]) if report.results else SELECTED_FIELDS
    return [titles, *([cell_text(value) for value in row.values()] for row in report.results)]


def _loading_lines(report: Report) -> Iterator[Sequence[str]]:
    yield ["component", "relevance", "above_noise", "variable", "loading", "weight"]
    empty = dict.fromkeys(("variable", "loading", "weight"))
    if_empty = [empty] if "n_landmarks" in report.details else []
    for row in report.results:
        for loading in row["loadings"] or if_empty:
            cells = [row["name"], row["relevance"], row["above_noise"], *loading.values()]
            yield [cell_text(value) for value in cells]


def show_info(
    path: str, report: Report, metadata: Any, *, as_json: bool, verbose: bool = False
) -> None:
    """Print the contents of a model file.

    Parameters
    ----------
    path, report, metadata
        The file, the results of the model, and its metadata.
    as_json
        Whether to print JSON, with everything.
    verbose
        Whether text includes all parameters and metadata.
    """
    facts = model_facts(path, report, metadata, verbose=verbose)
    if as_json or not sys.stdout.isatty():
        if not as_json:
            _show_facts_as_text(facts, report)
        show_report(report, metadata, as_json=as_json)
        return
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(printable(name)), Text(printable(value)))
    console.print(grid)
    show_report(report, None, as_json=False)


def _show_facts_as_text(facts: Sequence[tuple[str, str]], report: Report) -> None:
    rows = [*facts]
    if report.noise_floor is not None:
        rows.append(("noise floor", f"{report.noise_floor:.6g}"))
    for name, value in rows:
        sys.stdout.write(f"# {printable(name)}: {printable(value)}\n")


# Metadata of a run that only --verbose shows.
_DETAILS = frozenset(
    (
        *("begun", "columns_read", "counting", "examples", "fingerprint", "last_column"),
        *("missing_target", "orientation", "peak_memory", "seconds"),
    )
)


def model_facts(
    path: str, report: Report, metadata: Any, *, verbose: bool = False
) -> list[tuple[str, str]]:
    """Return facts about a model other than its results, as pairs of label and text.

    Parameters
    ----------
    path, report, metadata
        As in `show_info`.
    verbose
        Whether to include parameters that have their defaults, and all metadata.
    """
    shown = report.parameters if verbose else changed_parameters_of(report)
    parameters = ", ".join(f"{k}={v!r}" for k, v in shown.items())
    rows = [
        ("model file", path),
        ("model", f"{report.learner}({parameters})"),
        ("rows", f"{report.rows:,}{rows_excluded_text(report.rows_excluded)}"),
        (
            ("groups" if report.candidate == "group" else "columns") + " seen",
            f"{report.columns_seen:,}",
        ),
    ]
    if report.target is not None:
        rows.append(("target type", report.target))
    if report.columns_constant:
        rows.append(("constant", f"{report.columns_constant:,}"))
    known = {k: v for k, v in report.details.items() if k != "pool_complete"}
    n_certified = known.pop("n_certified", None)
    if n_certified is not None and is_certificate_needed(report):
        rows.append(("certified", f"{n_certified} of {len(report.results)}"))
    if n_passes := known.pop("n_passes", 0):  # 0 if the model learnt from rows
        rows.append(("passes", f"{n_passes:.3g}"))
    markers: dict[str, list[str]] = {}
    for marker in known.pop("markers", ()):
        of_class = markers.setdefault(f"markers of {printable(marker['class'])}", [])
        of_class.append(f"{printable(marker['name'])} ({marker['direction']})")
    rows += [(label, ", ".join(of_class)) for label, of_class in markers.items()]
    if components := known.pop("variance_components", ()):
        rows += _component_facts(components)
    known |= metadata if isinstance(metadata, Mapping) else {"metadata": metadata}
    if not verbose:
        known = {name: value for name, value in known.items() if name not in _DETAILS}
        if known.get("complete") is True:
            del known["complete"]
    for name, value in known.items():
        if value or value is False or name == "n_above_noise":
            rows.append((str(name).replace("_", " "), _fact(name, value)))
    return rows


def _component_facts(components: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the estimates given relatedness; of left-out groups their range."""
    first, *others = components
    text = f"heritability {first['heritability']:.3f}, variance ratio {first['ratio']:.4g}"
    yield "variance components", text
    if others:
        shares = [one["heritability"] for one in others]
        text = f"heritability {min(shares):.3f} to {max(shares):.3f}"
        yield f"without one of {count_text(len(others), 'group')}", text


def _are_models(merged: Any) -> bool:
    return isinstance(merged, Sequence) and all(
        isinstance(metadata, Mapping) and "model" in metadata for metadata in merged
    )


def _is_warning(each: Any) -> bool:
    return isinstance(each, Mapping) and "text" in each


def _models(merged: Sequence[Mapping[str, Any]]) -> str:
    """Return a list of the merged models, with the files that they were learnt from."""
    texts = []
    for metadata in merged[:TOP_MODELS]:
        files = metadata.get("file", [])
        of = ", ".join(map(str, files if isinstance(files, list | tuple) else [files]))
        texts.append(f"{metadata['model']} ({of})" if of else str(metadata["model"]))
    if len(merged) > TOP_MODELS:
        texts.append(f"and {len(merged) - TOP_MODELS:,} more")
    return ", ".join(texts)


def _fact(name: str, value: Any) -> str:
    # Metadata may come from the user: check the type of each value.
    is_number = type(value) in (int, float) and math.isfinite(value)
    if name == "seconds" and is_number:
        return seconds_text(value)
    if name == "peak_memory" and is_number:
        return bytes_text(value)
    if name == "warnings" and isinstance(value, list):
        return "; ".join(str(each["text"]) for each in value if _is_warning(each)) or "none"
    if name == "merged" and _are_models(value):
        return _models(value)
    if isinstance(value, Mapping):
        of_parts = (
            f"{k} ({_fact(k, v)})" if isinstance(v, Mapping) else f"{k} {_fact(k, v)}"
            for k, v in value.items()
            if v is not None
        )
        return ", ".join(of_parts)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)

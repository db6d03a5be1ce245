"""Merge models that were fitted on different columns or different rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsel.cli.errors import CommandError, message_of
from streamsel.cli.inputs import expand_files
from streamsel.cli.output import check_distinct_outputs, check_writable
from streamsel.cli.results import show_info
from streamsel.cli.resume import PROGRESS
from streamsel.cli.settings import stored_settings
from streamsel.stream.files import suffix_of
from streamsel.stream.formats import FORMATS, format_of_suffix

if TYPE_CHECKING:
    from streamsel.cli.log import Log

# Metadata that every run has. Models saved in Python may have any metadata.
_RUN_KEYS = ("columns_read", "complete", "skipped", "filled", "seconds")


def merge_models(log: Log, given: Sequence[str], out: str, along: str, *, as_json: bool) -> None:
    """Merge saved models in order, save the result, and print its contents.

    Parameters
    ----------
    log
        The log.
    given
        The models, or patterns.
    out
        The model to write.
    along
        "columns" or "rows".
    as_json
        Whether to print JSON.
    """
    from streamsel.serialization.archive import load, save

    paths = expand_files(given)
    check_distinct_outputs({"--out": out}, {path: path for path in paths})
    check_writable(out, "--out")
    _check_several(paths)
    log.begin("merge", file=paths, along=along)
    known = [_metadata_of(path) for path in paths]
    runs = [run for each in known for run in _runs_of(each)]
    if along == "columns":
        _check_named(runs)
    _check_sources(runs)
    model: Any = None
    for path in paths:
        other = load(path)
        if model is None:
            model = other
            continue
        try:
            model.merge(other, along=along)
        except ValueError as error:
            raise CommandError(f"{path}: {message_of(error)}") from error
    metadata = merged_metadata(known, along, log)
    save(model, out, metadata)
    report = model.report()
    show_info(
        out,
        report if metadata["complete"] else report.without_certification(),
        metadata,
        as_json=as_json,
    )


def _check_several(paths: Sequence[str]) -> None:
    """Refuse a single model, and a model given twice."""
    if len(paths) == 1:
        raise CommandError(f"expected at least 2 models to merge. Got: {paths[0]}")
    seen: dict[Path, str] = {}
    for path in paths:
        resolved = Path(path).resolve()
        if resolved in seen:
            raise CommandError(f"{path}: the same file as {seen[resolved]}, given before")
        seen[resolved] = path


def _metadata_of(path: str) -> dict[str, Any]:
    """Return the metadata of a model, with its path."""
    from streamsel.serialization.archive import read_metadata

    metadata = read_metadata(path)
    is_ours = _is_run(metadata) or _is_merge(metadata)
    return {"model": path, **(metadata if is_ours else {"metadata": metadata})}


def _is_run(metadata: Any) -> bool:
    """Return whether this is the metadata of a run of select or reduce."""
    if not isinstance(metadata, Mapping) or not all(
        isinstance(metadata.get(name), PROGRESS[name][0]) for name in _RUN_KEYS
    ):
        return False
    files = metadata.get("file")
    return (
        all(isinstance(n, int) for n in metadata["skipped"].values())
        and all(isinstance(file, str) for file in (files if isinstance(files, list) else [files]))
        and isinstance(metadata.get("dropped"), list)
        and isinstance(metadata.get("peak_memory"), PROGRESS["peak_memory"][0])
        and isinstance(metadata.get("fingerprint"), PROGRESS["fingerprint"][0])
    )


def _is_merge(metadata: Any) -> bool:
    """Return whether this is the metadata of a merge."""
    return (
        isinstance(metadata, Mapping)
        and metadata.get("command") == "merge"
        and isinstance(metadata.get("complete"), bool)
        and isinstance(metadata.get("merged"), list)
        and all(
            isinstance(each, Mapping)
            and isinstance(each.get("model"), str)
            and (each.keys() == {"model", "metadata"} or _is_run(each) or _is_merge(each))
            for each in metadata["merged"]
        )
        and ("columns_read" not in metadata or _is_run({**metadata, "file": ""}))
    )


def _runs_of(known: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the metadata of each run that a model consists of."""
    if "merged" not in known:
        yield known
    for each in known.get("merged", ()):
        yield from _runs_of(each)


def _check_sources(runs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse two runs that have read the same columns of the same rows, under any path."""
    seen: dict[str, str] = {}
    for run in runs:
        if read := (run.get("fingerprint") or {}).get("read"):
            first = seen.setdefault(repr(read), run["model"])
            if first != run["model"]:
                raise CommandError(f"{run['model']}: has learnt the same columns as {first}")


def _check_named(runs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse several runs over columns without names: each numbers its own from 0."""
    numbered = [(run["model"], suffix) for run in runs if (suffix := _numbered_suffix(run))]
    if len(numbered) > 1:
        (first, _), (second, suffix) = numbered[:2]
        raise CommandError(
            f"{second}: learnt from {suffix} files, like {first}; their columns have "
            "no names, only numbers from 0. Hint: use tables with column names, or one run "
            "over all files"
        )


def _numbered_suffix(run: Mapping[str, Any]) -> str:
    """Return the suffix of a run's files whose columns have no names; "" if there are none."""
    files = run.get("file", [])
    for suffix in map(suffix_of, [files] if isinstance(files, str) else files):
        name = format_of_suffix(suffix)
        if name is not None and FORMATS[name].numbered:
            return suffix
    return ""


def merged_metadata(known: Sequence[Mapping[str, Any]], along: str, log: Log) -> dict[str, Any]:
    """Return the metadata of a merged model.

    Parameters
    ----------
    known
        Path and metadata of each of its models.
    along
        How they were merged.
    log
        The log.
    """
    runs = [each for each in known if "columns_read" in each]
    merged: dict[str, Any] = {
        "command": "merge",
        "along": along,
        "merged": list(known),
        "complete": all(each.get("complete", True) for each in known),
    }
    for each in known:
        if not each.get("complete", True):
            log.note(f"{each['model']}: its run is incomplete")
    for _, key, declared in stored_settings():
        is_same = runs and all(key in run and run[key] == runs[0].get(key) for run in runs)
        if declared.shared and is_same:
            merged[key] = runs[0][key]
    if not runs:
        return merged
    counted: Counter[str] = Counter()
    encoded: Counter[str] = Counter()
    for run in runs:
        counted.update(run["skipped"])
        encoded.update(run.get("encoded", {}))
    columns = [run["columns_read"] for run in runs]
    peaks = [run["peak_memory"] for run in runs if run.get("peak_memory")]
    return merged | {
        "dropped": list(dict.fromkeys(name for run in runs for name in run["dropped"])),
        "index": list(dict.fromkeys(name for run in runs for name in run.get("index", ()))),
        "columns_read": sum(columns) if along == "columns" else max(columns),
        "skipped": dict(counted),
        "encoded": dict(encoded),
        "columns_made": sum(run.get("columns_made", 0) for run in runs),
        "filled": sum(run["filled"] for run in runs),
        "filled_values": sum(run.get("filled_values", 0) for run in runs),
        "seconds": sum(run["seconds"] for run in runs),
        "peak_memory": max(peaks, default=None),
    }

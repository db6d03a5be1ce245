"""Models that were learnt apart, of other columns or other rows, put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from streamsel.cli._errors import CommandError, message_of, note
from streamsel.cli._inputs import files_of
from streamsel.cli._log import log
from streamsel.cli._outputs import check_distinct, check_writable
from streamsel.cli._report import show_info
from streamsel.stream._formats import suffix_of

# What is known of the merged model too, where the runs agree in it.
SHARED = (
    "target",
    "target_file",
    "id",
    "covariates",
    "weights",
    "strata",
    "missing_target",
    "missing",
    "min_count",
    "orientation",
)
# What every run has noted. Notes of models that were saved in Python may be anything.
NUMBER = (int, float)
RUN: dict[str, tuple[type, ...]] = {
    "columns_read": (int,),
    "complete": (bool,),
    "dropped": (list,),
    "skipped": (dict,),
    "filled": (int,),
    "seconds": NUMBER,
}


def merge(given: Sequence[str], out: str, along: str, *, as_json: bool) -> None:
    """Merge saved models in their order, save what comes out, and print what it holds.

    Parameters
    ----------
    given
        The models, or patterns.
    out
        The model to write.
    along
        "columns" or "rows".
    as_json
        Whether to print JSON.
    """
    from streamsel.persist import load, save

    paths = files_of(given)
    check_distinct({"--out": out}, {path: path for path in paths})
    check_writable(out, "--out")
    _check_several(paths)
    log().begin("merge", file=paths, along=along)
    known = [_known(path) for path in paths]
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
    notes = notes_of(known, along)
    save(model, out, notes)
    report = model.report()
    show_info(out, report if notes["complete"] else report.unfinished(), notes, as_json=as_json)


def _check_several(paths: Sequence[str]) -> None:
    """Refuse one model, and one that comes twice."""
    if len(paths) == 1:
        raise CommandError(f"{paths[0]}: one model, and nothing to merge it with")
    seen: dict[Path, str] = {}
    for path in paths:
        where = Path(path).resolve()
        if where in seen:
            raise CommandError(f"{path}: the same file as {seen[where]}, which comes before it")
        seen[where] = path


def _known(path: str) -> dict[str, Any]:
    """Return what was noted of a model, and where it is."""
    from streamsel.persist import read_notes

    notes = read_notes(path)
    is_ours = _is_run(notes) or _is_merge(notes)
    return {"model": path, **(notes if is_ours else {"notes": notes})}


def _is_run(notes: Any) -> bool:
    """Whether these are the notes of a run of select or reduce."""
    if not isinstance(notes, Mapping) or not all(
        isinstance(notes.get(name), types) for name, types in RUN.items()
    ):
        return False
    files = notes.get("file")
    return (
        all(isinstance(n, int) for n in notes["skipped"].values())
        and all(isinstance(file, str) for file in (files if isinstance(files, list) else [files]))
        and isinstance(notes.get("peak_memory"), (*NUMBER, NoneType))
        and isinstance(notes.get("fingerprint"), (Mapping, NoneType))
    )


def _is_merge(notes: Any) -> bool:
    """Whether these are the notes of a merge."""
    return (
        isinstance(notes, Mapping)
        and notes.get("command") == "merge"
        and isinstance(notes.get("complete"), bool)
        and isinstance(notes.get("merged"), list)
        and all(
            isinstance(each, Mapping)
            and isinstance(each.get("model"), str)
            and (each.keys() == {"model", "notes"} or _is_run(each) or _is_merge(each))
            for each in notes["merged"]
        )
        and ("columns_read" not in notes or _is_run({**notes, "file": ""}))
    )


def _runs_of(known: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what was noted of each run that a model is made of."""
    if "merged" not in known:
        yield known
    for each in known.get("merged", ()):
        yield from _runs_of(each)


def _check_sources(runs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse two runs that have read the same columns of the same rows, under whatever path."""
    seen: dict[str, str] = {}
    for run in runs:
        if read := (run.get("fingerprint") or {}).get("read"):
            first = seen.setdefault(repr(read), run["model"])
            if first != run["model"]:
                raise CommandError(f"{run['model']}: has learnt the same columns as {first}")


def _check_named(runs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse several runs over columns without names: each numbers its own from 0."""
    numbered = [run["model"] for run in runs if _is_numbered(run)]
    if len(numbered) > 1:
        raise CommandError(
            f"{numbered[1]}: learnt from .npy files, as {numbered[0]} was, whose columns have no "
            "names but numbers from 0. Hint: learn tables with names, or all files in one run"
        )


def _is_numbered(run: Mapping[str, Any]) -> bool:
    files = run.get("file", [])
    return any(suffix_of(file) == ".npy" for file in ([files] if isinstance(files, str) else files))


def notes_of(known: Sequence[Mapping[str, Any]], along: str) -> dict[str, Any]:
    """Say of a merged model what is known of those that it was made of.

    Parameters
    ----------
    known
        Of each of these where it is, and what was noted beside it.
    along
        How they were merged.
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
            note(f"caution: {each['model']}: its run was not complete")
    for name in SHARED:
        if runs and all(name in run and run[name] == runs[0].get(name) for run in runs):
            merged[name] = runs[0][name]
    if not runs:
        return merged
    counted: Counter[str] = Counter()
    for run in runs:
        counted.update(run["skipped"])
    columns = [run["columns_read"] for run in runs]
    peaks = [run["peak_memory"] for run in runs if run.get("peak_memory")]
    return merged | {
        "dropped": list(dict.fromkeys(name for run in runs for name in run["dropped"])),
        "index": list(dict.fromkeys(name for run in runs for name in run.get("index", ()))),
        "columns_read": sum(columns) if along == "columns" else max(columns),
        "skipped": dict(counted),
        "filled": sum(run["filled"] for run in runs),
        "filled_values": sum(run.get("filled_values", 0) for run in runs),
        "seconds": sum(run["seconds"] for run in runs),
        "peak_memory": max(peaks, default=None),
    }

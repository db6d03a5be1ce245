"""Features of series that are compared: each job is a process that reads files and writes results.

`python _series.py JOB FOLDER` reads FOLDER/data.npz, writes FOLDER/JOB.npz and prints what it took
as JSON: seconds, and the rise of its memory above libraries and data. A job imports only its own
package, so that aeon and tsfresh may live in an environment of their own.
"""

import gc
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Python that has aeon and tsfresh.
PEERS = os.environ.get("STREAMSEL_PEERS", sys.executable)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
FDR = 0.05


class Series(NamedTuple):
    """Series as a list of arrays (channels, t), and the class of each."""

    series: list[np.ndarray]
    y: np.ndarray


def write(folder: Path, data: Series) -> None:
    values = np.concatenate([x.ravel() for x in data.series])
    shapes = np.array([x.shape for x in data.series])
    np.savez(folder / "data.npz", values=values, shapes=shapes, y=data.y)


def read(folder: Path) -> Series:
    with np.load(folder / "data.npz") as file:
        ends = np.cumsum(file["shapes"].prod(axis=1))
        parts = np.split(file["values"], ends[:-1])
        return Series(
            [x.reshape(shape) for x, shape in zip(parts, file["shapes"], strict=True)], file["y"]
        )


def job(name: str, folder: Path, *args: str) -> dict[str, Any] | None:
    """Run a job of this file; None if its package is not installed."""
    python = sys.executable if name.startswith("streamsel") else PEERS
    done = subprocess.run(  # noqa: S603 (ours)
        [python, "-W", "ignore", str(Path(__file__).resolve()), name, str(folder), *args],
        env=os.environ | dict.fromkeys(_THREADS, "1"),
        capture_output=True,
        text=True,
        check=False,
    )
    if "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode:
        raise RuntimeError(f"{name}\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def status(name: str) -> float:
    """Return a quantity of this process in MiB; NaN if the system is not Linux."""
    path = Path("/proc/self/status")
    if not path.exists():
        return float("nan")
    return int(re.search(rf"{name}:\s+(\d+)", path.read_text())[1]) / 1024


class Cost:
    """Seconds of the processor, and the rise of memory, from its creation on."""

    def __init__(self) -> None:
        gc.collect()
        reset = Path("/proc/self/clear_refs")
        if reset.exists():
            reset.write_text("5")
        self._memory, self._start = status("VmRSS"), time.process_time()

    def seconds(self) -> float:
        return time.process_time() - self._start

    def memory(self) -> float:
        return status("VmHWM") - self._memory


# aeon


def aeon(folder: Path, name: str) -> dict[str, Any]:
    """Write a dataset that comes with the package."""
    from aeon.datasets import load_classification

    X, y = load_classification(name)
    series = [np.asarray(x, dtype=float) for x in X]
    write(folder, Series(series, np.unique(y, return_inverse=True)[1]))
    return {}


# streamsel


def streamsel_fdr(folder: Path) -> dict[str, Any]:
    from streamsel import SelectKBest

    return one_pass(folder, lambda: SelectKBest(fdr=FDR))


def streamsel_forward(folder: Path) -> dict[str, Any]:
    from streamsel import ForwardSelection

    return one_pass(folder, lambda: ForwardSelection(25))


def one_pass(folder: Path, make: Callable[[], Any]) -> dict[str, Any]:
    """Extract and select in one pass; then extract alone."""
    from streamsel.stream import iter_series_features

    data = read(folder)
    for series, y in ((data.series[:9] * 3, np.arange(27) % 3), (data.series, data.y)):
        cost = Cost()
        model = make()
        model.learn_target(y.astype(str))
        model.learn_columns(iter_series_features(series))
        selected = model.selected
        found = {"seconds": cost.seconds(), "memory": cost.memory(), "selected": len(selected)}
    cost = Cost()
    stream = iter_series_features(data.series)
    for _ in stream.blocks():
        pass
    return found | {"extraction": cost.seconds(), "features": stream.n_columns}


# tsfresh


def long_frame(data: Series) -> Any:
    import pandas as pd

    parts = []
    for i, x in enumerate(data.series):
        columns = {f"channel_{j}": values for j, values in enumerate(x)}
        parts.append(pd.DataFrame({"id": i, "time": np.arange(x.shape[1]), **columns}))
    return pd.concat(parts, ignore_index=True)


def tsfresh(folder: Path, which: str) -> dict[str, Any]:
    """Extract, impute and select; write the features as they were extracted."""
    import pandas as pd
    from tsfresh import extract_features, select_features
    from tsfresh.feature_extraction import settings
    from tsfresh.utilities.dataframe_functions import impute

    data = read(folder)
    parameters = getattr(settings, f"{which}FCParameters")()
    for series in (data.series[:3], data.series):
        frame = long_frame(data._replace(series=series))
        cost = Cost()
        X = extract_features(
            frame,
            column_id="id",
            column_sort="time",
            default_fc_parameters=parameters,
            disable_progressbar=True,
            n_jobs=0,
        )
        extraction = cost.seconds()
    raw = X.to_numpy(float)
    np.savez(folder / f"tsfresh_{which}.npz", X=raw, names=X.columns.to_numpy(str))
    start = time.process_time()
    selected = chosen(select_features, impute(X), pd.Series(data.y))
    return {
        "extraction": extraction,
        "seconds": extraction + time.process_time() - start,
        "memory": cost.memory(),
        "features": X.shape[1],
        "selected": selected.shape[1],
    }


def chosen(select_features: Callable[..., Any], X: Any, y: Any) -> Any:
    several = {"multiclass": True} if y.nunique() > 2 else {}
    return select_features(X, y, ml_task="classification", fdr_level=FDR, n_jobs=0, **several)


def tsfresh_select(folder: Path, which: str) -> dict[str, Any]:
    """Select by tsfresh in the training rows of every split; write which features."""
    import pandas as pd
    from tsfresh import select_features
    from tsfresh.utilities.dataframe_functions import impute

    with np.load(folder / f"tsfresh_{which}.npz") as file:
        X = pd.DataFrame(file["X"], columns=file["names"])
    y = pd.Series(read(folder).y)
    masks = []
    for train in np.load(folder / "splits.npy"):
        part = impute(X.iloc[train].reset_index(drop=True))
        kept = chosen(select_features, part, y.iloc[train].reset_index(drop=True))
        masks.append(X.columns.isin(kept.columns))
    np.save(folder / f"masks_{which}.npy", masks)
    return {}


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    work.__name__: work
    for work in (aeon, streamsel_fdr, streamsel_forward, tsfresh, tsfresh_select)
}


def main() -> None:
    import logging

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    name, folder, *args = sys.argv[1:]
    print(json.dumps(JOBS[name](Path(folder), *args)))


if __name__ == "__main__":
    # The names of jobs are those of packages, and this folder comes first on the path.
    sys.path.pop(0)
    main()

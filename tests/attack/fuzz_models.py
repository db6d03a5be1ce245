"""Load forged model files: a file is refused in one line that names it, or gives a usable model.

    python -m tests.attack.fuzz_models --seconds 20 --seed 1

changes the contents of files of every learner, and recomputes their checksums as anyone can. Models
that load are queried, trained, merged and saved. It exits with 1 if one ends in anything but an
answer or a documented error.
"""

from __future__ import annotations

import linecache
import random
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import streamsel
from tests.attack._harness import run
from tests.attack._model_files import KINDS, labels, mutant, sample

if TYPE_CHECKING:
    from collections.abc import Callable

HOME = str(Path(streamsel.__file__).parent)


def attempts(seed: int) -> Callable[[int], tuple[str, str]]:
    """Return the function that tries the mutant of an index."""
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    known = labels()
    warnings.simplefilter("ignore")

    def attempt(index: int) -> tuple[str, str]:
        kind = kind_of(index)
        rng = random.Random(f"{seed} {index}")  # noqa: S311 (no secret)
        label = rng.choice(known)
        path = folder / "forged.streamsel"
        path.write_bytes(mutant(kind, label, rng))
        verdict, message = _verdict(path, label, refused=kind == "unsealed")
        return verdict, f"{label}: {message}"

    return attempt


def _verdict(path: Path, label: str, *, refused: bool) -> tuple[str, str]:
    if path.read_bytes() == sample(label).data:
        return "right", "not changed"
    try:
        model = streamsel.load(path)
    except ValueError as error:
        message = str(error)
        is_ours = message.startswith(str(path)) and "\n" not in message and len(message) < 1000
        return ("refused" if is_ours else "words"), message[:300]
    except Exception as error:  # noqa: BLE001 (whatever it is)
        return "traceback", described(error)
    if refused:
        return "wrong", "read though it is damaged"
    return use(model, label, path.with_name("again"))


def use(model: Any, label: str, path: Path) -> tuple[str, str]:
    """Use a model in the usual ways; return a verdict and a description."""
    whole = sample(label)
    X, y = whole.X, whole.y
    row = {f"v{j}": float(value) for j, value in enumerate(X[0])}
    target = [] if y is None else [y[0].item()]
    uses: dict[str, Callable[[], Any]] = {
        "report": model.report,
        "str": lambda: repr(model),
        "shown": lambda: {
            name: getattr(model, name)
            for name in ("selected", "components", "scores", "relevance", "loadings", "embedding")
            if hasattr(type(model), name)
        },
        "transform_one": lambda: model.transform_one(row),
        "transform_many": lambda: model.transform_many(_frame(X)),
        "learn_column": lambda: model.learn_column(X[:, 1], "new"),
        "learn_columns": lambda: model.learn_columns(X[:, :3], ["n0", "n1", "n2"]),
        "learn_group": lambda: model.learn_group("new group", X[:, 2:5] ** 2, ["n3", "n4", "n5"]),
        "members": lambda: getattr(model, "members", None),
        "merge": lambda: model.merge(whole.model),
        "merged": lambda: whole.model.clone().merge(model),
        "save": lambda: streamsel.load(streamsel.save(model, path) or path),
        "learn_one": lambda: [model.learn_one(row, *target) for _ in range(3)],
        "learn_many": lambda: model.learn_many(X, *([] if y is None else [y])),
        "refresh": model.refresh,
        "report again": model.report,
        "transform_one again": lambda: model.transform_one(row),
        "save again": lambda: streamsel.load(streamsel.save(model, path) or path),
    }
    for name, call in uses.items():
        try:
            if defect := nonsense(name, call(), signed="signed=True" in label):
                return "wrong", f"{name}: {defect}"
        except Exception as error:  # noqa: BLE001 (whatever it is)
            if not is_ours(error):
                return "traceback", f"{name}: {described(error)}"
    return "changed", ""


def nonsense(name: str, found: Any, *, signed: bool) -> str:
    """Return a description of an impossible answer; "" for any other answer."""
    if name == "shown":
        values = np.array(list(found["relevance"].values()), dtype=float)
        # `load` allows for rounding.
        if not ((values >= -1.01 * signed) & (values <= 1.01)).all():
            return f"relevances from {values.min()} to {values.max()}"
        # A score may be infinite where a variable explains the target completely.
        if found.get("scores") is not None and np.isnan(_numbers(found["scores"])).any():
            return "scores that are no numbers"
        answers = [found.get("embedding"), *_weights(found.get("loadings"))]
    elif name.startswith("transform"):
        answers = [found]
    else:
        return ""
    for answer in answers:
        if answer is not None and not np.isfinite(_numbers(answer)).all():
            return "numbers that are not finite"
    return ""


def _weights(loadings: Any) -> list[Any]:
    """Return the weights of loadings, component by component."""
    return list(loadings.values()) if isinstance(loadings, dict) else []


def _numbers(found: Any) -> Any:
    if hasattr(found, "to_numpy"):
        found = found.to_numpy()
    return np.array(list(found.values()) if isinstance(found, dict) else found, dtype=float)


def is_ours(error: BaseException) -> bool:
    """Return whether an error was raised on purpose, by a line of the package."""
    if type(error) not in (ValueError, TypeError, RuntimeError, KeyError, NotImplementedError):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    file = trace.tb_frame.f_code.co_filename
    line = linecache.getline(file, trace.tb_lineno).strip()
    return file.startswith(HOME) and line.startswith(("raise ", "_refuse("))


def _frame(X: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=[f"v{j}" for j in range(X.shape[1])])


def kind_of(index: int) -> str:
    """Return the kind of mutant of an index."""
    return KINDS[index % len(KINDS)]


def described(error: BaseException) -> str:
    """Return an error, and the last line of the package in its traceback."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(HOME):
            where = f"{file.removeprefix(HOME)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return " ".join(f"{where} {type(error).__name__}: {error}".split())[:300]


if __name__ == "__main__":
    sys.exit(run(attempts, kind_of, __doc__))

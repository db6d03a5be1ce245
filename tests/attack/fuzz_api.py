"""Call the public interface with bad values: a documented error must leave the model unchanged.

    python -m tests.attack.fuzz_api --seconds 20 --seed 1

calls models of every learner, and the functions that make streams, with invalid arguments. It exits
with 1 if a call ends in an undocumented error, or if a model changed although it refused the call.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import pickle
import random
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import streamsel
from streamsel.params import parameter_repr, rules_of
from tests.attack._bad_values import PoisonedError, values
from tests.attack._harness import run
from tests.attack._model_files import Sample, labels, sample
from tests.attack.fuzz_models import described, is_ours
from tests.conformance.modes import bits

if TYPE_CHECKING:
    from collections.abc import Callable

# Reading from an invalid source stops at a block of more columns.
_MOST = 5000
_SOURCES = sorted(set(streamsel.stream.__all__) - {"ColumnStream", "StreamPart", "with_probes"})
_JUDGES = sorted(set(streamsel.evaluate.__all__) - {"KnockoffSelection", "Stability"})

# Messages of Python about paths, and of narwhals about duplicate names.
_KNOWN = (
    "expected str, bytes or os.PathLike",
    "embedded null",
    "argument should be a str",
    "'utf-8' codec can't encode",
    "Expected ",
)


def attempts(seed: int) -> Callable[[int], tuple[str, str]]:
    """Return the function that tries the call of an index."""
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    known = labels()
    warnings.simplefilter("ignore")

    def attempt(index: int) -> tuple[str, str]:
        rng = random.Random(f"{seed} {index}")  # noqa: S311 (no secret)
        kind = kind_of(index)
        if kind == "functions":
            name, call = _function(rng, folder)
            verdict, message = _tried(call)
            return verdict, f"{name}: {message}"
        label = rng.choice(known)
        whole = sample(label)
        if kind == "constructor":
            verdict, message = _constructed(whole, rng)
            return verdict, f"{label}: {message}"
        model = pickle.loads(pickle.dumps(whole.model))  # noqa: S301 (our own)
        if rng.random() < 0.2:
            model = model.clone()
        name, args, kwargs = _method(whole, rng)
        before = bits(model)
        verdict, message = _tried(lambda: getattr(model, name)(*args, **kwargs))
        if verdict == "refused" and bits(model) != before and "stay learnt" not in message:
            verdict = "wrong"
            message = f"not as it was, after {message}"
        elif verdict == "right":
            verdict, message = _still_usable(model, whole)
        return verdict, f"{label}.{name}: {message}"

    return attempt


def kind_of(index: int) -> str:
    """Return the kind of call of an index."""
    return ("methods", "methods", "methods", "methods", "functions", "constructor")[index % 6]


def _tried(call: Callable[[], Any]) -> tuple[str, str]:
    try:
        call()
    except PoisonedError:
        return "refused", "what the value itself raised"
    except (MemoryError, OSError) as error:  # errors of the system about sizes and paths
        return "refused", described(error)
    except Exception as error:  # noqa: BLE001 (whatever it is)
        known = isinstance(error, ValueError | TypeError) and str(error).startswith(_KNOWN)
        return ("refused" if known or is_ours(error) else "traceback"), described(error)
    return "right", ""


def _still_usable(model: Any, whole: Sample) -> tuple[str, str]:
    """Return the verdict on a model that accepted a bad value."""
    row = {f"v{j}": float(value) for j, value in enumerate(whole.X[0])}
    for name, call in {
        "report": model.report,
        "transform_one": lambda: model.transform_one(row),
        "state": lambda: streamsel.serialization.schema.expect_finite(model._get_state()),
    }.items():
        verdict, message = _tried(call)
        if verdict == "traceback":
            return "traceback", f"then {name}: {message}"
    return "right", ""


def _method(whole: Sample, rng: random.Random) -> tuple[str, list[Any], dict[str, Any]]:
    """Return a method, and arguments with at least one bad value."""
    X, y = whole.X, whole.y
    row = {f"v{j}": float(value) for j, value in enumerate(X[0])}
    names = [f"w{j}" for j in range(X.shape[1])]
    target = [] if y is None else [y[0].item()]
    targets = [] if y is None else [y]
    good: dict[str, list[Any]] = {
        "learn_target": [y, None],
        "learn_column": ["new", X[:, 1]],
        "learn_columns": [X, names],
        "learn_one": [row, *target],
        "learn_many": [X, *targets],
        "transform_one": [row],
        "transform_many": [X],
        "merge": [whole.model, "columns"],
        "noise_floor": [0.05],
    }
    further = {"learn_loadings": [X, names], "learn_graph": [np.eye(len(X))], "learn_from": [1]}
    good |= {name: args for name, args in further.items() if hasattr(whole.model, name)}
    name = rng.choice(list(good))
    args = list(good[name])
    for _ in range(rng.choice((1, 1, 1, 2))):
        args[rng.randrange(len(args))] = values(rng)
    return name, args, {}


def _constructed(whole: Sample, rng: random.Random) -> tuple[str, str]:
    """Make a learner with bad parameters; if it is accepted, use it briefly."""
    cls = type(whole.model)
    rules = list(rules_of(cls))
    params = dict(whole.model._get_params())
    for _ in range(rng.choice((1, 1, 2))):
        params[rng.choice(rules)] = values(rng)
    made: list[Any] = []
    verdict, message = _tried(lambda: made.append(cls(**params)))
    if not made:
        return verdict, f"{message}"
    model = made[0]
    row = {f"v{j}": float(value) for j, value in enumerate(whole.X[0])}
    target = [] if whole.y is None else [whole.y[0].item()]
    y = whole.y

    def columns() -> None:
        if cls._is_supervised:
            model.learn_target(y)
        model.learn_columns(whole.X, list(row))

    uses = {
        "clone": model.clone,
        "learn columns": columns,
        "report": model.report,
        "learn_one": lambda: model.learn_one(row, *target),
        "transform_one": lambda: model.transform_one(row),
    }
    for name, use in uses.items():
        verdict, message = _tried(use)
        if verdict == "traceback":
            return verdict, f"{parameter_repr(params)}: {name}: {message}"
    return "right", ""


def _function(rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any]]:
    """Return a function that is not a method of a learner, with bad arguments."""
    kind = rng.randrange(4)
    if kind == 0:
        name = rng.choice(_JUDGES)
        judge = getattr(streamsel.evaluate, name)
        args, kwargs = _arguments(judge, rng)
        return name, lambda: judge(*args, **kwargs)
    if kind == 1:
        return "save and load", functools.partial(_file, rng, folder)
    name = rng.choice(_SOURCES)
    make = getattr(streamsel.stream, name)
    args, kwargs = _arguments(make, rng)

    def read() -> None:
        stream = make(*args, **kwargs)
        for names, *_ in itertools.islice(stream.blocks(), 20):
            if len(names) > _MOST:
                break

    return name, read


def _arguments(call: Any, rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Return bad values for the required parameters, and for some of the optional ones."""
    args, kwargs = [], {}
    for name, parameter in inspect.signature(call).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.default is parameter.empty:
            args.append(values(rng))
        elif rng.random() < 0.25:
            kwargs[name] = values(rng)
    return args, kwargs


def _file(rng: random.Random, folder: Path) -> None:
    path = folder / "model"
    model = sample(rng.choice(labels())).model
    how = rng.randrange(4)
    if how == 0:
        streamsel.save(values(rng), path)
    elif how == 1:
        streamsel.save(model, path, values(rng))
        streamsel.serialization.archive.read_metadata(path)
    elif how == 2:
        value = values(rng)
        if not isinstance(value, str | int | Path):  # a text or number may be an existing file
            streamsel.save(model, value)
    else:
        streamsel.load(values(rng))


if __name__ == "__main__":
    sys.exit(run(attempts, kind_of, __doc__))

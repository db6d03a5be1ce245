"""Random streams on which exactness is hard, and the properties of every selector on each.

They contain copies, negated and constant columns, sums of others, near copies, and integers that
tie; fewer rows than picks, pools of little more than k columns, and blocks of any width.
`python -m tests.exactness 10000` runs as many streams per learner; the suite runs a few of them.
`python -m tests.exactness 10000 parts` learns streams, also with covariates and classes, in parts
with further passes. `tiny` has streams of three to eight rows, where picks leave one direction or
none, without a bounded pool, with one, and with further passes.
"""

import sys
from importlib import import_module

import numpy as np

from streamsel import registry
from streamsel.params import rules_of
from tests import in_parts

# Values of parameters, drawn for the learners that have them.
DRAWN = {
    "ridge": (0.0, 0.1, 1.0, 3.0),
    "swaps": (0, 2),
    "scheme": ("quotient", "difference"),
    "score": ("f", "correlation", "mutual_info"),
    "redundancy": ("correlation", "mutual_info"),
}


# Selectors that are also tested with a pool, but make one pass only.
SINGLE_PASS = ["BackwardElimination", "SelectKBest"]


def learners():
    """Return the names of the selectors that make further passes until their answer is exact."""
    return [
        name for name in registry.names("selector") if "exact" in rules_of(registry.fetch(name))
    ]


def columns(rng):
    """Return columns, (n, p)."""
    n, p = int(rng.integers(5, 40)), int(rng.integers(1, 60))
    whole = rng.random() < 0.4
    X = rng.integers(-2, 3, (n, p)) * 1.0 if whole else rng.normal(size=(n, p))
    for _ in range(int(rng.integers(0, 8))):
        a, b, c = rng.integers(0, p, 3)
        kinds = (
            X[:, b],
            3.0 - 2.0 * X[:, b],
            np.full(n, 1.5),
            X[:, b] + X[:, c],
            X[:, b] + 1e-3 * rng.normal(size=n),
        )
        X[:, a] = kinds[int(rng.integers(len(kinds)))]
    return X


def case(name, seed):
    """Return columns, a target, parameters, whether to learn exactly, and the random generator."""
    rng = np.random.default_rng(seed)
    X = columns(rng)
    n, p = X.shape
    learner = registry.fetch(name)
    params = {
        parameter: values[int(rng.integers(len(values)))]
        for parameter, values in DRAWN.items()
        if parameter in rules_of(learner)
    }
    k = int(rng.integers(1, 8))
    params |= {"k": k, "max_candidates": k + int(rng.integers(0, 6))}
    c = int(rng.integers(1, 4)) if takes(learner(**params), 3) else 1
    Y = rng.normal(size=(n, c))
    if rng.random() < 0.7:
        Y = Y + 2.0 * X[:, rng.integers(0, p, c)]
    return X, (Y if c > 1 else Y[:, 0]), params, bool(rng.random() < 0.6), rng


def takes(model, c):
    """Return whether a learner supports a target of c numeric columns."""
    try:
        model._check_target(c, is_class=False)
    except ValueError:
        return False
    return True


def wrong(name, seed):
    """Return a description of the error on one stream; None if there is none."""
    X, y, params, exact, rng = case(name, seed)
    module = import_module(f"tests.reference.{registry.fetch(name).__module__.rpartition('.')[2]}")
    model = registry.fetch(name)(**params, exact=exact)
    try:
        model.learn_target(y)
    except ValueError:
        return None
    if exact:
        model.learn_columns(X)
    start = X.shape[1] if exact else 0
    while start < X.shape[1]:
        stop = min(X.shape[1], start + int(rng.integers(1, 20)))
        model.learn_columns(X[:, start:stop], range(start, stop))
        start = stop
    if getattr(model, "path_truncated", False):
        return None  # it has warned that the pool is too small for the rest of the path
    proven, selected = model.n_certified, model.selected
    if exact and proven < len(selected):
        return f"{params}: {proven} of {len(selected)} proven"
    answer = module.answer(X, y, **params)["selected"]
    if selected[:proven] != answer[:proven] or (exact and len(selected) != len(answer)):
        message = f"{params}, exact={exact}: {selected} (proven {proven}), {answer} expected"
        # Beyond the rank, and among near copies, rounding decides ties.
        judge = getattr(module, "is_as_good", None)
        return None if judge and judge(X, y, selected[:proven], **params) else message
    return None


def tiny(seed):
    """Return columns of three to eight rows, and a target: a number, numbers or two classes."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 9)), int(rng.integers(2, 40))
    rank = int(rng.integers(1, 4))
    kinds = (
        rng.normal(size=(n, p)),
        rng.integers(-2, 3, (n, p)) * 1.0,
        rng.integers(0, 2, (n, p)) * 1.0,
        rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p)),
        rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4, p) + 10.0 ** rng.integers(0, 4),
    )
    X = kinds[int(rng.integers(len(kinds)))]
    for _ in range(int(rng.integers(0, 6))):
        a, b, c = rng.integers(0, p, 3)
        like = (X[:, b], 3.0 - 2.0 * X[:, b], X[:, b] + X[:, c], np.full(n, 1.5))
        X[:, a] = like[int(rng.integers(len(like)))]
    # Columns that vary by rounding only are made constant: the definition does not detect them.
    X[:, np.ptp(X, axis=0) <= 1e-9 * np.abs(X).max(axis=0)] = 1.5
    classes = np.array(["a", "b"])[np.append(rng.integers(0, 2, n - 2), [0, 1])]
    targets = (
        rng.normal(size=n),
        rng.integers(0, 3, n) + 0.5 * (np.arange(n) == 0),
        classes,
        X[:, rng.integers(0, p)] + X[:, rng.integers(0, p)],
        rng.normal(size=(n, int(rng.integers(2, 4)))),
    )
    return X, targets[int(rng.integers(len(targets)))], rng


def wrong_tiny(name, seed):
    """Return a description of the error on one tiny stream; None if there is none.

    Ties count only if the definition has them. A LASSO has several solutions if columns depend on
    one another, so its optimality conditions are checked instead.
    """
    X, y, rng = tiny(seed)
    learner = registry.fetch(name)
    rules = rules_of(learner)
    params = {
        parameter: values[int(rng.integers(len(values)))]
        for parameter, values in DRAWN.items()
        if parameter in rules
    }
    params["k"] = k = int(rng.integers(1, 8))
    pool = {"max_candidates": max(k, 2) + int(rng.integers(0, 3))}
    models = [learner(**params), learner(**params, **pool)]
    if "exact" in rules:
        models.append(learner(**params, **pool, exact=True))
    for model in models:
        try:
            model.learn_target(y)
        except ValueError:
            return None
        model.learn_columns(X)
    module = import_module(f"tests.reference.{learner.__module__.rpartition('.')[2]}")
    if name == "Lasso":
        proven = [model for model in models if model.n_certified and not model.path_truncated]
        if all(model.duality_gap <= 1e-9 and model.kkt_violation <= 1e-9 for model in proven):
            return None
        answer = "the conditions of optimality"
    else:
        answer = module.answer(X, y, **params)["selected"]
        complete = models[:1] + models[2:]
        if all(m.selected[: m.n_certified] == answer[: m.n_certified] for m in models) and all(
            m.n_certified == len(answer) == len(m.selected) for m in complete
        ):
            return None
    found = [(model.selected, model.n_certified) for model in models]
    return f"{params}, {pool}: {found}, {answer} expected"


def wrong_in_parts(name, seed, pass_counts=None):
    """Return a description of the error on one stream, learnt in parts; None if there is none.

    The numbers of passes, in one process and in parts, are added to `pass_counts`.
    """
    X, y, params, exact, rng = case(name, seed)
    learner, n = registry.fetch(name), len(X)
    asked, given = {"y": y}, {}
    if rng.random() < 0.2:
        asked["covariates"], given = rng.normal(size=(n, 2)), {"covariates": ("a", "b")}
    if y.ndim == 1 and rng.random() < 0.2:
        asked["y"] = np.array(["no", "yes"])[(y > np.median(y)).astype(int)]
        params |= {"family": "logistic"} if "family" in rules_of(learner) else {}
    parts = in_parts.streams(X, in_parts.cut(X.shape[1], rng))
    try:
        whole = learner(**(params | given | {"max_candidates": None}))
        one, model = (learner(**params, **given, exact=exact) for _ in range(2))
        for each in (whole, one, model):
            each.learn_target(**asked)
    except ValueError:
        return None
    whole.learn_columns(X)
    one.learn_columns(X)
    model = in_parts.learn(model, parts, rng)
    if any(getattr(each, "path_truncated", False) for each in (one, model)):
        return None
    if pass_counts is not None and exact:
        pass_counts.append((one.n_passes, model.n_passes))
    proven, selected = model.n_certified, model.selected
    if exact and proven < len(selected):
        return f"{params}: {proven} of {len(selected)} proven"
    answers = [whole.selected, *([one.selected] if exact else [])]
    module = import_module(f"tests.reference.{learner.__module__.rpartition('.')[2]}")
    plain = asked["y"] is y and not given
    if plain:
        answers.append(module.answer(X, y, **params)["selected"])
    right = [
        selected[:proven] == answer[:proven] and (not exact or len(selected) == len(answer))
        for answer in answers
    ]
    judge = getattr(module, "is_as_good", None)
    if all(right) or (judge and judge(*alongside(X, **asked), selected[:proven], **params)):
        return None
    message = f"{params}, exact={exact}, given={given}, {asked['y'].dtype}"
    return f"{message}: {selected} (proven {proven}), {answers} expected"


def alongside(X, y, covariates=None):
    """Return columns and a target, of numbers or two classes, adjusted for covariates."""
    Y = (y == "yes") * 1.0 if y.dtype.kind == "U" else y
    if covariates is None:
        return X, Y
    Q = np.linalg.qr(np.column_stack([np.ones(len(X)), covariates]))[0]
    return X - Q @ (Q.T @ X), Y - Q @ (Q.T @ Y)


def main(n_streams, wrong=wrong):
    """Run n_streams through every learner; return the number of errors."""
    total = 0
    for name in learners() + (SINGLE_PASS if wrong is wrong_tiny else []):
        found = [(seed, what) for seed in range(n_streams) if (what := wrong(name, seed))]
        for seed, what in found:
            print(f"{name}, stream {seed}: {what}")
        print(f"{name}: {len(found)} of {n_streams} streams wrong")
        total += len(found)
    return total


if __name__ == "__main__":
    asked = {"parts": wrong_in_parts, "tiny": wrong_tiny}.get("".join(sys.argv[2:]), wrong)
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, asked) else 0)

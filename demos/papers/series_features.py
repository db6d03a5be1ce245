"""Features of time series, extracted and selected in one pass, and by tsfresh: cost and errors.

The data are seven of the classification sets that come with aeon (not JapaneseVowels, whose 7,680
series of 12 channels take hours), and generated series for size. Cost is seconds of the processor
on one thread, and the rise of memory above libraries and data, each in a process of its own:
streamsel extracts and selects in one pass (SelectKBest, fdr = 0.05), tsfresh extracts (n_jobs = 0),
imputes and selects (fdr_level = 0.05, for several classes with multiclass=True). Compilation and
imports are left out.

Errors: half of the series of each class train, the other half test, five times. A rule is all
features, the features of an fdr of 0.05 (of the package whose features they are), or
ForwardSelection, MRMR or ProjSe with k of 10, 25 or 50. "Chosen" is the rule of these selectors
with the smallest error in a three-fold cross-validation of the training half alone. Errors are the
mean of LDA (shrunk), an SVM (Gaussian kernel) and a random forest of 200 trees; features are scaled
to deviation 1 and cut at 10. Missing features of tsfresh are replaced by the median of the training
rows, infinite ones by their extremes, as its own impute does.

Values are the same if they differ by at most 1e-8, in units of the larger of the value and a
thousandth of the largest of its column.

aeon and tsfresh are in the Python that STREAMSEL_PEERS names. A quick run needs neither: its data
are generated, and streamsel is alone.
"""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _series as contestants
import numpy as np
import pandas as pd
from _experiment import Experiment, Row, machine, table
from scipy.stats import wilcoxon
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.svm import SVC

from streamsel import MRMR, ForwardSelection, ProjSe, SelectKBest
from streamsel.stream import as_stream, iter_series_features

DATASETS = (
    *("ArrowHead", "BasicMotions", "GunPoint", "ItalyPowerDemand", "OSULeaf"),
    *("PickupGestureWiimoteZ", "ACSF1"),
)
# Name -> series, channels, observations, and the parameters of tsfresh that are feasible.
GENERATED: dict[str, tuple[int, int, int, tuple[str, ...]]] = {
    "generated, 500 × 6 × 100": (500, 6, 100, ("Efficient", "Comprehensive")),
    "generated, 50 × 1 × 10,000": (50, 1, 10_000, ("Efficient",)),
    "generated, 20,000 × 6 × 100": (20_000, 6, 100, ()),
}
OURS, ALL, FDR, CHOSEN = "streamsel", "all", "fdr 0.05", "chosen"
SELECTORS: dict[str, Callable[[int], Any]] = {
    "ForwardSelection": ForwardSelection,
    "MRMR": MRMR,
    "ProjSe": ProjSe,
}
RULES = {
    f"{name}, k = {k}": (make, k)
    for (name, make), k in itertools.product(SELECTORS.items(), (10, 25, 50))
}
CUT = 10.0


def generated(n: int, channels: int, length: int) -> contestants.Series:
    """Return noise of three autocorrelations, one a class, in the first channel only."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, channels, length))
    for t in range(1, length):
        X[:, 0, t] += 0.3 * y * X[:, 0, t - 1]
    return contestants.Series(list(X), y)


def costs(dataset: str, data: contestants.Series, sets: tuple[str, ...], folder: Path) -> list[Row]:
    """Return what each program takes to extract and select."""
    lengths = [x.shape[1] for x in data.series]
    shape = {
        "series": len(lengths),
        "channels": len(data.series[0]),
        "shortest": min(lengths),
        "longest": max(lengths),
    }
    jobs = [(OURS, ("streamsel_fdr",)), (f"{OURS}, forward", ("streamsel_forward",))]
    jobs += [(f"tsfresh, {which}", ("tsfresh", which)) for which in sets]
    made = []
    for program, (name, *args) in jobs:
        found = contestants.job(name, folder, *args)
        if found is not None:
            made.append({"dataset": dataset, "kind": "cost", "set": program} | shape | found)
    return made


def feature_sets(
    data: contestants.Series, sets: tuple[str, ...], folder: Path
) -> Iterator[tuple[str, np.ndarray, list[str]]]:
    """Yield name, features and their names."""
    columns = dict(iter_series_features(data.series))
    yield OURS, np.column_stack([*columns.values()]), list(columns)
    for which in sets:
        path = folder / f"tsfresh_{which}.npz"
        if path.is_file():
            with np.load(path) as file:
                yield f"tsfresh, {which}", file["X"], file["names"].tolist()


def same_values(found: dict[str, tuple[np.ndarray, list[str]]], dataset: str) -> list[Row]:
    """Count the features of one name that have the values of tsfresh, where it has one."""
    theirs = found.get("tsfresh, Efficient")
    if theirs is None:
        return []
    X, names = theirs
    columns = dict(zip(names, X.T, strict=True))
    shared = different = 0
    other: list[str] = []
    for name, x in zip(found[OURS][1], found[OURS][0].T, strict=True):
        if name not in columns:
            continue
        y = columns[name]
        defined = np.isfinite(y)
        size = np.abs(y[defined]).max(initial=0.0)
        gap = np.abs(x - y)[defined] > 1e-8 * np.maximum(np.abs(y[defined]), 1e-3 * size) + 1e-12
        shared += 1
        different += bool(gap.any())
        other += [name.split("__")[1]] * bool(gap.any())
    return [
        {
            "dataset": dataset,
            "kind": "same",
            "set": "tsfresh, Efficient",
            "features": shared,
            "selected": different,
            "rule": ", ".join(dict.fromkeys(other)),
        }
    ]


def imputed(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace missing and infinite features by median and extremes of the training rows."""
    finite = np.where(np.isfinite(train), train, np.nan)
    empty = np.isnan(finite).all(axis=0)
    finite[:, empty] = 0.0
    median, low, high = (f(finite, axis=0) for f in (np.nanmedian, np.nanmin, np.nanmax))
    parts = []
    for X in (train, test):
        filled = np.where(np.isnan(X), median, X)
        filled = np.where(filled == np.inf, high, filled)
        parts.append(np.where(filled == -np.inf, low, filled))
        parts[-1][:, empty] = 0.0
    return parts[0], parts[1]


def selected(rule: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the indices of the features that a rule selects in training rows."""
    if rule == ALL:
        return np.arange(X.shape[1])
    if rule == FDR:
        model: Any = SelectKBest(fdr=contestants.FDR)
    else:
        make, k = RULES[rule]
        model = make(k)
    model.learn_target(y.astype(str))
    model.learn_columns(as_stream(np.asfortranarray(X)))
    return np.array(model.selected, dtype=int)


def error(train: np.ndarray, y: np.ndarray, test: np.ndarray, expected: np.ndarray) -> float:
    """Return the mean share of wrong classes of three classifiers."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    varies = deviation > 0.0
    if not varies.any():
        classifiers: list[Any] = [DummyClassifier()]
        train, test = np.zeros((len(train), 1)), np.zeros((len(test), 1))
    else:
        classifiers = [
            LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
            SVC(),
            RandomForestClassifier(200, random_state=0),
        ]
        train, test = (
            np.clip((X[:, varies] - mean[varies]) / deviation[varies], -CUT, CUT)
            for X in (train, test)
        )
    wrong = [np.mean(one.fit(train, y).predict(test) != expected) for one in classifiers]
    return float(np.mean(wrong))


def chosen_rule(X: np.ndarray, y: np.ndarray, rules: list[str]) -> str:
    """Return the rule with the smallest error in a cross-validation."""
    total = np.zeros(len(rules))
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        A, B = imputed(X[train], X[test])
        for r, rule in enumerate(rules):
            at = selected(rule, A, y[train])
            total[r] += error(A[:, at], y[train], B[:, at], y[test])
    return rules[int(np.argmin(total))]


def errors(
    experiment: Experiment,
    dataset: str,
    found: dict[str, tuple[np.ndarray, list[str]]],
    y: np.ndarray,
    folder: Path,
) -> list[Row]:
    """Return the errors of every rule on every set of features."""
    n_splits = experiment.small(5, 1)
    splitter = StratifiedShuffleSplit(n_splits, test_size=0.5, random_state=0)
    splits = list(splitter.split(y, y))
    np.save(folder / "splits.npy", [train for train, _ in splits])
    rules = experiment.small(list(RULES), list(RULES)[:2])
    made = []
    for name, (X, _) in found.items():
        masks = None
        if name != OURS:
            which = name.split(", ")[1]
            contestants.job("tsfresh_select", folder, which)
            masks = np.load(folder / f"masks_{which}.npy")
        for s, (train, test) in enumerate(splits):
            A, B = imputed(X[train], X[test])
            best = chosen_rule(X[train], y[train], rules)
            for rule in (ALL, FDR, *rules, CHOSEN):
                if rule == CHOSEN:
                    is_best = [row for row in made if row["rule"] == best]
                    made.append(is_best[-1] | {"rule": CHOSEN, "chosen": best})
                    continue
                if rule == FDR and masks is not None:
                    at = np.flatnonzero(masks[s])
                else:
                    at = selected(rule, A, y[train])
                wrong = error(A[:, at], y[train], B[:, at], y[test])
                row = {"dataset": dataset, "kind": "error", "set": name, "rule": rule}
                made.append(row | {"split": s, "selected": at.size, "error": wrong})
    return made


def work_of(experiment: Experiment) -> Any:
    def work(dataset: str) -> list[Row]:
        folder = Path(tempfile.mkdtemp(prefix="series-"))
        try:
            sets: tuple[str, ...] = ("Efficient", "Comprehensive")
            if dataset in GENERATED or experiment.quick:
                *shape, sets = GENERATED.get(dataset, (60, 2, 40, ()))
                contestants.write(folder, generated(*shape))
            elif contestants.job("aeon", folder, dataset) is None:
                experiment.give_up("aeon is absent. Hint: STREAMSEL_PEERS, or --quick")
            data = contestants.read(folder)
            made = costs(dataset, data, sets, folder)
            if dataset in GENERATED and not sets:
                return made
            found = {name: (X, names) for name, X, names in feature_sets(data, sets, folder)}
            made += same_values(found, dataset)
            if dataset not in GENERATED:
                made += errors(experiment, dataset, found, data.y, folder)
        finally:
            shutil.rmtree(folder)
        return made

    return work


def percent(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.1f}"


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def cost_table(found: pd.DataFrame) -> str:
    lines = []
    for dataset, runs in found[found["kind"] == "cost"].groupby("dataset", sort=False):
        by_set = runs.set_index("set")
        one = by_set.iloc[0]
        lengths = f"{one['longest']:,.0f}"
        if one["shortest"] < one["longest"]:
            lengths = f"{one['shortest']:.0f} to {lengths}"
        shape = f"{one['series']:,.0f} × {one['channels']:.0f} × {lengths}"
        line = {"data": dataset, "series × channels × length": shape}
        for name in (OURS, "tsfresh, Efficient", "tsfresh, Comprehensive"):
            used = by_set.loc[name] if name in by_set.index else None
            title = name.removeprefix("tsfresh, ")
            line |= {
                f"{title}, s": "" if used is None else seconds(used["seconds"]),
                f"{title}, MiB": "" if used is None else f"{used['memory']:,.0f}",
                f"{title}, features": "" if used is None else f"{used['features']:,.0f}",
            }
        lines.append(line)
    return table(pd.DataFrame(lines))


def ratios(found: pd.DataFrame) -> str:
    """Return how much longer tsfresh takes, and the share of learning in a pass of streamsel."""
    cost = found[found["kind"] == "cost"].pivot_table(
        index="dataset", columns="set", values=["seconds", "extraction"]
    )
    text = []
    for which in ("Efficient", "Comprehensive"):
        name = f"tsfresh, {which}"
        if name in cost["seconds"]:
            ratio = (cost["seconds"][name] / cost["seconds"][OURS]).dropna()
            alone = (cost["extraction"][name] / cost["extraction"][OURS]).dropna()
            fastest, slowest, median = ratio.min(), ratio.max(), ratio.median()
            text += [
                (
                    f"tsfresh ({which}) takes {fastest:,.0f} to {slowest:,.0f} times as long as "
                    f"streamsel (median {median:,.0f})."
                ),
                (
                    f"Extraction by tsfresh ({which}) takes {alone.min():,.0f} to "
                    f"{alone.max():,.0f} times as long as extraction by streamsel."
                ),
            ]
    for name, what in ((OURS, "SelectKBest"), (f"{OURS}, forward", "ForwardSelection(25)")):
        share = 1.0 - cost["extraction"][name] / cost["seconds"][name]
        text.append(
            f"{what} takes {percent(share.median())} % of the time of streamsel's pass (median), "
            f"and at most {percent(share.max())} %."
        )
    return "\n".join(f"- {line}" for line in text)


def error_table(means: pd.DataFrame) -> str:
    """Return the errors per dataset of some rules, and their mean."""
    shown = means.loc[:, (slice(None), (ALL, FDR, CHOSEN))]
    shown = pd.concat([shown, shown.dropna().mean().to_frame(mean_title(means)).T])
    lines = []
    for dataset, errors_of in shown.iterrows():
        line = {"data": dataset}
        for name, rule in shown.columns:
            mark = "**" if round(errors_of[(name, rule)] - errors_of.min(), 6) == 0 else ""
            line[f"{name}: {rule}"] = mark + percent(errors_of[(name, rule)]) + mark
        lines.append(line)
    return table(pd.DataFrame(lines))


def mean_title(means: pd.DataFrame) -> str:
    whole = "all" if means.notna().all(axis=None) else "the"
    complete = "" if whole == "all" else " with all features"
    return f"mean over {whole} {len(means.dropna())} datasets{complete}"


def rule_table(found: pd.DataFrame, means: pd.DataFrame) -> str:
    errors_of = means.dropna().mean()
    counts = found[(found["kind"] == "error") & found["dataset"].isin(means.dropna().index)]
    counts = counts.groupby(["set", "rule"])["selected"].median()
    sets = means.columns.get_level_values(0).unique()
    lines = []
    for rule in (ALL, FDR, *RULES, CHOSEN):
        line = {"rule": rule}
        for name in sets:
            if (name, rule) in errors_of.index:
                line |= {
                    f"{name}: error": percent(errors_of[(name, rule)]),
                    f"{name}: features": f"{counts[(name, rule)]:,.0f}",
                }
        if len(line) > 1:
            lines.append(line)
    return table(pd.DataFrame(lines))


def contests(means: pd.DataFrame) -> str:
    """Compare errors over datasets: smaller, equal, larger, and Wilcoxon's signed rank test."""
    lines = []
    for rule, name in itertools.product((ALL, FDR, CHOSEN), dict.fromkeys(means.columns.levels[0])):
        if name == OURS:
            continue
        pair = means[[(OURS, rule), (name, rule)]].dropna().round(6)
        gap = pair[(OURS, rule)] - pair[(name, rule)]
        counts = (int((gap < 0).sum()), int((gap == 0).sum()), int((gap > 0).sum()))
        lines.append(
            {
                "rule": rule,
                "streamsel against": name,
                "smaller – equal – larger error": " – ".join(map(str, counts)),
                "mean difference, points": f"{100 * gap.mean():+.1f}",
                "p": f"{wilcoxon(gap).pvalue:.2f}" if gap.any() else "1",
            }
        )
    return table(pd.DataFrame(lines))


def section(found: pd.DataFrame) -> str:
    is_error = found["kind"] == "error"
    means = found[is_error].pivot_table(
        index="dataset", columns=["set", "rule"], values="error", sort=False
    )
    text = f"""
### Cost

{cost_table(found)}

{ratios(found)}
"""
    same = found[found["kind"] == "same"]
    if len(same):
        others = sorted({name for text in same["rule"].dropna() for name in text.split(", ")})
        text += f"""
### The same values

{same["features"].iloc[0] / same_channels(found):.0f} value columns have the same names as in
tsfresh. Over all data, the values of {same["selected"].sum():,.0f} of {same["features"].sum():,.0f}
columns differ: {", ".join(f"`{name}`" for name in others) or "none"}.
"""
    text += f"""
### Errors

Errors are means over splits in %. The smallest error of a row is bold.

{error_table(means)}

The next table shows the {mean_title(means)} by rule, and the median number of features:

{rule_table(found, means)}
"""
    if len(means.columns.get_level_values(0).unique()) > 1:
        text += f"""
The last table compares errors over the {len(means)} datasets for each rule:

{contests(means)}
"""
    return f"""{text}
[All numbers](series-features.csv) were made by `python demos/papers/series_features.py`
with {machine()}.
"""


def same_channels(found: pd.DataFrame) -> float:
    """Return the number of value columns of the first dataset whose values were compared."""
    first = found[found["kind"] == "same"]["dataset"].iloc[0]
    return float(found[found["dataset"] == first]["channels"].dropna().iloc[0])


def main() -> None:
    experiment = Experiment("series-features", __doc__)
    tasks = experiment.small([*GENERATED, *DATASETS], ["generated, small"])
    found = experiment.each(work_of(experiment), [(name,) for name in tasks])
    experiment.publish(section(found))


if __name__ == "__main__":
    main()

"""How do components depend on the order of columns, the size of the pool, and columns of noise?

Three short studies of RidgeComponents, on problems of `extractors_worth.py`, with its splits, scale
and models; the measure is the mean error of LDA, 1-NN and an SVM, or R2.

- *Order.* One split, columns in the order of the file and in six random ones: a full pool prunes
  its variables, and so depends on the order; SOSPCA does, too. K does not.
- *Size.* Three splits, pools of 50 to 1,000 and the Gram matrix, on problems of more than 1,000
  columns.
- *Noise.* Three splits; 1,000 and 10,000 Gaussian columns are added to those of the data, all in
  random order. And false discoveries: the target is shuffled, or it is Gaussian with Gaussian
  columns, a hundred times. `n_above_noise` should then be more than 0 one time in twenty at most.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from _curves import curves, panels, without_unit_effect
from _experiment import COLOURS, Dataset, Experiment, Row, machine, plt, table
from _extractors import STRONG, Pair, axes, kind_of, pls, ridge, sospca
from _problems import FAMILY, MANY, MOST_ROWS, TWO, Split, needed, split_of
from extractors_worth import CLASSIFIERS, R2, measures

from streamsel import RidgeComponents

QS = (2, 10)
SIZES = (50, 100, 200, 500, 1_000)
COUNTS = (0, 1_000, 10_000)
ORDER, SIZE, NOISE, NULL = "order", "size", "noise", "noise target"
N_ORDERS, N_SPLITS, N_TARGETS = 7, 3, 100
GRAM = "K"
ORDERED = [
    *("basehock", "internet_ads_adbench", "leukemia_golub3571", "sms_spam", "glioma", "isolet"),
    *("mnist_10k", "factors of 2,000", "five of 2,000", "AR of 2,000", "copies of 2,000"),
]
SIZED = [
    *("basehock", "colon_alon", "internet_ads_adbench", "leukemia_golub3571", "sms_spam", "glioma"),
    *("factors of 2,000", "five of 2,000", "AR of 2,000", "copies of 2,000"),
]
NOISED = [
    "breast_cancer",
    "ionosphere",
    "sonar",
    "spambase",
    "leukemia_golub3571",
    "digits",
    "wine",
]
GAUSSIAN = "Gaussian, 100 × 2,000"
SHUFFLED = [GAUSSIAN, "breast_cancer", "leukemia_golub3571", "sms_spam", "isolet"]
POWERS: dict[str, dict[str, Any]] = {GRAM: {}, STRONG: {"relevance_power": 8.0}}
STYLES = {
    GRAM: (COLOURS[0], "o-"),
    "pool of 500": (COLOURS[0], "--"),
    STRONG: (COLOURS[2], "^-"),
    "SOSPCA": (COLOURS[1], "s-"),
    "PLS": (COLOURS[4], "D-"),
}


def pool(m: int) -> str:
    return f"pool of {m:,}"


def value(measured: Row) -> float:
    """Return the mean error, or R²."""
    return measured[R2] if R2 in measured else float(np.mean([measured[c] for c in CLASSIFIERS]))


def ways(split: Split, sizes: tuple[int, ...], names: tuple[str, ...]) -> Iterator[Row]:
    """Yield the value of pools of some sizes and of some methods on a split."""
    A, y, B, y_test = split
    most = max(QS)
    pairs: dict[tuple[str, int], Pair] = {}
    made = {pool(m): {"max_support": m} for m in sizes}
    made |= {name: POWERS[name] for name in names if name in POWERS}
    for name, parameters in made.items():
        Z, Zt = ridge(A, y, B, most, **parameters)
        pairs |= {(name, q): (Z[:, :q], Zt[:, :q]) for q in QS}
    if "SOSPCA" in names:
        pairs |= {("SOSPCA", q): sospca(A, y, B, q) for q in QS}
    if "PLS" in names:
        rotated = axes(A, B)
        Z, Zt = pls(rotated[0], y, rotated[1], most)
        pairs |= {("PLS", q): (Z[:, :q], Zt[:, :q]) for q in QS}
    for (name, q), (Z, Zt) in pairs.items():
        yield {"method": name, "q": q, "value": value(measures(Z, y, Zt, y_test))}


def in_order(split: Split, order: int) -> Iterator[Row]:
    """Yield the value of pools and SOSPCA in an order of the columns; 0 is that of the file."""
    p = split.A.shape[1]
    columns = np.random.default_rng(order).permutation(p) if order else np.arange(p)
    reordered = split._replace(A=split.A[:, columns], B=split.B[:, columns])
    yield from ways(reordered, (200, 500), ("SOSPCA",))


def in_noise(split: Split, seed: int) -> Iterator[Row]:
    """Yield the value of the components among columns of noise."""
    rng = np.random.default_rng(seed)
    for count in COUNTS:
        A, B = (
            np.hstack([rows, rng.standard_normal((len(rows), count))])
            for rows in (split.A, split.B)
        )
        columns = rng.permutation(A.shape[1])
        with_noise = split._replace(A=A[:, columns], B=B[:, columns])
        for row in ways(with_noise, (500,), tuple(STYLES)):
            yield row | {"noise": count}


def above_noise(split: Split | None, first: int, last: int) -> Iterator[Row]:
    """Yield the number of columns above the noise floor if the target is shuffled, or noise."""
    for seed in range(first, last):
        rng = np.random.default_rng(seed)
        if split is None:
            A, y = rng.standard_normal((100, 2_000)), rng.standard_normal(100)
        else:
            A, y = split.A, rng.permutation(split.y)
        model = RidgeComponents(2, target_type=kind_of(y), max_support=200)
        model.learn_target(y)
        model.learn_columns(A)
        yield {"method": pool(200), "split": seed, "value": model.n_above_noise}


def work(
    datasets: dict[str, Dataset], most_rows: int, study: str, problem: str, at: int
) -> list[Row]:
    """Return the rows of one split, order, or ten shuffled targets of a problem."""
    if problem == GAUSSIAN:
        rows = above_noise(None, *(10 * at, 10 * at + 10))
        return [{"study": study, "problem": problem} | row for row in rows]
    split = split_of(datasets, problem, 0 if study in (ORDER, NULL) else at, most_rows)
    shape = {"study": study, "problem": problem, "n": len(split.A), "p": split.A.shape[1]}
    if study == NULL:
        return [shape | row for row in above_noise(split, 10 * at, 10 * at + 10)]
    made = {
        ORDER: partial(in_order, split, at),
        SIZE: partial(ways, split, SIZES, (GRAM,)),
        NOISE: partial(in_noise, split, at),
    }
    return [shape | {"split": at} | row for row in made[study]()]


def title(problem: str, results: pd.DataFrame) -> str:
    rows = results[results.problem == problem]
    what = "error" if FAMILY[problem] in (TWO, MANY) else "R²"
    return f"{problem} ({int(rows.n.max()):,} × {int(rows.p.max()):,}), {what}"


def order_table(results: pd.DataFrame) -> str:
    """Return the value in the order of the file, and mean and deviation over random orders."""
    rows = results[results.study == ORDER]
    lines = []
    for problem, of_problem in rows.groupby("problem", sort=False):
        line = {"file, random orders": title(str(problem), rows)}
        for method in (pool(500), pool(200), "SOSPCA"):
            for q in QS:
                values = of_problem[(of_problem.method == method) & (of_problem.q == q)]
                values = values.set_index("split").value
                random = values.drop(0)
                line[f"{method}, q = {q}"] = (
                    f"{values[0]:.1f}, {random.mean():.1f} ± {random.std():.1f}"
                )
        lines.append(line)
    return table(pd.DataFrame(lines))


def size_table(results: pd.DataFrame) -> str:
    rows = results[results.study == SIZE]
    lines = []
    for problem, of_problem in rows.groupby("problem", sort=False):
        line = {"m": title(str(problem), rows)}
        for q in QS:
            values = of_problem[of_problem.q == q].groupby("method").value.mean()
            for name in [*map(pool, SIZES), GRAM]:
                head = name.removeprefix("pool of ")
                line[f"{head}, q = {q}"] = f"{values[name]:.1f}"
        lines.append(line)
    return table(pd.DataFrame(lines))


def noise_table(results: pd.DataFrame) -> str:
    rows = results[results.study == NOISE]
    lines = []
    for problem, of_problem in rows.groupby("problem", sort=False):
        line = {"columns of noise: 0, 1,000, 10,000": title(str(problem), rows)}
        for q in QS:
            for method in STYLES:
                values = of_problem[(of_problem.q == q) & (of_problem.method == method)]
                by = values.groupby("noise").value.mean()
                line[f"{method}, q = {q}"] = ", ".join(f"{by[count]:.0f}" for count in COUNTS)
        lines.append(line)
    return table(pd.DataFrame(lines))


def null_table(results: pd.DataFrame) -> str:
    """Return how often any column was above the noise floor, and how many at most."""
    rows = results[results.study == NULL]
    lines = [
        {
            "target of noise, columns of": problem,
            "any": f"{(values > 0).sum()} of {len(values)}",
            "at most": f"{values.max():.0f}",
        }
        for problem, values in rows.groupby("problem", sort=False).value
    ]
    return table(pd.DataFrame(lines))


def draw(results: pd.DataFrame) -> plt.Figure:
    """Draw the loss of pools by their size, and mean errors among columns of noise."""
    titles = ["a pool against the Gram matrix", f"columns of noise, {max(QS)} components"]
    figure, axes = panels(titles, 2, 3.0, below=0.05)
    draw_sizes(axes[0], results[results.study == SIZE])
    noised = results[(results.study == NOISE) & (results.q == max(QS))]
    errors = noised.pivot_table("value", "problem", ["noise", "method"])
    labels = {GRAM: "Gram matrix", STRONG: "Gram matrix, sharper"}
    curves(axes[1], without_unit_effect(errors), STYLES, COUNTS, labels)
    axes[1].set_xticks(range(len(COUNTS)), [f"{count:,}" for count in COUNTS])
    axes[1].set(xlabel="additional columns of noise", ylabel="error, %")
    axes[1].set_ylim(0.0, None)
    for panel, loc in zip(axes, ("upper right", "upper left"), strict=False):
        panel.legend(loc=loc)
    return figure


def draw_sizes(panel: plt.Axes, sized: pd.DataFrame) -> None:
    """Draw the loss of pools, one line per measure and number of components."""
    lost, styles = {}, {}
    for q, style in zip(QS, ("o-", "s--"), strict=True):
        of_q = sized[sized.q == q].pivot_table(index="problem", columns="method", values="value")
        is_error = np.array([FAMILY[name] in (TWO, MANY) for name in of_q.index])
        for kind, colour in ((True, COLOURS[0]), (False, COLOURS[1])):
            label = f"{'error' if kind else 'R²'}, {q} components"
            styles[label] = (colour, style)
            here = of_q[is_error == kind]
            for m in SIZES:
                more = here[pool(m)] - here[GRAM]
                lost[f"{m:,}", label] = more if kind else -more
    curves(panel, pd.DataFrame(lost), styles, [f"{m:,}" for m in SIZES])
    panel.axhline(0.0, color=COLOURS[6], lw=0.8)
    panel.set(xlabel="size of the pool", ylabel="points lost")


def text(results: pd.DataFrame, figure: str) -> str:
    return f"""
**Order.** Cells show the error or R² of one split, in %. The first number is for the order of the
file. The second is the mean ± standard deviation over {N_ORDERS - 1} random orders.

{order_table(results)}

**Size m of the pool.** Numbers are means over {N_SPLITS} splits, in %.

{size_table(results)}

![(a) Loss of a pool against its size m; (b) mean error against the number of noise
columns.]({figure})

Error bars are 95 % intervals of the mean over problems. In panel b, differences between problems
are removed. *Sharper* means γ = 8.

**Noise.** Cells show the error in % with 0, 1,000 and 10,000 columns of noise. Errors are means
over {N_SPLITS} splits.

{noise_table(results)}

**Noise as the target.** The table counts the runs in which any column exceeded the noise floor
(nominally 5 % for Gaussian columns). *At most* is the largest number of such columns in a run.

{null_table(results)}

[All numbers](extractors-limits.csv) were made by `python demos/papers/extractors_limits.py`
with {machine()}.
"""


def main() -> None:
    experiment = Experiment("extractors-limits", __doc__)
    studies = {
        ORDER: (experiment.small(ORDERED, ["digits"]), N_ORDERS),
        SIZE: (experiment.small(SIZED, ["AR of 2,000"]), N_SPLITS),
        NOISE: (experiment.small(NOISED, ["wine"]), N_SPLITS),
        NULL: (experiment.small(SHUFFLED, [GAUSSIAN]), N_TARGETS // 10),
    }
    wanted = {problem for problems, _ in studies.values() for problem in problems}
    files = [needed(problem) for problem in sorted(wanted - {GAUSSIAN})]
    found = experiment.datasets(dict.fromkeys(name for name in files if name))
    datasets = {dataset.name: dataset for dataset in found}
    tasks = [
        (study, problem, at)
        for study, (problems, count) in studies.items()
        for problem in problems
        for at in range(experiment.small(count, 3))
    ]
    most_rows = experiment.small(MOST_ROWS, 200)
    results = experiment.each(partial(work, datasets, most_rows), tasks)
    experiment.publish(text(results, experiment.draw(draw(results))))


if __name__ == "__main__":
    main()

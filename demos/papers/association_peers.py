"""Are the p-values of association tests those of the usual programs, and at what cost?

Every test runs in one process of its own, on one thread, on the same data: the mixed model against
GEMMA (its score and its Wald test), the linear and the logistic model against PLINK 2, the score
test of the logistic model against statsmodels, permutations against Bioconductor's multtest, and
rank tests against scanpy, illico and SciPy. Compared are the largest and the median difference of
log10 p, seconds (reading included; imports and compilation left out), and the peak of memory.

Programs that are not installed are left out: `gemma`, `plink2` and `Rscript` with multtest on the
path, and statsmodels, scanpy and illico in the Python that STREAMSEL_PEERS names.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import _association as association
import numpy as np
import pandas as pd
from _experiment import Experiment, Row, machine, read, table

TASKS = (
    *("mixed model, CD8", "mixed model, simulated", "linear, CD8", "logistic, 705 cases"),
    *("logistic, 25 cases", "permutations", "ranks, 5,000 cells", "ranks, word counts"),
    "ranks, expression",
)
PERMUTATIONS = 1000
MAX_T = """
library(multtest)
X <- t(as.matrix(read.csv("x.csv", header=FALSE)))
y <- scan("labels", quiet=TRUE)
start <- proc.time()[3]
found <- mt.maxT(X, y, test="t.equalvar", B={B})
cat(sprintf('{{"seconds": %f}}\\n', proc.time()[3] - start))
write(found$adjp[order(found$index)], "adjusted", ncolumns=1)
"""


def genotypes(experiment: Experiment) -> np.ndarray:
    """Return the genotypes of mice, or of simulated people in a quick run."""
    if not experiment.quick:
        return read(experiment.data / "mouse_hs1940.npz").archive["X"]
    rng = np.random.default_rng(0)
    families = rng.binomial(2, rng.uniform(0.2, 0.5, size=300), size=(20, 300))
    own = rng.binomial(2, rng.uniform(0.2, 0.5, size=300), size=(120, 300))
    return np.where(rng.random((120, 300)) < 0.5, families[np.arange(120) % 20], own).astype(
        np.int8
    )


def background(X: np.ndarray, rng: np.random.Generator, share: float) -> np.ndarray:
    """Return a trait with a share explained by many small effects of all columns."""
    Z = X - X.mean(axis=0)
    u = Z @ rng.normal(size=Z.shape[1])
    return np.sqrt(share) * u / u.std() + np.sqrt(1.0 - share) * rng.normal(size=len(X))


def write_plink(folder: Path, X: np.ndarray, y: np.ndarray, *, is_case: bool) -> None:
    """Write a cohort with a phenotype as PLINK does; the first allele is counted."""
    n, p = X.shape
    codes = np.array([0b11, 0b10, 0b00], np.uint8)[X]
    codes = np.vstack([codes, np.zeros((-n % 4, p), np.uint8)]).reshape(-1, 4, p)
    packed = codes[:, 0] | codes[:, 1] << 2 | codes[:, 2] << 4 | codes[:, 3] << 6
    (folder / "x.bed").write_bytes(b"\x6c\x1b\x01" + packed.T.tobytes())
    lines = (f"{1 + 19 * j // p}\tv{j}\t0\t{j + 1}\tA\tG\n" for j in range(p))
    (folder / "x.bim").write_text("".join(lines))
    phenotypes = [str(int(value) + 1) if is_case else repr(float(value)) for value in y]
    people = (f"F{i}\ti{i}\t0\t0\t1\t{value}\n" for i, value in enumerate(phenotypes))
    (folder / "x.fam").write_text("".join(people))
    np.save(folder / "y.npy", y)


def row(task: str, test: str, who: str, used: association.Measured | None, **more: Any) -> Row:
    cost = {} if used is None else {"seconds": used.seconds, "memory": used.memory}
    return {"task": task, "test": test, "program": who} | cost | more


def differences(ours: np.ndarray, theirs: np.ndarray, below: float = 0.0) -> Row:
    """Return how log10 p differ; `below`: only where both are at most that."""
    both = np.isfinite(ours) & np.isfinite(theirs) & (ours <= below) & (theirs > -299.0)
    d = np.abs(ours[both] - theirs[both])
    if not d.size:
        return {"tests": 0}
    return {"tests": int(d.size), "largest": d.max(), "median": np.median(d)}


def mixed(task: str, X: np.ndarray, y: np.ndarray, folder: Path) -> list[Row]:
    write_plink(folder, X, y, is_case=False)
    used = association.job("streamsel_mixed", folder)
    made = [row(task, "relatedness, REML, F test", "streamsel", used)]
    ours = np.load(folder / "streamsel_mixed.npy")
    keep = ["-maf", 0, "-miss", 1, "-r2", 1]
    first = association.measured(["gemma", "-bfile", "x", "-gk", 1, "-o", "k", *keep], folder)
    if first is None:
        return made
    matrix = ["-k", "output/k.cXX.txt"]
    for mode, test, column in (
        (3, "score, λ by ML", "p_score"),
        (1, "Wald, λ per variant", "p_wald"),
    ):
        second = association.measured(
            ["gemma", "-bfile", "x", *matrix, "-lmm", mode, "-o", "a", *keep], folder
        )
        if second is None:
            break
        found = pd.read_csv(folder / "output" / "a.assoc.txt", sep="\t").set_index("rs")
        theirs = np.full(X.shape[1], np.nan)
        theirs[[int(name[1:]) for name in found.index]] = np.log10(found[column])
        both = second._replace(
            seconds=first.seconds + second.seconds, memory=max(first.memory, second.memory)
        )
        made.append(row(task, test, "GEMMA", both, **differences(ours, theirs)))
        if mode == 3:
            made += same_ratio(task, theirs, folder)
    return made


def same_ratio(task: str, theirs: np.ndarray, folder: Path) -> list[Row]:
    """Compare the formulas: with GEMMA's matrix, its variance ratio, and its form of F."""
    ratio = ratio_by_ml(np.loadtxt(folder / "output" / "k.cXX.txt"), np.load(folder / "y.npy"))
    (folder / "ratio").write_text(repr(ratio))
    association.job("streamsel_mixed_ml", folder)
    ours = np.load(folder / "streamsel_mixed_ml.npy")
    return [row(task, "score, λ by ML, same matrix", "GEMMA", None, **differences(ours, theirs))]


def ratio_by_ml(K: np.ndarray, y: np.ndarray) -> float:
    """Return the variance ratio by maximum likelihood, with an intercept."""
    from scipy.optimize import minimize_scalar

    omega, E = np.linalg.eigh(K)
    z, o = E.T @ y, E.T @ np.ones(y.size)

    def loss(log_ratio: float) -> float:
        v = np.exp(log_ratio) * np.maximum(omega, 0.0) + 1.0
        mean = (o * z / v).sum() / (o * o / v).sum()
        return y.size * np.log(((z - mean * o) ** 2 / v).sum()) + np.log(v).sum()

    return float(
        np.exp(
            minimize_scalar(
                loss, bounds=(-12.0, 12.0), method="bounded", options={"xatol": 1e-10}
            ).x
        )
    )


def linear(task: str, X: np.ndarray, y: np.ndarray, folder: Path) -> list[Row]:
    is_case = task.startswith("logistic")
    write_plink(folder, X, y, is_case=is_case)
    ours = "streamsel_logistic" if is_case else "streamsel_linear"
    used = association.job(ours, folder)
    test = "score, saddlepoint" if is_case else "F test"
    made = [row(task, test, "streamsel", used)]
    found = np.load(folder / f"{ours}.npy")
    first, plain = found if is_case else (found, found)
    peer = association.measured(
        ["plink2", "--bfile", "x", "--glm", "allow-no-covars", "--threads", 1, "--out", "a"], folder
    )
    if peer is not None:
        (path,) = folder.glob("a.PHENO1.glm.*")
        theirs = pd.read_csv(path, sep="\t").set_index("ID")["P"]
        theirs = np.log10(theirs.reindex([f"v{j}" for j in range(X.shape[1])]).to_numpy(float))
        test = "Wald, Firth if it fails" if is_case else "t test"
        made.append(row(task, test, "PLINK 2", peer, **differences(first, theirs)))
    if is_case:
        columns = np.flatnonzero(np.isfinite(first))[:: max(1, X.shape[1] // 2000)]
        np.savez(folder / "data.npz", X=X[:, columns], y=y)
        peer = association.job("statsmodels", folder)
        if peer is not None:
            theirs = np.load(folder / "statsmodels.npy")
            made.append(
                row(
                    *(task, f"score, {columns.size:,} variants", "statsmodels", peer),
                    **differences(plain[columns], theirs),
                )
            )
    return made


def permutations(experiment: Experiment, task: str, folder: Path) -> list[Row]:
    if experiment.quick:
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, 100)).astype(np.float32), np.arange(40) % 2
        X[:, 0] += y
    else:
        data = read(experiment.data / "all_bcrabl.npz")
        X, y = data.X, data.y
    B = experiment.small(PERMUTATIONS, 99)
    np.savez(folder / "data.npz", X=X, labels=y, permutations=B)
    np.savetxt(folder / "x.csv", X, delimiter=",", fmt="%.9g")
    np.savetxt(folder / "labels", y, fmt="%d")
    (folder / "max_t.R").write_text(MAX_T.format(B=B))
    used = association.job("streamsel_max_t", folder)
    test = f"max T, step-down, {B:,} permutations"
    made = [row(task, test, "streamsel", used)]
    peer = association.measured(["Rscript", "max_t.R"], folder)
    if peer is not None:
        ours, theirs = np.load(folder / "streamsel_max_t.npy"), np.loadtxt(folder / "adjusted")
        both = np.isfinite(ours) & np.isfinite(theirs)
        gap = np.abs(ours - theirs)[both]
        found = {"tests": int(gap.size), "largest p": gap.max(), "median p": np.median(gap)}
        made.append(row(task, test, "multtest", peer, **found))
    return made


def ranks(experiment: Experiment, task: str, folder: Path) -> list[Row]:
    rng, peers = np.random.default_rng(0), ("scanpy", "illico")
    if task == "ranks, expression":
        peers = ("scipy",)
        X, labels = rng.normal(size=(60, 50)), np.arange(60) % 3
        if not experiment.quick:
            data = read(experiment.data / "all_bcrabl.npz")
            X, labels = data.X, data.y
        np.savez(folder / "data.npz", X=X, labels=labels.astype(str))
    else:
        import scipy.sparse

        if task == "ranks, word counts" and not experiment.quick:
            data = read(experiment.data / "basehock.npz")
            X, labels = scipy.sparse.csc_matrix(data.X), data.y
        else:
            n, p = experiment.small((5000, 5000), (200, 100))
            means = rng.lognormal(-2.0, 1.0, size=p)
            labels = rng.integers(0, 20, size=n)
            X = rng.poisson(means * rng.gamma(0.5, 2.0, size=(n, 1)), size=(n, p))
            X[:, : p // 10] *= rng.binomial(1, 0.3 + 0.03 * labels[:, None], size=(n, p // 10))
            X = scipy.sparse.csc_matrix(X)
        parts = {"data": X.data.astype(np.float32), "indices": X.indices, "indptr": X.indptr}
        np.savez(
            folder / "data.npz", shape=X.shape, labels=np.char.add("g", labels.astype(str)), **parts
        )
    used = association.job("streamsel_rank", folder)
    n_groups = np.unique(labels).size
    test = f"Mann-Whitney, {n_groups} groups, {X.shape[0]:,} × {X.shape[1]:,}"
    made = [row(task, test, "streamsel", used)]
    ours = np.load(folder / "streamsel_rank.npy")
    for peer in peers:
        used = association.job(peer, folder)
        if used is not None:
            theirs = np.load(folder / f"{peer}.npy")
            made.append(row(task, test, peer, used, **differences(ours, theirs)))
    return made


def work_of(experiment: Experiment) -> Any:
    def work(task: str) -> list[Row]:
        rng = np.random.default_rng(0)
        folder = Path(tempfile.mkdtemp(prefix="association-"))
        try:
            kind, _, which = task.partition(", ")
            if kind == "permutations":
                return permutations(experiment, task, folder)
            if kind == "ranks":
                return ranks(experiment, task, folder)
            X = genotypes(experiment)
            y = background(X, rng, 0.6) + 0.15 * X[:, :: X.shape[1] // 5].sum(axis=1)
            if which == "CD8" and not experiment.quick:
                with np.load(experiment.data / "mouse_hs1940.npz") as file:
                    y = file["y"]
            if kind == "mixed model":
                return mixed(task, X, y, folder)
            if kind == "logistic":
                n_cases = min(int(which.split()[0]), len(y) // 2)
                y = (np.argsort(np.argsort(-y)) < n_cases).astype(int)
            return linear(task, X, y, folder)
        finally:
            shutil.rmtree(folder)

    return work


def digits(value: Any) -> str:
    return "" if pd.isna(value) else f"{value:.1e}" if value < 0.01 else f"{value:.2f}"


def section(found: pd.DataFrame) -> str:
    lines = []
    for _, one in found.iterrows():
        p = one.get("largest p")
        is_p = p is not None and not pd.isna(p)
        largest, median = (
            one.get(f"{name}{' p' if is_p else ''}") for name in ("largest", "median")
        )
        lines.append(
            {
                "data": one["task"],
                "program": one["program"],
                "test": one["test"],
                "tests": "" if pd.isna(one["tests"]) else f"{one['tests']:,.0f}",
                "largest difference": digits(largest) + (" of p" if is_p else ""),
                "median": digits(median),
                "s": "" if pd.isna(one["seconds"]) else f"{one['seconds']:.2f}",
                "MiB": "" if pd.isna(one["memory"]) else f"{one['memory']:,.0f}",
            }
        )
    # Not folded: this table is the result.
    return f"""
{table(pd.DataFrame(lines)).replace("<details", "<details open", 1)}

*Largest difference* and *median* compare log₁₀ p of the program and of streamsel. For permutations,
they compare adjusted p-values.

[All numbers](association-peers.csv) were made by `python demos/papers/association_peers.py` with
{machine()}.
"""


def main() -> None:
    experiment = Experiment("association-peers", __doc__)
    if not experiment.quick:
        experiment.available(("mouse_hs1940", "all_bcrabl", "basehock"))
    found = experiment.each(work_of(experiment), [(task,) for task in TASKS])
    experiment.publish(section(found))


if __name__ == "__main__":
    main()

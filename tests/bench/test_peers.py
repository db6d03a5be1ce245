"""streamsel beside every peer that does the same job, from small data to wide: the page's tables.

What the result is worth is noted with its time, so that a fast wrong answer is seen.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.bench import jobs

ROOT = Path(__file__).parents[2]
FULL = [(200, 20), (500, 200), (1_000, 5_000), (1_000, 50_000), (200, 100_000), (50_000, 50)]
SIZES = [jobs.SMALL, (200, 200)] if jobs.QUICK else FULL
# Where memory is measured too, of jobs that take no longer than so many seconds; on less data it
# is that of Python's own objects.
MEMORY = [(200, 200)] if jobs.QUICK else [(1_000, 50_000), (50_000, 50)]
PATIENCE = 10.0
# On how many fresh rows it is seen what a result is worth.
FRESH = 500
# A job that is done within these seconds is done again and again, up to so many times.
SECONDS, ROUNDS = (0.2, 3) if jobs.QUICK else (1.0, 15)


def worth(data, fresh, result):
    """Return what a result is worth.

    `found`: how many of the sources are among the variables selected. `r2`: how much of the
    target's variance in fresh rows a linear model on variables or components explains.
    """
    scores = result if callable(result) else lambda X: X[:, result]
    A, B = (np.column_stack([np.ones(len(X)), scores(X)]) for X in (data.X, fresh.X))
    weights = np.linalg.lstsq(A, data.T, rcond=None)[0]
    rest = ((fresh.T - B @ weights) ** 2).sum() / ((fresh.T - data.T.mean(axis=0)) ** 2).sum()
    told = {"r2": 1.0 - rest}
    if not callable(result):
        told["found"] = int(np.isin(data.places, result).any(axis=1).sum())
    return told


def memory(family, name, n, p):
    """Return by how many bytes a process that does nothing else rose; None where nobody tells."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.bench.jobs", family]
    done = subprocess.run(
        [*command, str(n), str(p), name], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.replace("None", "null"))


def clocked(run, args, seconds):
    started = time.perf_counter()
    result = run(*args)
    seconds.append(time.perf_counter() - started)
    return result


def spread(times):
    """Return what is told of repeated times."""
    low, median, high = np.quantile(times, [0.25, 0.5, 0.75])
    return {"seconds": median, "iqr": high - low, "rounds": len(times)}


def first_times(group, told, n, p):
    """Do each job that nothing hinders once, and tell what its result is worth.

    Returns job -> (function, arguments) and job -> list of seconds, empty after a warm-up.
    """
    family = jobs.FAMILIES[group]
    data, fresh = family.data(n, p), family.data(FRESH, p, seed=2)
    todo = {job: found for job, found in family.jobs.items() if "why" not in told[job]}
    forms = {job.form: job.form(data) for job in todo.values()}
    calls = {name: (job.run, forms[job.form]) for name, job in todo.items()}
    times = {name: [] for name in calls}
    for name, call in calls.items():
        if (n, p) == jobs.SMALL:
            seconds, _, result = jobs.pace(group, name)
            times[name].append(seconds)
        else:
            result = clocked(*call, times[name])
        if not told[name]["limit"]:
            told[name] |= worth(data, fresh, result)
    for name in list(calls)[1:]:
        if times[name][0] < SECONDS:
            times[name].clear()
    return calls, times


@pytest.mark.parametrize(("n", "p"), SIZES)
@pytest.mark.parametrize("name", jobs.FAMILIES)
def test_peers(benchmark, contest, name, n, p):
    """Time ours through the fixture, and the others before each of its rounds.

    The first time of each is a warm-up, but of those whose time is long.
    """
    benchmark.group, family = name, jobs.FAMILIES[name]
    told = {job: {"limit": family.jobs[job].limit} for job in family.jobs}
    for job, about in told.items():
        if why := jobs.hindrance(name, job, n, p):
            about["why"] = why
    calls, times = first_times(name, told, n, p)
    ours, *others = calls
    first = times.pop(ours)[0]

    def before():
        for job in others:
            if sum(times[job]) < SECONDS:
                clocked(*calls[job], times[job])

    rounds = max(3, min(ROUNDS, round(SECONDS / first)))
    benchmark.pedantic(*calls[ours], setup=before, rounds=rounds)
    times[ours] = benchmark.stats.stats.data
    for job, found in times.items():
        told[job] |= spread(found) | {"ratio": np.median(found) / np.median(times[ours])}
    if (n, p) in MEMORY:
        for job in [ours] if jobs.QUICK else calls:
            if told[job]["seconds"] > PATIENCE:
                told[job]["memory_why"] = f"more than {PATIENCE:.0f} s"
            elif not told[job]["limit"]:
                told[job]["memory"] = memory(name, job, n, p)
    contest(
        name,
        n=n,
        p=p,
        about=family.about,
        sources=jobs.SOURCES,
        data_bytes=8 * n * p,
        contestants=told,
    )

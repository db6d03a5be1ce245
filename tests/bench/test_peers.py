"""Compare streamsel with every peer that does the same job, from small to wide data.

The quality of a result is recorded with its time, so that a fast wrong answer is visible.
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
# Sizes at which memory is measured too (on less data it is mostly that of Python's own objects),
# and the longest time of a job whose memory is measured.
MEMORY = [(200, 200)] if jobs.QUICK else [(1_000, 50_000), (50_000, 50)]
MEMORY_SECONDS = 10.0
# Number of fresh rows on which the quality of a result is measured.
FRESH = 500
# A job is repeated until it has run for so many seconds, or so many times.
SECONDS, ROUNDS = (0.2, 3) if jobs.QUICK else (1.0, 15)


def quality(data, fresh, result):
    """Return the quality of a result.

    `r2` is the share of the target's variance in fresh rows that a linear model on the result
    explains. `found` is the number of sources that the selected variables show.
    """
    scores = result if callable(result) else lambda X: X[:, result]
    A, B = (np.column_stack([np.ones(len(X)), scores(X)]) for X in (data.X, fresh.X))
    weights = np.linalg.lstsq(A, data.T, rcond=None)[0]
    rest = ((fresh.T - B @ weights) ** 2).sum() / ((fresh.T - data.T.mean(axis=0)) ** 2).sum()
    found = {"r2": 1.0 - rest}
    if not callable(result):
        found["found"] = int(np.isin(data.copies, result).any(axis=1).sum())
    return found


def memory(family, name, n, p):
    """Return by how many bytes memory rises in a process for one job; None if it is unknown."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.bench.jobs", family]
    done = subprocess.run(
        [*command, str(n), str(p), name], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.replace("None", "null"))


def timed(run, args, seconds):
    started = time.perf_counter()
    result = run(*args)
    seconds.append(time.perf_counter() - started)
    return result


def spread(times):
    """Return median, interquartile range and number of times."""
    low, median, high = np.quantile(times, [0.25, 0.5, 0.75])
    return {"seconds": median, "iqr": high - low, "rounds": len(times)}


def first_times(group, contestants, n, p):
    """Run each job once, unless it is skipped; add the quality of its result to `contestants`.

    Returns job -> (function, arguments), and job -> list of seconds, empty after a warm-up.
    """
    family = jobs.FAMILIES[group]
    data, fresh = family.data(n, p), family.data(FRESH, p, seed=2)
    todo = {job: found for job, found in family.jobs.items() if "why" not in contestants[job]}
    forms = {job.form: job.form(data) for job in todo.values()}
    calls = {name: (job.run, forms[job.form]) for name, job in todo.items()}
    times = {name: [] for name in calls}
    for name, call in calls.items():
        if (n, p) == jobs.SMALL:
            seconds, _, result = jobs.pace(group, name)
            times[name].append(seconds)
        else:
            result = timed(*call, times[name])
        if not contestants[name]["limit"]:
            contestants[name] |= quality(data, fresh, result)
    for name in list(calls)[1:]:
        if times[name][0] < SECONDS:
            times[name].clear()
    return calls, times


@pytest.mark.parametrize(("n", "p"), SIZES)
@pytest.mark.parametrize("name", jobs.FAMILIES)
def test_peers(benchmark, contest, name, n, p):
    """Time ours through the fixture, and the others before each of its rounds.

    The first run of a job is a warm-up, unless it takes long.
    """
    benchmark.group, family = name, jobs.FAMILIES[name]
    contestants = {job: {"limit": family.jobs[job].limit} for job in family.jobs}
    for job, about in contestants.items():
        if why := jobs.why_skipped(name, job, n, p):
            about["why"] = why
    calls, times = first_times(name, contestants, n, p)
    ours, *others = calls
    first = times.pop(ours)[0]

    def before():
        for job in others:
            if sum(times[job]) < SECONDS:
                timed(*calls[job], times[job])

    rounds = max(3, min(ROUNDS, round(SECONDS / first)))
    benchmark.pedantic(*calls[ours], setup=before, rounds=rounds)
    times[ours] = benchmark.stats.stats.data
    for job, found in times.items():
        ratio = np.median(found) / np.median(times[ours])
        contestants[job] |= spread(found) | {"ratio": ratio}
    if (n, p) in MEMORY:
        for job in [ours] if jobs.QUICK else calls:
            if contestants[job]["seconds"] > MEMORY_SECONDS:
                contestants[job]["memory_why"] = f"more than {MEMORY_SECONDS:.0f} s"
            elif not contestants[job]["limit"]:
                contestants[job]["memory"] = memory(name, job, n, p)
    contest(
        name,
        n=n,
        p=p,
        about=family.about,
        sources=jobs.SOURCES,
        data_bytes=8 * n * p,
        contestants=contestants,
    )

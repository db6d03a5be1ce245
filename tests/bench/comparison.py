"""Find the ratios of a run that are worse than those of the run before, by more than their noise.

Times of two runs are never compared: the machine may have been another, or busy. A ratio was
measured in turn, in one run.
"""

import json
import math
import statistics
import subprocess
from pathlib import Path
from typing import NamedTuple

COMMITTED = "docs/pages/benchmarks/benchmarks.json"
# Relative noise of a ratio without a known spread.
UNKNOWN = 0.1
# A change is reported if it is so many times the noise of both runs, and at least so large.
TIMES, LEAST = 3.0, 0.05
# Fewer rounds give no estimate of their spread.
ROUNDS = 4


def ratio_of(ours, limit):
    """Return the median of the rounds' ratios and their relative spread, None for few rounds.

    The spread is that of one round. That of the median would be too small: ratios of two runs
    differed by half of the former, and by two to seven times the latter.
    """
    ratios = [mine / theirs for mine, theirs in zip(ours, limit, strict=True)]
    median = statistics.median(ratios)
    deviations = [abs(ratio - median) for ratio in ratios]
    # For Gaussian numbers the median deviation is the standard one over 1.4826.
    noise = 1.4826 * statistics.median(deviations) / median
    return median, noise if len(ratios) >= ROUNDS else None


class Ratio(NamedTuple):
    """Time of ours over that of a limit, and its relative noise."""

    what: str
    value: float
    noise: float


def ratios(results):
    """Return name -> `Ratio` of all results in a benchmarks.json."""
    found = {}
    for one in results["benchmarks"]:
        name, info = one["name"], one["extra_info"]
        if "ratio" in info:
            noise = info.get("noise")
            found[name] = Ratio(
                info.get("what", name), info["ratio"], UNKNOWN if noise is None else noise
            )
        # Only the limit: if ours got slower, the ratio to every peer would repeat it.
        contestants = info.get("contestants", {})
        for limit in (peer for peer, about in contestants.items() if about["limit"]):
            pair = next(iter(contestants.values())), contestants[limit]
            what = f"{one['group']}, {info['n']:,} × {info['p']:,} / {limit}"
            noise = math.hypot(*map(spread, pair))
            found[name] = Ratio(what, 1.0 / pair[1]["ratio"], noise)
    return found


def spread(contestant):
    """Return the relative spread of repeated times."""
    if contestant["rounds"] < ROUNDS:
        return UNKNOWN
    # For Gaussian numbers the interquartile range is 1.349 standard deviations.
    return contestant["iqr"] / 1.349 / contestant["seconds"]


def compare(before, now):
    """Return how many ratios are in both runs, and which of them changed; None for a quick run.

    `changes` are lists of label, ratio before, ratio now, noise of both, in decreasing order of
    the relative increase.
    """
    if before["quick"] or now["quick"]:
        return None
    old, new = ratios(before), ratios(now)
    both = [name for name in new if name in old]
    changes = []
    for name in both:
        (_, was, noise), (what, value, noise_now) = old[name], new[name]
        noise = math.hypot(noise, noise_now)
        if max(value / was, was / value) > 1.0 + max(LEAST, TIMES * noise):
            changes.append([what, was, value, noise])
    changes.sort(key=lambda change: change[1] / change[2])
    return {
        "machine": before["machine"],
        "streamsel": before["versions"]["streamsel"],
        "compared": len(both),
        "changes": changes,
    }


def is_worse(change):
    _, was, value, _ = change
    return value > was


def committed(root):
    """Return the numbers of the last commit, or those in the directory if there is no commit."""
    command = ["git", "show", f"HEAD:{COMMITTED}"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return json.loads(Path(root, COMMITTED).read_text(encoding="utf-8"))
    return json.loads(done.stdout)

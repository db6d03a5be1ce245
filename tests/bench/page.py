"""Run all benchmarks and write their page: `python -m tests.bench.page`.

The page is `docs/pages/benchmarks.md`; its plots and the numbers, `benchmarks.json`, are in
`benchmarks/`. The script prints which ratios changed since the last commit by more than their
noise; `--check` does only that, and fails if one is worse. `--from` uses the numbers of an earlier
run. `--resume DIR` continues a run that was stopped.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from tests.bench import comparison

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("streamsel", "numpy", "scipy", "numba", "river", "scikit-learn"),
    *("fastcan", "mrmrs", "mrmr_selection", "celer", "online-fdr", "pandas", "polars"),
)
# Title of a table, or of a part of a comparison -> its description.
ABOUT = {
    "time": "The table shows the time of streamsel, and the ratios of the others to it; the faster "
    "ones are in bold.",
    "peak memory": "The table shows the peak memory of a separate process on Linux, above that of "
    "libraries and data; less than ours is in bold.",
    "quality of the result": "A linear model predicts the target of fresh rows from the result. "
    "The table shows the explained share of its variance (1 is all, below 0 is worse than the "
    "mean), and how many of the target's sources are among the selected variables. More explained "
    "variance than ours is in bold.",
    "against the limit": "The table shows the time of one pass over the data, or of a peer, "
    "measured in turn with ours, and the median of the rounds' ratios. A missed threshold is in "
    "bold. GB/s are the bytes of the data over the time.",
    "one thread and two": "`n_jobs=1` and `n_jobs=2` are measured in turn, with BLAS on one "
    "thread. A gain by the second thread is in bold. The first line is the machine's own speed of "
    "reading memory.",
    "rows per second": "One target, k = 10 or 10 components. All rows name the same features in "
    "the same order, the fastest case for ProjSe and SOSPCA. River's selector is in bold if it is "
    "faster than ProjSe, its projector if it is faster than SOSPCA.",
}


# Tables of the comparisons with peers, and those that benchmarks filled line by line


def tables(noted, contests):
    """Return title -> lines of text, the first of them the head.

    `noted` are such tables; `contests` are dicts, some with `contestants` as in test_peers.py.
    """
    groups = {}
    for found in contests:
        if "contestants" in found["extra_info"]:
            groups.setdefault(found["group"], []).append(found["extra_info"])
    made = {}
    for group, records in groups.items():
        names = list(records[0]["contestants"])
        peers = [name for name in names if not records[0]["contestants"][name]["limit"]]
        head = [name if name in peers else f"{name}, the limit" for name in names]
        lines = [[size(one), *times(one["contestants"])] for one in records]
        made[group] = [["n × p", *head], *lines]
        lines = [
            [size(one), quantity(one["data_bytes"], BYTES), *memories(one["contestants"], peers)]
            for one in records
            if remembered(one)
        ]
        made[f"{group}: peak memory"] = [["n × p", "data", *peers], *lines]
        lines = [[size(one), *qualities(one, peers)] for one in records]
        made[f"{group}: quality of the result"] = [["n × p", *peers], *lines]
    return {title: lines for title, lines in made.items() if lines[1:]} | noted


def size(record):
    return f"{record['n']:,} × {record['p']:,}"


def times(contestants):
    """Ours in seconds, the others as multiples of it."""
    ours, *others = contestants.values()
    return [quantity(ours["seconds"], SECONDS)] + [
        one.get("why") or bold(number(one["ratio"]), one["ratio"] < 1 and not one["limit"])
        for one in others
    ]


def memories(contestants, peers):
    ours = contestants[peers[0]].get("memory")
    cells = []
    for name in peers:
        one = contestants[name]
        mine = one.get("memory")
        text = "" if mine is None else quantity(max(mine, 0), BYTES)
        less = None not in (mine, ours) and mine < ours
        cells.append(one.get("why") or one.get("memory_why") or bold(text, less))
    return cells


def remembered(record):
    """Return name -> bytes of the contestants whose memory is known."""
    contestants = record["contestants"].items()
    return {name: one["memory"] for name, one in contestants if one.get("memory") is not None}


def qualities(record, peers):
    contestants = record["contestants"]
    cells = []
    for name in peers:
        one = contestants[name]
        if "why" in one:
            cells.append(one["why"])
            continue
        found = f", {one['found']} of {record['sources']}" if "found" in one else ""
        more = round(one["r2"], 2) > round(contestants[peers[0]]["r2"], 2)
        cells.append(bold(f"{one['r2']:.2f}{found}", more))
    return cells


SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def quantity(value, units):
    """Return a quantity in the largest of the units that leaves a 1 before the point."""
    factor, unit = next((pair for pair in units if value >= pair[0]), units[-1])
    return f"{number(value / factor)} {unit}"


def rate(data, seconds):
    """Return gigabytes a second."""
    return f"{data / seconds / 1e9:.3g}"


def number(value):
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.2g}"


def is_number(text):
    return text.lstrip("*+-≤< ")[:1].isdigit()


def bold(text, yes):
    return f"**{text}**" if yes and text else text


def aligned(lines):
    """Return the lines of a table as Markdown whose cells are aligned."""
    head, *rest = ([str(cell) for cell in line] for line in lines)
    rule = ["---:" if any(is_number(line[i]) for line in rest) else "---" for i in range(len(head))]
    whole = [head, ["---", *rule[1:]], *rest]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    for line in whole:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "| " + " | ".join(cells) + " |"


# The page


def page(results):
    """Return the page's Markdown."""
    parts = [opening(results)]
    about = {
        one["group"]: one["extra_info"]["about"]
        for one in results["benchmarks"]
        if "contestants" in one["extra_info"]
    }
    for title, lines in tables(results["tables"], results["benchmarks"]).items():
        group, _, what = title.partition(": ")
        if group not in about:
            parts += [f"## {title[0].upper()}{title[1:]}", *filter(None, [ABOUT.get(title)])]
        elif what:
            parts += [f"### {what.capitalize()}", ABOUT[what]]
        else:
            parts += [f"## {title}", f"{about[title]} {ABOUT['time']}"]
        parts.append("\n".join(aligned(lines)))
        kind = what or "time"
        if group in about and kind in ALT:
            alt = ALT[kind].format(group)
            parts.append(f"![{alt}](benchmarks/{plot_name(group, kind)})")
    return "\n\n".join([*parts, *since(results.get("since"))]) + "\n"


def opening(results):
    machine = results["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    quick = "**A quick run, on little data: not to be quoted.**\n\n" if results["quick"] else ""
    return (
        f"# Benchmarks\n\n{quick}Measured on {machine['cores']} cores of {machine['cpu']}, one "
        f"thread, with Python {machine['python']}, {packages}. The following command measures on "
        "your machine, and writes this page:\n\n```sh\npython -m tests.bench.page\n```\n\n"
        "Times are medians of runs in turn; each library gets the data in the form that it "
        'processes fastest. A job that takes longer than a second runs once. A time "more than" '
        "is extrapolated from a run on 500 × 200. All numbers: "
        "[benchmarks.json](benchmarks/benchmarks.json)."
    )


def since(compared):
    """Return the paragraphs on the changes since the run before."""
    if compared is None:
        return
    yield "## Since the run before"
    machine = compared["machine"]
    yield (
        f"{compared['compared']} ratios were measured in the run before too (streamsel "
        f"{compared['streamsel']}, {machine['cores']} cores of {machine['cpu']}). The table shows "
        f"those that changed by more than {comparison.TIMES:.0f} times the noise of both runs, and "
        f"by at least {comparison.LEAST:.0%}; worse ones are in bold. Times are not compared."
    )
    lines = changed(compared["changes"])
    yield "\n".join(aligned([CHANGED, *lines])) if lines else "None did."


CHANGED = ("what", "ratio before", "now", "change", "noise")


def changed(changes):
    """Return a line for each ratio that changed."""
    return [
        (
            what,
            f"{was:.3g}",
            f"{now:.3g}",
            bold(f"{now / was - 1.0:+.0%}", now > was),
            f"{noise:.0%}",
        )
        for what, was, now, noise in changes
    ]


ALT = {
    "time": "{}: time of every peer as a multiple of streamsel's, against the size of the data; "
    "error bars are as long as the interquartile range of its times.",
    "peak memory": "{}: peak memory of streamsel and its peers, and the size of the data.",
}


def plot_name(group, kind):
    words = "".join(c if c.isalnum() else " " for c in f"{group} {kind}".lower()).split()
    return f"{'-'.join(words)}.svg"


# Measuring


def versions():
    """Return package -> version of those that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def measure(folder):
    """Run all benchmarks, a file at a time; return the results that the page needs.

    The results of a file stay in `folder`; a file whose results are there does not run again.
    """
    files = sorted((ROOT / "tests" / "bench").glob("test_*.py"))
    failed = [path.name for path in files if not measured(path, kept(folder, path))]
    if failed:
        sys.exit(f"These did not all run, so that nothing was written: {', '.join(failed)}.")
    existing = filter(Path.is_file, (kept(folder, path) for path in files))
    runs = [json.loads(results.read_text()) for results in existing]
    tables = {}
    for run in runs:
        for title, (head, *lines) in run["tables"].items():
            tables.setdefault(title, [head]).extend(lines)
    benchmarks = [one for run in runs for one in run["benchmarks"]]
    return runs[0] | {"tables": tables, "benchmarks": benchmarks}


def kept(folder, path):
    return folder / f"{path.stem}.json"


def measured(path, results):
    """Run the benchmarks of a file, unless their results exist; return whether all of them ran."""
    if results.is_file():
        return True
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        command = [sys.executable, "-m", "pytest", str(path), "--benchmark-only", "-v"]
        options = [f"--benchmark-json={raw}", "--benchmark-columns=median,iqr,rounds"]
        # It warns if all benchmarks of a file are skipped; then there are no results.
        options += ["-W", "default::pytest_benchmark.logger.PytestBenchmarkWarning"]
        # Tests are sampled by this seed, benchmarks never.
        environment = os.environ | {"STREAMSEL_TEST_SEED": "all"}
        done = subprocess.run([*command, *options], cwd=ROOT, env=environment, check=False)
        if not done.returncode and raw.is_file() and raw.stat().st_size:
            results.write_text(json.dumps(trimmed(json.loads(raw.read_text()))))
    return not done.returncode


def trimmed(raw):
    """Return the part of pytest-benchmark's JSON that the page needs, without user and host."""
    machine = raw["machine_info"]
    cpu = machine.get("cpu", {})
    fields = ("name", "group", "params", "extra_info")
    return {
        "machine": {
            # Some processors report no brand.
            "cpu": cpu.get("brand_raw") or machine.get("processor") or machine.get("machine"),
            "cores": cpu.get("count") or os.cpu_count(),
            "python": machine["python_version"],
        },
        "versions": raw["versions"],
        "quick": raw["quick"],
        "tables": raw["tables"],
        "benchmarks": [
            {key: one[key] for key in fields}
            | {key: one["stats"][key] for key in ("median", "iqr", "rounds")}
            for one in raw["benchmarks"]
        ],
    }


def rounded(value):
    """Return all numbers in a value to five digits."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="source", type=Path, help="a benchmarks.json: draw it again")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs" / "pages", help="where the page goes"
    )
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="DIR",
        help="keep the results of each file here, and measure only those that are missing",
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args()
    if os.environ.get("STREAMSEL_BENCH") == "quick":
        if options.check:
            parser.error("a quick run cannot be compared: expected a whole one")
        if options.out == parser.get_default("out"):
            parser.error("a quick run is not for the docs: expected --out DIR")
    if options.source:
        results = json.loads(options.source.read_text(encoding="utf-8"))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.resume or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            results = rounded(measure(folder))
    if options.check or not options.source:
        results["since"] = rounded(comparison.compare(comparison.committed(ROOT), results))
    print("\n".join(since(results.get("since"))))
    if options.check:
        sys.exit(any(map(comparison.is_worse, results["since"]["changes"])))
    write(results, options.out)
    print(f"written: {options.out / 'benchmarks.md'}")


def write(results, out):
    """Write page, plots and numbers."""
    folder = out / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.json").write_text(
        json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (out / "benchmarks.md").write_text(page(results), encoding="utf-8")
    # It needs matplotlib.
    from tests.bench.plots import draw

    draw(results, folder)


if __name__ == "__main__":
    main()

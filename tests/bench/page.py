"""Measure everything, and make the page of it: `python tests/bench/page.py`.

Runs all benchmarks, with a line for each, and writes `benchmarks.md` into the docs, its plots and
its numbers, `benchmarks.json`, beside it. `--from` takes the numbers of an earlier run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("streamsel", "numpy", "scipy", "numba", "river", "scikit-learn"),
    *("fastcan", "mrmrs", "mrmr_selection", "pandas", "polars"),
)
# One colour a peer, the same in every plot.
COLOURS = ("#c8553d", "#c79a1e", "#6a4c93", "#4a8f5c", "#8c564b", "#17a2b8", "#e377c2")
OURS, LIMIT = "#3f7fbf", "#8a93a0"
# What is said of tables of this title, or of this part of a contest.
ABOUT = {
    "time": "What streamsel takes, and how many times as long the others: in bold who takes less.",
    "peak memory": "How far a process of its own, on Linux, rises above libraries and data while "
    "it does the job; in bold where it is less than ours.",
    "what the result is worth": "How much of the target's variance in fresh rows a linear "
    "model on the result explains (1 is all, below 0 is worse than the mean), and how many of the "
    "target's sources are among the selected variables. In bold where it explains more than ours.",
    "against the limit": "What one pass over the data, or a peer, takes, measured in "
    "turn with ours. A bar that is missed is in bold.",
    "rows a second": "One target, k = 10 or 10 components; rows that name the same features in the "
    "same order, which is what ProjSe and SOSPCA are fastest at. In bold where River's selector is "
    "ahead of ProjSe, or its projector of SOSPCA.",
}


# Tables: of the contests, whose numbers are told, and those that benchmarks noted line by line


def tables(noted, contests):
    """Return title -> lines of text, the first of them the head.

    `noted` are such tables; `contests` are dicts of which some have `contestants`, as
    test_peers.py tells them.
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
        lines = [[size(one), *worths(one, peers)] for one in records]
        made[f"{group}: what the result is worth"] = [["n × p", *peers], *lines]
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
        told = "" if mine is None else quantity(max(mine, 0), BYTES)
        less = None not in (mine, ours) and mine < ours
        cells.append(one.get("why") or one.get("memory_why") or bold(told, less))
    return cells


def worths(record, peers):
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


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def is_number(text):
    return text.lstrip("*+-≤< ")[:1].isdigit()


def bold(text, yes):
    return f"**{text}**" if yes and text else text


def aligned(lines):
    """Return the lines of a table as Markdown that is legible as it stands."""
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
    return "\n\n".join(parts) + "\n"


def opening(results):
    machine = results["machine"]
    told = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    quick = "**A quick run, on little data: not to be quoted.**\n\n" if results["quick"] else ""
    return (
        f"# Benchmarks\n\n{quick}Measured on {machine['cores']} cores of {machine['cpu']}, one "
        f"thread, with Python {machine['python']}, {told}. This measures it on yours, and writes "
        "this page:\n\n```sh\npython tests/bench/page.py\n```\n\n"
        "Times are medians of runs in turn, over data that every contestant gets in the form that "
        "it takes fastest; what takes longer than a second is run once. Where a cell says how long "
        "a job would take, that was foretold from a run on 500 × 200. All numbers: "
        "[benchmarks.json](benchmarks/benchmarks.json)."
    )


ALT = {
    "time": "{}: time of every peer as a multiple of streamsel's, against the size of the data.",
    "peak memory": "{}: peak memory of streamsel and its peers, and the size of the data.",
}


def plot_name(group, kind):
    words = "".join(c if c.isalnum() else " " for c in f"{group} {kind}".lower()).split()
    return f"{'-'.join(words)}.svg"


# Plots


def draw(results, out):
    """Draw time and memory of every contest into SVG files."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams |= {
        "svg.fonttype": "none",
        "svg.hashsalt": "streamsel",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
    }
    groups = {}
    for one in results["benchmarks"]:
        if "contestants" in one["extra_info"]:
            groups.setdefault(one["group"], []).append(one["extra_info"])
    colours = {}
    for group, records in groups.items():
        for name, one in list(records[0]["contestants"].items())[1:]:
            if not one["limit"]:
                colours.setdefault(name, COLOURS[len(colours) % len(COLOURS)])
        plots = {"time": plot_times}
        if with_memory := [one for one in records if remembered(one)]:
            plots["peak memory"] = plot_memory
        for kind, plot in plots.items():
            figure, axes = plt.subplots(figsize=(8.4, 4.2), layout="constrained")
            plot(axes, with_memory if kind == "peak memory" else records, colours)
            path = out / plot_name(group, kind)
            figure.savefig(path, metadata={"Date": None, "Creator": None})
            plt.close(figure)


def remembered(record):
    """Return name -> bytes of the contestants whose memory is known."""
    contestants = record["contestants"].items()
    return {name: one["memory"] for name, one in contestants if one.get("memory") is not None}


def plot_times(axes, records, colours):
    """Draw ratios against the number of cells; what is taller than wide stands by itself."""
    ordered = sorted(records, key=lambda one: one["n"] * one["p"])
    cells = [one["n"] * one["p"] for one in ordered]
    tall = [one["n"] > 100 * one["p"] for one in ordered]
    for name, first in list(records[0]["contestants"].items())[1:]:
        ratios = [one["contestants"][name].get("ratio", float("nan")) for one in ordered]
        points = list(zip(cells, ratios, tall, strict=True))
        style = {"color": LIMIT, "linestyle": "--"} if first["limit"] else {"color": colours[name]}
        label = f"{name.strip('`')}, the limit" if first["limit"] else name
        axes.plot(*shown(points, tall=False), marker="o", markersize=4, label=label, **style)
        axes.plot(*shown(points, tall=True), "o", mfc="white", color=style["color"], markersize=5)
    axes.axhline(1.0, color=OURS, linewidth=2)
    ours = next(iter(records[0]["contestants"]))
    place = {"textcoords": "offset points", "xytext": (20, -12), "color": OURS, "weight": "bold"}
    axes.annotate(ours, (min(cells), 1.0), **place)
    axes.set(xscale="log", yscale="log", ylabel=f"time / time of {ours}")
    axes.set_xticks(cells, [size(one) for one in ordered], rotation=25, ha="right", fontsize=9)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("n × p" + (" (hollow: tall data)" if any(tall) else ""))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)


def shown(points, tall):
    """Return abscissae and ordinates of the points that are tall, or of the others."""
    kept = [(x, y) for x, y, is_tall in points if is_tall == tall]
    return [x for x, _ in kept], [y for _, y in kept]


def plot_memory(axes, records, _):
    """Draw peak memory on the largest data on which it was measured."""
    record = max(records, key=lambda one: one["data_bytes"])
    bars = {name: max(found, 1e5) / 1e6 for name, found in remembered(record).items()}
    ours = next(iter(bars))
    axes.barh(
        list(bars), list(bars.values()), color=[OURS if name == ours else LIMIT for name in bars]
    )
    axes.bar_label(
        axes.containers[0], [quantity(1e6 * mb, BYTES) for mb in bars.values()], padding=3
    )
    axes.axvline(record["data_bytes"] / 1e6, color="#333333", linestyle=":")
    axes.set_title(f"{size(record)}; dotted: the data themselves", loc="left", fontsize=10)
    axes.set(xscale="log", xlabel="peak memory above libraries and data, MB")
    axes.set_xlim(0.05, 3 * max(*bars.values(), record["data_bytes"] / 1e6))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.invert_yaxis()


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


def measure():
    """Run all benchmarks; return what is kept of what they found."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "raw.json"
        command = [sys.executable, "-m", "pytest", "tests/bench", "--benchmark-only", "-v"]
        options = [f"--benchmark-json={path}", "--benchmark-columns=median,iqr,rounds"]
        done = subprocess.run([*command, *options], cwd=ROOT, check=False)
        if done.returncode or not path.is_file():
            sys.exit("The benchmarks did not all run: nothing was written.")
        return trimmed(json.loads(path.read_text()))


def trimmed(raw):
    """Return what the page needs of pytest-benchmark's JSON: nothing of who ran it, or where."""
    machine = raw["machine_info"]
    kept = ("name", "group", "params", "extra_info")
    return {
        "machine": {
            "cpu": machine["cpu"]["brand_raw"],
            "cores": machine["cpu"]["count"],
            "python": machine["python_version"],
        },
        "versions": raw["versions"],
        "quick": raw["quick"],
        "tables": raw["tables"],
        "benchmarks": [
            {key: one[key] for key in kept}
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
    options = parser.parse_args()
    if os.environ.get("STREAMSEL_BENCH") == "quick" and options.out == parser.get_default("out"):
        parser.error("a quick run is not for the docs: expected --out DIR")
    if options.source:
        results = json.loads(options.source.read_text(encoding="utf-8"))
    else:
        results = rounded(measure())
    folder = options.out / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.json").write_text(
        json.dumps(results, indent=1, ensure_ascii=False) + "\n"
    )
    (options.out / "benchmarks.md").write_text(page(results), encoding="utf-8")
    draw(results, folder)
    print(f"written: {options.out / 'benchmarks.md'}")


if __name__ == "__main__":
    main()

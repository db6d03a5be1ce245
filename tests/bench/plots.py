"""Draw the plots of the page: time and memory of streamsel and its peers."""

import string

import matplotlib as mpl

from streamsel.plot.style import ACCENT, INK, MARKS, ROLES, SELECTED
from tests.bench.page import BYTES, plot_name, quantity, remembered, size

mpl.use("svg")
from matplotlib import pyplot as plt

# The largest number of lines in a panel.
MAX_LINES = 6
# One colour and mark per library, the same in every plot; the first, streamsel's, is blue.
COLOURS = (SELECTED, *(ROLES[role] for role in ("third", "fourth", "sixth", "fifth")), INK)
OURS, LIMIT = ACCENT, "#8a93a0"


def draw(results, out):
    """Draw time and memory of every comparison into SVG files."""
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
    looks = {}
    for group, records in groups.items():
        for name, one in list(records[0]["contestants"].items())[1:]:
            if not one["limit"]:
                index = len(looks) % len(COLOURS)
                looks.setdefault(name, {"color": COLOURS[index], "marker": MARKS[index]})
        plots = {"time": plot_times}
        if with_memory := [one for one in records if remembered(one)]:
            plots["peak memory"] = plot_memory
        for kind, plot in plots.items():
            figure = plot(with_memory if kind == "peak memory" else records, looks)
            path = out / plot_name(group, kind)
            figure.savefig(path, metadata={"Date": None, "Creator": None})
            plt.close(figure)


def plot_times(records, looks):
    """Draw ratios against the number of cells, in as many panels as needed."""
    peers = list(records[0]["contestants"])[1:]
    # Each panel has the line of ours too.
    count = -(-len(peers) // (MAX_LINES - 1))
    size_of = -(-len(peers) // count)
    parts = [peers[i : i + size_of] for i in range(0, len(peers), size_of)]
    figure, panels = plt.subplots(
        *(count, 1), figsize=(7.6, 3.6 * count), layout="constrained", squeeze=False, sharey=True
    )
    for letter, axes, part in zip(string.ascii_lowercase, panels.flat, parts, strict=False):
        plot_ratios(axes, records, part, looks)
        if count > 1:
            axes.set_title(letter, loc="left", fontsize=10, fontweight="bold")
    return figure


def plot_ratios(axes, records, peers, looks):
    """Draw the ratios of some peers; tall data are separate, hollow marks."""
    ordered = sorted(records, key=lambda one: one["n"] * one["p"])
    cells = [one["n"] * one["p"] for one in ordered]
    tall = [one["n"] > 100 * one["p"] for one in ordered]
    for name in peers:
        found = [one["contestants"][name] for one in ordered]
        ratios = [one.get("ratio", float("nan")) for one in found]
        # Half of the interquartile range of its times.
        spread = [one.get("iqr", 0.0) / one.get("seconds", 1.0) / 2.0 for one in found]
        spread = [half * ratio for half, ratio in zip(spread, ratios, strict=True)]
        is_limit = found[0]["limit"]
        style = {"color": LIMIT, "marker": "o"} if is_limit else looks[name]
        style = style | {"elinewidth": 0.8}
        label = f"{name.strip('`')}, the limit" if is_limit else name
        points = list(zip(cells, ratios, spread, tall, strict=True))
        x, y, lengths = shown(points, tall=False)
        axes.errorbar(x, y, lengths, ls="--" if is_limit else "-", ms=4, label=label, **style)
        x, y, lengths = shown(points, tall=True)
        axes.errorbar(x, y, lengths, ls="", mfc="white", ms=5, **style)
    axes.axhline(1.0, color=OURS, linewidth=2)
    ours = next(iter(records[0]["contestants"]))
    style = {"textcoords": "offset points", "xytext": (20, -12), "color": OURS, "weight": "bold"}
    axes.annotate(ours, (min(cells), 1.0), **style)
    axes.set(xscale="log", yscale="log", ylabel=f"time / time of {ours}")
    axes.set_xticks(cells, [size(one) for one in ordered], rotation=25, ha="right", fontsize=9)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("rows × columns" + (" (hollow: tall data)" if any(tall) else ""))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)


def shown(points, tall):
    """Return abscissae, ordinates and error lengths of the tall points, or of the others."""
    kept = [point[:-1] for point in points if point[-1] == tall]
    return [list(column) for column in zip(*kept, strict=True)] or [[], [], []]


def plot_memory(records, _):
    """Draw peak memory on the largest data on which it was measured."""
    figure, axes = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
    record = max(records, key=lambda one: one["data_bytes"])
    heights = {name: max(found, 1e5) / 1e6 for name, found in remembered(record).items()}
    ours = next(iter(heights))
    axes.barh(
        list(heights),
        list(heights.values()),
        color=[OURS if name == ours else LIMIT for name in heights],
    )
    axes.bar_label(
        axes.containers[0], [quantity(1e6 * mb, BYTES) for mb in heights.values()], padding=3
    )
    axes.axvline(record["data_bytes"] / 1e6, color="#333333", linestyle=":")
    axes.set_title(f"{size(record)}; dotted: the data themselves", loc="left", fontsize=10)
    axes.set(xscale="log", xlabel="peak memory above libraries and data, MB")
    axes.set_xlim(0.05, 3 * max(*heights.values(), record["data_bytes"] / 1e6))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.invert_yaxis()
    return figure

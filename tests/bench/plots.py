"""The plots of the page: time and memory of every contest."""

import matplotlib as mpl

from streamsel.catalogue import names
from tests.bench.page import BYTES, plot_name, quantity, remembered, size

mpl.use("svg")
from matplotlib import pyplot as plt

# One colour a contestant, the same in every plot: streamsel's are blue.
COLOURS = ("#c8553d", "#c79a1e", "#6a4c93", "#4a8f5c", "#8c564b", "#17a2b8", "#e377c2")
BLUES = ("#17375e", "#8ab6e1", "#2aa198")
OURS, LIMIT = "#3f7fbf", "#8a93a0"


def draw(results, out):
    """Draw time and memory of every contest into SVG files."""
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
                palette = BLUES if name in names() else COLOURS
                used = sum(colour in palette for colour in colours.values())
                colours.setdefault(name, palette[used % len(palette)])
        plots = {"time": plot_times}
        if with_memory := [one for one in records if remembered(one)]:
            plots["peak memory"] = plot_memory
        for kind, plot in plots.items():
            figure, axes = plt.subplots(figsize=(8.4, 4.2), layout="constrained")
            plot(axes, with_memory if kind == "peak memory" else records, colours)
            path = out / plot_name(group, kind)
            figure.savefig(path, metadata={"Date": None, "Creator": None})
            plt.close(figure)


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

"""Manhattan plot: relevance of columns in order of arrival, or their p-values along a genome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamsel._utils import optional
from streamsel.plot._axes import annotate_noise, draw_noise_level, draw_points
from streamsel.plot._genome import Genome, lay_out
from streamsel.plot._labels import (
    count_label,
    fitting_labels,
    hover_name,
    integer_label,
    label_points,
    variable_label,
)
from streamsel.plot.inputs import Tests, report_density, report_from, tests_of
from streamsel.plot.style import SELECTED, axes_in_style, muted, relative_size, set_description
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streamsel.base.report import Density, Report

# Height of the density image, in pixels.
_N_PIXELS = 96
# Range of opacity of pixels with columns.
_MIN_ALPHA, _MAX_ALPHA = 0.10, 0.85
# Maximum number of results that are labelled with their names, and that are marked on a genome.
_N_NAMED, _N_MARKED = 8, 500
# Maximum number of columns that are drawn as points on a genome; more are drawn as an image of this
# height and width, in pixels, with dots of this radius.
_N_POINTS, _IMAGE, _DOT = 2_000, (720, 960), 3.6
# Points of selected variables, and ticks at the right edge if their arrival is not known.
_POINT: dict[str, Any] = {
    "color": SELECTED,
    "markersize": 3.2,
    "markeredgewidth": 0.4,
    "markeredgecolor": "white",
    "gid": "chosen",
}
_TICK: dict[str, Any] = {
    "color": SELECTED,
    "marker": "_",
    "markersize": 9.0,
    "markeredgewidth": 1.2,
    "gid": "chosen at the edge",
}
# Opacities of chromosomes with even and odd index.
_ALTERNATING = (0.85, 0.42)


def manhattan(model: Any, ax: Axes | None = None, *, metadata: Any = None, **kwargs: Any) -> Axes:
    """Plot the relevance of the columns in order of arrival, or their p-values along a genome.

    The selected variables are marked.

    Parameters
    ----------
    model
        A learner with a target, or its report; with `metadata`, a `SelectKBest` that tracks every
        column.
    ax
        Axes to draw on; None draws on the current axes of pyplot.
    metadata
        Positions of the columns: a `ColumnStream` with `column_metadata`, such as that of
        `iter_bed` or `iter_vcf`; or a mapping or data frame with `"chromosome"`, and where known
        `"name"` (else the columns are 0, 1, ...) and `"position"` (else the columns of a chromosome
        are evenly spaced), of equal lengths. Other entries are ignored. None plots relevance in
        order of arrival.
    **kwargs
        Properties of the points of the selected variables, as of `Axes.plot`.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    ValueError
        For a model without a target, or that has seen no column. With `metadata`: for a model
        without the p-values of all columns, and for metadata without chromosomes or without any
        column of the model.
    TypeError
        For objects that are not models, for metadata of another type, and for names that are not
        hashable.
    ImportError
        Without matplotlib.

    Notes
    -----
    **By arrival.** Up to 500 columns are drawn as points. With more, shading shows their density on
    a logarithmic scale, from counts whose size does not depend on the number of columns. The dashed
    line is the noise floor. Selected variables whose index in the stream is not known, and
    components, are ticks at the right edge.

    **Along a genome.** The y axis is -log10 p. Chromosomes are in natural order (1, 2, ..., X, Y,
    MT, others), in two alternating shades. Columns that are not in `metadata` are on chromosome
    "?". Columns whose position is unknown (0, negative or missing) are not drawn; if none is known,
    columns are evenly spaced. More than 2,000 columns are drawn as an image, with one dot per
    column. The dashed line is the p-value of the noise floor: the Bonferroni threshold at 5 %, or
    with permutations that of the maximum over all columns. p-values below 1e-300 are drawn as
    1e-300. The first 500 selected variables are marked, and the best of each chromosome are named
    first.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsel import ProjSe, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 500))
    >>> model = ProjSe(k=3)
    >>> model.learn_target(X[:, 7] - X[:, 400])
    >>> model.learn_columns(X)
    >>> ax = plot.manhattan(model)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('column, in order of arrival', 'relevance')

    Along a genome of two chromosomes:

    >>> from streamsel import SelectKBest
    >>> model = SelectKBest(k=2)
    >>> model.learn_target(X[:, 7] - X[:, 400])
    >>> model.learn_columns(X)
    >>> import matplotlib.pyplot as plt
    >>> _, ax = plt.subplots(layout="constrained")
    >>> ax = plot.manhattan(model, ax, metadata={"chromosome": ["1"] * 300 + ["X"] * 200})
    >>> [tick.get_text() for tick in ax.get_xticklabels()], ax.get_ylabel()
    (['1', 'X'], '−log₁₀ p')
    """
    report = report_from(model)
    if metadata is not None:
        found = tests_of(model, report)
        with axes_in_style(ax) as panel:
            _draw_genome(panel, found, lay_out(metadata, found.names), report, kwargs)
        return panel
    density = report_density(report)
    values = [row["relevance"] or 0.0 for row in report.results]
    if density.points is None:
        highest = density.edges[1:][density.counts.any(axis=0)].max(initial=0.0)
    else:
        highest = density.points.max(initial=0.0)
    top = min(1.0, 1.12 * max(highest, report.noise_floor or 0.0, *values, 0.02))
    width = max(1, report.columns_seen)
    with axes_in_style(ax) as panel:
        if density.points is None:
            _draw_density(panel, density, top)
        else:
            _draw_points(panel, density.points)
        # Labels of millions are long.
        n_ticks = 4 if width < 1_000_000 else 3
        panel.xaxis.set_major_locator(optional.import_matplotlib("ticker").MaxNLocator(n_ticks))
        panel.xaxis.set_major_formatter(integer_label)
        panel.set(
            xlim=(0.0, width),
            ylim=(0.0, top),
            xlabel="column, in order of arrival",
            ylabel="relevance",
        )
        if (floor := report.noise_floor) is not None:
            draw_noise_level(panel, floor, gid="floor")
            at_edge = {"xycoords": ("axes fraction", "data"), "va": "center"}
            annotate_noise(panel, f"noise\n{floor:.2f}", (1.0, floor), (3, 0), **at_edge)
        _draw_results(panel, report, values, kwargs)
        set_description(panel, _description(report))
    return panel


def _draw_density(ax: Axes, density: Density, top: float) -> None:
    """Draw the density of columns."""
    image = ax.imshow(
        _shade(density.counts, density.edges, top),
        extent=(0.0, density.step * len(density.counts), 0.0, top),
        origin="lower",
        aspect="auto",
        interpolation="none",
    )
    image.set_gid("shade")


def _draw_points(ax: Axes, points: Floats) -> None:
    """Draw every column that varies."""
    indices = np.flatnonzero(points >= 0.0)
    ax.plot(
        indices + 0.5,
        points[indices],
        "o",
        color=muted(),
        ms=2.2 * relative_size(),
        mew=0,
        alpha=0.6,
        gid="columns",
    )


def _shade(counts: Any, edges: Floats, top: float) -> Any:
    """Return an image, (rows, arrivals, 4), in one colour whose opacity shows the density."""
    below = np.column_stack([np.zeros(len(counts)), np.cumsum(counts, axis=1)])
    heights = np.linspace(0.0, top, _N_PIXELS + 1)
    # Bins are interpolated to pixels, as if columns were uniform within a bin.
    cells = np.diff([np.interp(heights, edges, row) for row in below], axis=1).T
    cells[cells < 1e-12 * max(1, below[:, -1].max(initial=0))] = 0.0
    densest = cells.max(initial=0.0)
    share = np.log1p(cells) / np.log1p(densest) if densest else cells
    image = np.empty((*cells.shape, 4), dtype=np.uint8)
    image[..., :3] = [int(muted()[i : i + 2], 16) for i in (1, 3, 5)]
    image[..., 3] = np.rint(
        255 * np.where(cells > 0.0, _MIN_ALPHA + (_MAX_ALPHA - _MIN_ALPHA) * share, 0.0)
    )
    return image


def _draw_results(ax: Axes, report: Report, values: list[float], given: dict[str, Any]) -> None:
    """Draw the results: points where the arrival is known, ticks at the right edge otherwise."""
    width = ax.get_xlim()[1]
    arrivals = [row.get("arrival") for row in report.results]
    known = [i for i, arrival in enumerate(arrivals) if arrival is not None]
    x = [width if arrival is None else arrival + 0.5 for arrival in arrivals]
    others = [i for i, arrival in enumerate(arrivals) if arrival is None]
    for indices, marker in ((known, "o"), (others, "_")):
        if indices:
            texts = [f"{hover_name(report.results[i]['name'])}: {values[i]:.3f}" for i in indices]
            style = _POINT if marker == "o" else _TICK
            points = [x[i] for i in indices], [values[i] for i in indices]
            draw_points(ax, *points, texts, given, clip_on=False, zorder=4, **style)
    order = sorted(range(len(values)), key=lambda i: -values[i])
    names = [report.results[i]["name"] for i in order[:_N_NAMED]]
    order_x_y = [x[i] for i in order], [values[i] for i in order]
    label_points(ax, names, *order_x_y, level=report.noise_floor)


def _description(report: Report) -> str:
    kind = "selected" if report.kind == "selected" else "components"
    noise = "" if report.noise_floor is None else f"; noise floor {report.noise_floor:.2f}"
    return (
        f"Relevance of {count_label(report.columns_seen, 'column')} in order of arrival, "
        f"with {len(report.results):,} {kind}{noise}."
    )


# Along a genome


def _draw_genome(
    ax: Axes, found: Tests, genome: Genome, report: Report, given: dict[str, Any]
) -> None:
    """Draw the p-values of columns along a genome, with the selected ones."""
    y = -np.log10(np.maximum(found.p_values, 1e-300))
    noise = -np.log10(found.threshold)
    top, end = 1.12 * max(noise, y.max(initial=0.0)), float(genome.ends[-1])
    is_odd, placed = genome.chromosomes % 2 == 1, ~np.isnan(genome.x)
    if y.size > _N_POINTS:
        alpha = np.where(is_odd, _ALTERNATING[1], _ALTERNATING[0])
        pixels = _dots(genome.x[placed] / end, y[placed] / top, alpha[placed])
        image = ax.imshow(
            pixels, extent=(0.0, end, 0.0, top), origin="lower", aspect="auto", interpolation="none"
        )
        image.set_gid("shade")
    else:
        for parity, opacity in enumerate(_ALTERNATING):
            drawn, gid = (
                placed & (is_odd == bool(parity)),
                ("columns", "columns of every other chromosome")[parity],
            )
            style: dict[str, Any] = {
                "color": muted(),
                "ms": 2.2 * relative_size(),
                "mew": 0,
                "alpha": opacity,
            }
            ax.plot(genome.x[drawn], y[drawn], "o", gid=gid, **style)
    ax.set(xlim=(0.0, end), ylim=(0.0, top), xlabel="chromosome", ylabel="−log₁₀ p")
    if noise > 0.0:
        draw_noise_level(ax, noise, gid="floor")
        at_edge = {"xycoords": ("axes fraction", "data"), "va": "center"}
        annotate_noise(ax, f"noise\n{found.threshold:.0e}", (1.0, noise), (3, 0), **at_edge)
    labels = [variable_label(label) for label in genome.labels]
    ax.set_xticks(genome.centres, fitting_labels(ax, labels, genome.centres))
    ax.tick_params(axis="x", length=0)
    _mark_selected(ax, found, genome, y, noise, given)
    set_description(ax, _genome_description(found, genome, y, report))


def _dots(x: Floats, y: Floats, alpha: Floats) -> NDArray[np.uint8]:
    """Return an image, (height, width, 4), with a dot at each point of the unit square."""
    height, width = _IMAGE
    rows, columns = (np.floor(z * n).astype(np.intp) for z, n in ((y, height), (x, width)))
    reach = int(_DOT)
    # The margin takes the parts of dots that are outside.
    opacity = np.zeros((height + 2 * reach + 1, width + 2 * reach + 1), dtype=np.uint8)
    shade = np.rint(255 * alpha).astype(np.uint8)
    for down in range(2 * reach + 1):
        for right in range(2 * reach + 1):
            if (down - reach) ** 2 + (right - reach) ** 2 <= _DOT * _DOT:
                np.maximum.at(opacity, (rows + down, columns + right), shade)
    opacity = opacity[reach : reach + height, reach : reach + width]
    image = np.empty((height, width, 4), dtype=np.uint8)
    image[..., :3] = [int(muted()[i : i + 2], 16) for i in (1, 3, 5)]
    image[..., 3] = opacity
    return image


def _mark_selected(
    ax: Axes, found: Tests, genome: Genome, y: Floats, noise: float, given: dict[str, Any]
) -> None:
    """Draw the selected columns, and name the best of each chromosome, then the others."""
    marked = found.selected[~np.isnan(genome.x[found.selected])][:_N_MARKED]
    x, heights = genome.x[marked], y[marked]
    if marked.size:
        texts = [
            f"{hover_name(found.names[j])}: chromosome {genome.labels[genome.chromosomes[j]]}, "
            f"p = {found.p_values[j]:.2g}"
            for j in marked.tolist()
        ]
        draw_points(ax, x, heights, texts, given, clip_on=False, zorder=4, **_POINT)
    seen: set[int] = set()
    leads: list[int] = []
    others: list[int] = []
    for i in np.argsort(-heights, kind="stable").tolist():
        chromosome = int(genome.chromosomes[marked[i]])
        (others if chromosome in seen else leads).append(i)
        seen.add(chromosome)
    order = leads + others
    names = [found.names[marked[i]] for i in order[:_N_NAMED]]
    label_points(ax, names, x[order].tolist(), heights[order].tolist(), level=noise)


def _genome_description(found: Tests, genome: Genome, y: Floats, report: Report) -> str:
    text = (
        f"p-values of {count_label(y.size, 'column')} by chromosome and position, with "
        f"{len(report.results):,} selected; noise {found.threshold:.1e}."
    )
    if not y.size:
        return text
    placed = ~np.isnan(genome.x)
    if n_left_out := int(np.count_nonzero(~placed)):
        have = "has" if n_left_out == 1 else "have"
        text += f" {count_label(n_left_out, 'column')} {have} no known position, not drawn."
    best = int(np.argmax(np.where(placed, y, -1.0)))
    where = genome.labels[int(genome.chromosomes[best])]
    return f"{text} The smallest p-value is {found.p_values[best]:.1e}, on chromosome {where}."

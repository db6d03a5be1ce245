"""Relevance of the columns in order of arrival (Manhattan plot), with the selected ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamsel._utils import optional
from streamsel.plot._axes import annotate_noise, draw_noise_level
from streamsel.plot._labels import count_label, integer_label, label_points
from streamsel.plot.inputs import report_density, report_from
from streamsel.plot.style import ACCENT, SELECTED, axes_in_style, set_description
from streamsel.state.base import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from streamsel.base.report import Density, Report

# Height of the density image, in pixels.
_N_PIXELS = 96
# Range of opacity of pixels with columns.
_MIN_ALPHA, _MAX_ALPHA = 0.10, 0.85
# Maximum number of results that are labelled with their names.
_N_NAMED = 8


def manhattan(model: Any, ax: Axes | None = None) -> Axes:
    """Plot the relevance of the columns in order of arrival, with the selected ones marked.

    Parameters
    ----------
    model
        A learner with a target, or its report.
    ax
        Axes to draw on; None makes a figure, 85 mm wide.

    Returns
    -------
    The axes; `ax.figure` is the figure.

    Raises
    ------
    ValueError
        For a model without a target, or that has seen no column.
    TypeError
        For objects that are not models.
    ImportError
        Without matplotlib.

    Notes
    -----
    Up to 500 columns are drawn as points. With more, shading shows their density on a logarithmic
    scale, from counts whose size does not depend on the number of columns. A dashed line is the
    noise floor. Selected variables whose index in the stream is not known, and components, are
    ticks at the right edge.

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
    """
    report = report_from(model)
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
        _draw_results(panel, report, values)
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
        indices + 0.5, points[indices], "o", color=ACCENT, ms=2.2, mew=0, alpha=0.6, gid="columns"
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
    image[..., :3] = [int(ACCENT[i : i + 2], 16) for i in (1, 3, 5)]
    image[..., 3] = np.rint(
        255 * np.where(cells > 0.0, _MIN_ALPHA + (_MAX_ALPHA - _MIN_ALPHA) * share, 0.0)
    )
    return image


def _draw_results(ax: Axes, report: Report, values: list[float]) -> None:
    """Draw the results: points where the arrival is known, ticks at the right edge otherwise."""
    width = ax.get_xlim()[1]
    arrivals = [row.get("arrival") for row in report.results]
    known = [i for i, arrival in enumerate(arrivals) if arrival is not None]
    x = [width if arrival is None else arrival + 0.5 for arrival in arrivals]
    others = [i for i, arrival in enumerate(arrivals) if arrival is None]
    for indices, marker in ((known, "o"), (others, "_")):
        if indices:
            ax.plot(
                [x[i] for i in indices],
                [values[i] for i in indices],
                marker,
                color=SELECTED,
                ms=3.2 if marker == "o" else 9.0,
                mew=0.4 if marker == "o" else 1.2,
                mec="white" if marker == "o" else SELECTED,
                clip_on=False,
                gid="chosen" if marker == "o" else "chosen at the edge",
                zorder=4,
            )
    order = sorted(range(len(values)), key=lambda i: -values[i])
    names = [report.results[i]["name"] for i in order[:_N_NAMED]]
    label_points(ax, names, [x[i] for i in order], [values[i] for i in order])


def _description(report: Report) -> str:
    kind = "selected" if report.kind == "selected" else "components"
    noise = "" if report.noise_floor is None else f"; noise floor {report.noise_floor:.2f}"
    return (
        f"Relevance of {count_label(report.columns_seen, 'column')} in order of arrival, "
        f"with {len(report.results):,} {kind}{noise}."
    )

"""The two pictures of the Analyzer, by matplotlib's objects alone: pyplot would keep every figure in a global state.

Colors are those of Okabe and Ito, which color-blind people tell apart.
"""

from __future__ import annotations

from stepscope._time_axis import TimeAxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import pandas

    from stepscope._table import Column

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#F0E442")
PHASE_COLORS = {
    "dataloader": "#E69F00", "forward": "#56B4E9", "backward": "#CC79A7", "optimizer": "#009E73",
    "zero_grad": "#F0E442", "communication": "#D55E00", "evaluation": "#0072B2", "checkpoint": "#000000",
    "other": "#DDDDDD",
}  # fmt: skip
BYTES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))
POINTS_MARKED = 60  # fewer samples than this are drawn as points too
LINES_NAMED = 8  # in one axis


def draw_overview(
    columns: Sequence[Column], ranks: pandas.DataFrame, steps: pandas.DataFrame, phases: pandas.DataFrame
) -> Any:
    """A Figure: of each metric that any rank has the mean by rank, with 90 % of its steps; the phases' shares by rank.

    columns: the metrics. ranks, steps, phases: tables of the answer `system`, of at least one rank.
    """
    known = [column for column in columns if ranks[column.name].notna().any()]
    figure, axes = _grid(
        len(known) + (len(phases) > 0),
        most_rows=5,
        height=1.7,
        title="1 rank" if len(ranks) == 1 else f"{len(ranks)} ranks",
    )
    place = {rank: i for i, rank in enumerate(ranks["rank"])}
    for axis, column in zip(axes, known):
        own = steps[["rank", column.name]].dropna().groupby("rank")[column.name]
        factor, unit = shown_unit(unit_of(column), max(ranks[column.name].max(), steps[column.name].max()))
        low, high = own.quantile(0.05) * factor, own.quantile(0.95) * factor
        mean = ranks[column.name] * factor
        axis.vlines([place[rank] for rank in low.index], low, high, color=PALETTE[4], linewidth=2)
        axis.plot(range(len(ranks)), mean, "o", markersize=3, color=PALETTE[0])
        axis.axhline(mean.mean(), color="0.5", linewidth=0.8, linestyle="--")
        axis.set_ylim(0, 1.1 * max(mean.max(), high.max() if len(high) > 0 else 0) or 1)
        name_axis(axis, column.name, unit)
    if len(phases) > 0:
        _draw_shares(axes[-1], phases, place)
    for axis in axes:
        axis.set_xlim(-0.6, len(ranks) - 0.4)
        every = -(-len(ranks) // 16)
        axis.set_xticks(range(0, len(ranks), every), [str(rank) for rank in ranks["rank"][::every]])
    figure.supxlabel(
        "rank; point: its mean from first to last step, bar: 90 % of its steps lie there, dashes: mean of the ranks",
        fontsize=8,
    )
    return figure


def _draw_shares(axis: Any, phases: pandas.DataFrame, place: dict[int, int]) -> None:
    shares = phases.pivot_table("share", "rank", "phase", observed=True).reindex(place) * 100
    bottom = 0
    for phase in [name for name in PHASE_COLORS if name in shares]:
        share = shares[phase].fillna(0)  # a phase that a rank does not have takes none of its time
        axis.bar(range(len(place)), share, bottom=bottom, width=0.9, color=PHASE_COLORS[phase], label=phase)
        bottom = share + bottom
    name_axis(axis, "phases", "% of the steps")
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=9, fontsize=6, frameon=False, handlelength=1)


def draw_one_rank(rank: int, samples: pandas.DataFrame, steps: pandas.DataFrame, phases: pandas.DataFrame) -> Any:
    """A Figure: an axis per metric over one axis of time, with steps and phases behind.

    samples, steps, phases: tables samples, step_times and phase_times of Analyzer.one_rank; each may be empty. Metrics
    that were 0 all the time are only named.
    """
    about = ["collector", "name", "unit"]
    metrics = list(samples.groupby(about, sort=False))
    drawn = [(key, rows) for key, rows in metrics if (rows["value"] != 0).any()]
    zero = [f"{key[0]}.{key[1]}" for key, rows in metrics if not (rows["value"] != 0).any()]
    first = 2 if len(steps) > 0 else 0
    figure, axes = _grid(first + len(drawn), most_rows=14, height=1.15, title=f"rank {rank}", sharex=True)
    time = TimeAxis(samples, steps, phases)
    if first:
        time.draw_phases(axes[0], PHASE_COLORS)
        name_axis(axes[0], "phases", "%")
        wall_ms = (steps["end_ns"] - steps["start_ns"]) / 1e6
        axes[1].hlines(wall_ms, time.of(steps["start_ns"]), time.of(steps["end_ns"]), color="0.2")
        axes[1].plot(time.of(steps["start_ns"]), wall_ms, ".", color="0.2", markersize=2)
        name_axis(axes[1], "step time", "ms")
    for axis, (key, rows) in zip(axes[first:], drawn):
        _draw_metric(axis, time, rows, key[1:], f"rank {rank}")
    for axis in axes[min(first, 1) :]:
        time.draw_behind(axis, PHASE_COLORS)
    if len(axes) > 0:
        axes[0].set_xlim(*time.limits)
    figure.supxlabel(_under(time.title, zero), fontsize=8)
    return figure


def _draw_metric(axis: Any, time: TimeAxis, rows: pandas.DataFrame, about: tuple[str, str], own: str) -> None:
    """One line per target, `own` goes without saying; each value holds until the next sample. about: name and unit."""
    name, unit = about
    factor, shown = shown_unit(unit, rows["value"].abs().max())
    targets = list(rows.groupby("target", sort=False))
    for i, (target, points) in enumerate(targets):
        marker = "." if len(points) < POINTS_MARKED else None
        label = str(target) if i < LINES_NAMED else None
        axis.plot(
            time.of(points["t_ns"]), points["value"] * factor, color=PALETTE[i % len(PALETTE)], label=label,
            drawstyle="steps-post", linewidth=0.9, marker=marker, markersize=3,
        )  # fmt: skip
    one = f", {targets[0][0]}" if len(targets) == 1 and targets[0][0] != own else ""
    name_axis(axis, name + one, shown)
    if len(targets) > 1:
        more = f"and {len(targets) - LINES_NAMED} more" if len(targets) > LINES_NAMED else None
        axis.legend(loc="upper right", fontsize=5, ncols=4, title=more, title_fontsize=5, framealpha=0.6)


def unit_of(column: Column) -> str:
    """Of a metric of the answer `system`; its column's name says what the unit of the table does not."""
    if column.unit == "bytes" and column.name.endswith("_per_s"):
        return "bytes/s"
    if column.name.endswith("_watts"):
        return "W"
    return column.unit or column.name


def shown_unit(unit: str, highest: float) -> tuple[float, str]:
    """(factor, unit) to show values of up to `highest` with: percent, binary multiples of bytes, watts."""
    if unit == "ratio":
        return 100, "%"
    if unit == "uJ/s":
        return 1e-6, "W"
    what, per, rest = unit.partition("/")
    if what != "bytes":
        return 1, unit
    name, size = next((one for one in BYTES if highest >= one[1]), BYTES[-1])
    return 1 / size, name + per + rest


def _grid(count: int, most_rows: int, height: float, title: str, sharex: bool = False) -> tuple[Any, list[Any]]:
    """A figure with `count` axes in as many columns as needed, height in inches each, on an Agg canvas."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(3, max(1, -(-count // most_rows)))
    rows = max(1, -(-count // columns))
    figure = Figure(figsize=(4 + 6 * columns, 1 + height * rows), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    axes = list(figure.subplots(rows, columns, sharex=sharex, squeeze=False).ravel())
    for surplus in axes[count:]:
        surplus.remove()
    for i, axis in enumerate(axes[:count]):
        axis.tick_params(labelsize=6, labelbottom=i + columns >= count)
        axis.margins(x=0)
    return figure, axes[:count]


def name_axis(axis: Any, title: str, unit: str) -> None:
    axis.set_title(title, loc="left", fontsize=7, pad=3)
    axis.set_ylabel(unit, fontsize=7)


def _under(title: str, zero: list[str]) -> str:
    import textwrap

    return "\n".join([title, *textwrap.wrap("0 all the time: " + ", ".join(zero), 150)]) if zero else title

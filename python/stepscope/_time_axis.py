"""The axis of time of a picture: seconds since the first step, with steps and phases to be drawn on it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pandas

MOST_BANDS = 400  # phases drawn one by one; of more the shares of each hundredth of the time
PIXELS = 1000  # of an axis, about
MOST_LINES = 200  # steps drawn likewise


class TimeAxis:
    """Made from tables of Analyzer.one_rank: samples (t_ns), steps and phases (start_ns, end_ns), all Unix ns.

    title: what is on it. limits: (first, last) in its seconds, of all that is shown.
    """

    def __init__(self, samples: pandas.DataFrame, steps: pandas.DataFrame, phases: pandas.DataFrame) -> None:
        self.steps, self.phases = steps, phases
        times = [*samples["t_ns"].agg(["min", "max"]), *steps["start_ns"].head(1), *steps["end_ns"].tail(1)]
        times = [int(t) for t in times if t == t]  # none of an empty table
        if len(steps) > 0:
            self.zero = int(steps["start_ns"].iloc[0])
            self.title = f"seconds since step {steps['number'].iloc[0]} began"
        else:
            self.zero = min(times, default=0)
            self.title = "seconds since the first sample; no marks of steps were kept"
        first, last = (self.of(end(times, default=0)) for end in (min, max))
        self.limits = first, max(last, first + 1e-3)

    def of(self, t_ns: Any) -> Any:
        """Seconds of a time or a column of times; differences are exact before they become floating."""
        return (t_ns - self.zero) / 1e9

    def draw_phases(self, axis: Any, colors: dict[str, str]) -> None:
        """Shares of the phases over time: of every pixel, which makes bands; of more time where they are too many."""
        import numpy

        edges = numpy.linspace(*self.limits, 1 + (PIXELS if len(self.phases) <= MOST_BANDS else 100))
        axis.stackplot(edges, self._shares(self.steps, edges), colors=[colors["other"]], step="post", labels=["other"])
        names = [name for name in colors if name in set(self.phases["phase"])]
        shares = [self._shares(self.phases[self.phases["phase"] == name], edges) for name in names]
        if names:
            shown = [colors[name] for name in names]
            axis.stackplot(edges, *shares, colors=shown, step="post", labels=names)
        axis.set_ylim(0, 100)
        axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=9, fontsize=6, frameon=False, handlelength=1)

    def _shares(self, spans: pandas.DataFrame, edges: Any) -> Any:
        """Percent of the time between two edges that lies in the spans, which do not overlap; one value per edge."""
        import numpy

        starts, ends = self.of(spans["start_ns"].to_numpy()), self.of(spans["end_ns"].to_numpy())
        if len(starts) == 0:
            return numpy.zeros(len(edges))
        before = numpy.concatenate([[0], numpy.cumsum(ends - starts)])
        at = numpy.column_stack([starts, ends]).ravel()
        spent = numpy.column_stack([before[:-1], before[1:]]).ravel()  # in spans, up to each start and end
        share = numpy.diff(numpy.interp(edges, at, spent)) / numpy.diff(edges)
        return 100 * numpy.append(share, share[-1])

    def draw_behind(self, axis: Any, colors: dict[str, str]) -> None:
        """Phases as bands and the beginnings of steps as lines, where they can be told apart."""
        high = axis.get_xaxis_transform()  # x in seconds, y from bottom to top of the axis
        if len(self.phases) <= MOST_BANDS:
            for name, rows in self.phases.groupby("phase", observed=True):
                spans = list(zip(self.of(rows["start_ns"]), (rows["end_ns"] - rows["start_ns"]) / 1e9))
                color = colors.get(str(name), colors["other"])
                axis.broken_barh(spans, (0, 1), transform=high, color=color, alpha=0.2, linewidth=0, zorder=0)
        if len(self.steps) <= MOST_LINES:
            lines = self.of(self.steps["start_ns"])
            axis.vlines(lines, 0, 1, transform=high, color="0.8", linewidth=0.5, zorder=0.5)

"""The axis of time of a picture: seconds since the first step, with steps and phases to be drawn on it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pandas

PIXELS = 800  # of an axis, about
BAND_PIXELS = 4  # per step: with fewer its phases cannot be told apart, and are shown as shares of several steps
LINE_PIXELS = 8  # per step: with fewer lines between steps would hide what is between them
STEPS_SHARED = 5  # in one share, then


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
        step = ((steps["end_ns"] - steps["start_ns"]) / 1e9).median()  # NaN without steps
        self._step_pixels = PIXELS * step / (self.limits[1] - first)

    def of(self, t_ns: Any) -> Any:
        """Seconds of a time or a column of times; differences are exact before they become floating."""
        return (t_ns - self.zero) / 1e9

    def draw_phases(self, axis: Any, colors: dict[str, str]) -> None:
        """Shares of the phases over time: of each pixel, which makes bands; of several steps where those are narrow."""
        import numpy

        narrow = self._step_pixels < BAND_PIXELS
        shares_drawn = max(20, PIXELS / self._step_pixels / STEPS_SHARED) if narrow else PIXELS
        edges = numpy.linspace(*self.limits, 1 + min(PIXELS, int(shares_drawn)))
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
        """Time in steps as a light band; where they are wide enough phases as bands on it, and lines between steps."""
        high = axis.get_xaxis_transform()  # x in seconds, y from bottom to top of the axis

        def bands(spans: list[tuple[float, float]], color: str) -> None:
            axis.broken_barh(spans, (0, 1), transform=high, color=color, alpha=0.2, linewidth=0, zorder=0)

        bands(self._stretches(), "0.5")
        if self._step_pixels >= BAND_PIXELS:
            for name, rows in self.phases.groupby("phase", observed=True):
                spans = zip(self.of(rows["start_ns"]), (rows["end_ns"] - rows["start_ns"]) / 1e9)
                bands(list(spans), colors.get(str(name), colors["other"]))
        if self._step_pixels >= LINE_PIXELS:
            lines = self.of(self.steps["start_ns"])
            axis.vlines(lines, 0, 1, transform=high, color="0.8", linewidth=0.5, zorder=0.5)

    def _stretches(self) -> list[tuple[float, float]]:
        """(start, length) of steps one after the other, with less than a pixel between them."""
        import numpy

        starts, ends = self.of(self.steps["start_ns"].to_numpy()), self.of(self.steps["end_ns"].to_numpy())
        pixel = (self.limits[1] - self.limits[0]) / PIXELS
        if len(starts) == 0:
            return []
        is_apart = starts[1:] - ends[:-1] > pixel
        first, last = starts[numpy.append(True, is_apart)], ends[numpy.append(is_apart, True)]
        return list(zip(first, last - first))

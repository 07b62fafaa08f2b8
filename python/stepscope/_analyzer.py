"""Analyzer: what every rank, its GPU and its machine did beside the steps, as DataFrames and as pictures.

Thin: figures are those of the answer `system`; only means and spreads over ranks are made here. pandas and matplotlib
are imported when they are needed.
"""

from __future__ import annotations

from stepscope._analyzer_tables import around, of_rank, over_targets, spread_of_metrics, spread_of_phases, with_texts
from stepscope._errors import StepscopeError
from stepscope._marks import Marks
from stepscope._notebook import check_picture_path, need, show_picture, show_tables
from stepscope._run import open as open_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas

    from stepscope._notebook import PathLike
    from stepscope._table import Column

STEPS_SHOWN = 20
TABLES = {
    "metrics": "of the ranks during their steps",
    "phases": "share of the time of all steps, and what was used meanwhile",
    "ranks": "each rank during its steps",
    "sampled": "all that was sampled, over its targets and the whole time",
    "steps": f"the last {STEPS_SHOWN} steps of the rank",
    "series": "what was sampled of the rank, its GPU and its machine",
}


class Analyzer:
    """The telemetry of a run folder: over all ranks, and of one.

        a = Analyzer("stepscope/train/Nov23_10-00-00")
        a.show_overview()                        # tables and picture in a notebook; elsewhere to="overview.png"
        a.show_one_rank(0)
        a.one_rank(0)["samples"]                 # DataFrames, to go on with

    ranks: the numbers of the ranks that were sampled. notes: what the tables leave out.
    Raises StepscopeError when nothing could be opened, no telemetry lies beside it, or a package is missing.
    """

    def __init__(self, folder: PathLike, *, cache: bool = True) -> None:
        need("pandas", "pyarrow")
        self._run = open_run(folder, cache=cache)
        self._system = self._run.system()
        if self._system.scalars["series_count"] is None:
            raise StepscopeError(
                "no telemetry lies beside this recording",
                "not_found",
                str(folder),
                hint="Give the folder of a run that was sampled: stepscope run -- python train.py, "
                "or stepscope monitor train.py beside a job",
            )
        self._marks = Marks([file["path"] for file in self._run.files])
        self._ranks = self._system.to_pandas("ranks")
        self._series = with_texts(self._system.to_pandas("series"), ("host", "target", "collector", "name", "unit"))
        self.ranks: list[int] = [int(rank) for rank in self._ranks["rank"]]
        self.notes = list(self._system.notes)
        if shared := self._shared_names():
            self.notes.append(
                f"{len(shared)} names of series, such as {shared[0]}, are of several hosts: left out of the samples."
            )

    def overview(self) -> dict[str, pandas.DataFrame]:
        """All ranks together.

        metrics: a row per metric (bytes, ratios, cores): how many ranks have it, mean and standard deviation over these
            (NaN for one rank), the lowest and the highest with its rank, and between what 90 % of all steps lie.
        phases: a row per phase: the same of its share of the time, and the mean of each metric in it.
        ranks, rank_phases: each rank in its steps, and in each phase. sampled: a row per thing sampled of any target.
        """
        columns = self._metrics()
        rank_phases = self._system.to_pandas("phases")
        return {
            "metrics": spread_of_metrics(self._ranks, self._system.to_pandas("steps"), columns),
            "phases": spread_of_phases(rank_phases, columns),
            "ranks": self._ranks,
            "rank_phases": rank_phases,
            "sampled": over_targets(self._series),
        }

    def show_overview(self, to: PathLike | None = None) -> None:
        """Shows tables and picture of overview(). `to`: also writes the picture there (.png, .svg or .pdf)."""
        check_picture_path(to)
        tables = self.overview()
        show_tables(
            [(name, TABLES[name], tables[name]) for name in ("metrics", "phases", "ranks", "sampled")], self.notes
        )
        if not self.ranks:
            print("No rank was sampled, so that there is no picture by rank.")
            return

        def draw() -> object:
            from stepscope._pictures import draw_overview

            return draw_overview(self._metrics(), self._ranks, self._system.to_pandas("steps"), tables["rank_phases"])

        show_picture(draw, to, 'show_overview(to="NAME.png")')

    def one_rank(self, rank: int) -> dict[str, pandas.DataFrame]:
        """One rank over time.

        metrics: its value beside those of all ranks. phases: its phases. steps: its newest steps with what each used.
        series: what was sampled of it, its GPU and its machine. samples: their points, counters as rates: host, target,
        collector, name, unit, t_ns (Unix), value. step_times, phase_times: when each step and phase of the job ran.
        """
        if rank not in self.ranks:
            known = ", ".join(map(str, self.ranks)) or "none"
            raise StepscopeError(f"rank {rank} was not sampled", "usage", hint=f"Ranks that were: {known}")
        metrics = self.overview()["metrics"]
        metrics.insert(2, "value", metrics["metric"].map(self._ranks.set_index("rank").loc[rank]))
        series = around(self._series, rank)
        step_times, phase_times = self._marks.of(rank)
        return {
            "metrics": metrics,
            "phases": of_rank(self._system.to_pandas("phases"), rank),
            "steps": of_rank(self._system.to_pandas("steps"), rank),
            "series": series,
            "samples": self._samples(series),
            "step_times": step_times,
            "phase_times": phase_times,
        }

    def show_one_rank(self, rank: int, to: PathLike | None = None) -> None:
        """Shows tables and picture of one_rank(rank). `to`: also writes the picture there (.png, .svg or .pdf)."""
        check_picture_path(to)
        tables = self.one_rank(rank)
        shown = {
            **{name: tables[name] for name in ("metrics", "phases")},
            "steps": tables["steps"].tail(STEPS_SHOWN),
            "series": tables["series"].drop(columns="meaning"),  # too wide
        }
        show_tables([(name, TABLES[name], frame) for name, frame in shown.items()], self.notes)

        def draw() -> object:
            from stepscope._pictures import draw_one_rank

            return draw_one_rank(rank, tables["samples"], tables["step_times"], tables["phase_times"])

        show_picture(draw, to, f'show_one_rank({rank}, to="NAME.png")')

    def _metrics(self) -> list[Column]:
        """The columns of the answer's tables that say what was used: the same in ranks, phases and steps."""
        return [c for c in self._system.tables["ranks"].columns if c.name not in ("rank", "measured_ns")]

    def _shared_names(self) -> list[str]:
        names = self._series["target"] + " " + self._series["name"]
        return list(names[names.duplicated()].unique())

    def _samples(self, series: pandas.DataFrame) -> pandas.DataFrame:
        """The points of these series. The one place that says where they come from: the series of the answer `system`.

        Those are thinned and of the first hundred only, and their names do not say the host: what several hosts have
        under one name is left out. Notes say both.
        """
        import pandas

        told_apart = set(self._system.series) - set(self._shared_names())
        about = ["host", "target", "collector", "name", "unit"]
        frames = [pandas.DataFrame(columns=[*about, "t_ns", "value"])]
        for row in series[about].to_dict("records"):
            name = f"{row['target']} {row['name']}"
            if name in told_apart:
                points = self._system.series[name].to_pandas().rename(columns={"v": "value"})
                frames.append(points.assign(**row))
        return pandas.concat(frames[1:] or frames, ignore_index=True)[frames[0].columns]

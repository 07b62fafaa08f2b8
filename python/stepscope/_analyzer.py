"""Analyzer: what every rank, its GPU and its machine did beside the steps, as DataFrames and as pictures.

Thin: figures are those of the answer `system`; only means and spreads over ranks are made here. pandas and matplotlib
are imported when they are needed.
"""

from __future__ import annotations

from stepscope._analyzer_tables import around, of_rank, over_targets, spread_of_metrics, spread_of_phases, with_texts
from stepscope._errors import StepscopeError
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
        self._ranks = self._system.to_pandas("ranks")
        self._series = with_texts(self._system.to_pandas("series"), ("host", "target", "collector", "name", "unit"))
        self.ranks: list[int] = [int(rank) for rank in self._ranks["rank"]]
        self.notes = list(self._system.notes)

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
        step_times, phase_times = self._marks(rank)
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

    def _samples(self, series: pandas.DataFrame) -> pandas.DataFrame:
        """The points of these series, in order of time; of a counter its rate."""
        about = ["host", "target", "collector", "name"]
        wanted = series[[*about, "unit"]]
        found = self._run.query(
            "select host, target, collector, name, time_ns as t_ns, coalesce(rate, value) as value, unit as counted "
            "from samples where rate is not null or name not in (select name from samples where rate is not null) "
            "order by time_ns"
        ).to_pandas()
        return with_texts(found, about).merge(wanted, on=about)[[*about, "unit", "t_ns", "value"]]

    def _marks(self, rank: int) -> tuple[pandas.DataFrame, pandas.DataFrame]:
        """Steps (number, start_ns, end_ns) and phases (phase, start_ns, end_ns) of the whole job, in Unix ns.

        Both are empty where no marks of the rank were kept. Time of a step outside of its phases is in no row.
        """
        marks = self._run.query(
            "select step, phase, start_ns, start_ns + dur_ns as end_ns from marks "
            f"where rank = {rank} order by start_ns"
        ).to_pandas()
        marks = marks.astype({"start_ns": "int64", "end_ns": "int64"})  # a result without rows has no numbers
        is_step = marks["phase"].isna()
        steps = marks[is_step].rename(columns={"step": "number"})[["number", "start_ns", "end_ns"]]
        phases = marks[~is_step][["phase", "start_ns", "end_ns"]]
        return steps.reset_index(drop=True), phases.reset_index(drop=True)

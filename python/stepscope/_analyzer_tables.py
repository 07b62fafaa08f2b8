"""Means and spreads over ranks of the tables of the answer `system`, and what of them belongs to one rank.

An unknown value is NaN and counts in no mean.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas

    from stepscope._table import Column

STEPS_WITHIN = (0.05, 0.95)  # quantiles: 90 % of the steps lie between them


def spread(values: pandas.DataFrame, key: str) -> pandas.DataFrame:
    """Over ranks, of rows (rank, `key`, value): a row per key with ranks, mean, std, low, low_rank, high, high_rank.

    std is that of a sample, NaN for one rank. A key that no rank has a value for has no row.
    """
    known = values.dropna(subset=["value"]).reset_index(drop=True)
    groups = known.groupby(key, sort=False, observed=True)["value"]
    out = groups.agg(ranks="count", mean="mean", std="std", low="min", high="max").reset_index()
    out.insert(5, "low_rank", known["rank"].loc[groups.idxmin()].to_numpy())
    out["high_rank"] = known["rank"].loc[groups.idxmax()].to_numpy()
    return out


def spread_of_metrics(ranks: pandas.DataFrame, steps: pandas.DataFrame, columns: Sequence[Column]) -> pandas.DataFrame:
    """spread() by metric with its unit, and step_p05 and step_p95: between them lie 90 % of the steps of all ranks."""
    names = [column.name for column in columns]
    out = spread(ranks.melt("rank", names, "metric"), "metric")
    low, high = (steps[names].quantile(q) for q in STEPS_WITHIN)
    out.insert(1, "unit", out["metric"].map({column.name: column.unit for column in columns}))
    return out.assign(step_p05=out["metric"].map(low), step_p95=out["metric"].map(high))


def spread_of_phases(phases: pandas.DataFrame, columns: Sequence[Column]) -> pandas.DataFrame:
    """spread() of the share by phase, over the ranks that have it, and there the mean of each metric."""
    names = [column.name for column in columns]
    shares = spread(phases[["rank", "phase", "share"]].rename(columns={"share": "value"}), "phase")
    means = phases.groupby("phase", sort=False, observed=True)[names].mean()
    return shares.merge(means.dropna(axis="columns", how="all"), left_on="phase", right_index=True)


def over_targets(series: pandas.DataFrame) -> pandas.DataFrame:
    """A row per thing sampled (collector, name, unit): how many targets, mean and std of their means, low, high."""
    groups = series.groupby(["collector", "name", "unit"], sort=False)
    return groups.agg(
        targets=("target", "count"),
        mean=("mean", "mean"),
        std=("mean", "std"),
        low=("low", "min"),
        high=("high", "max"),
    ).reset_index()


def of_rank(table: pandas.DataFrame, rank: int) -> pandas.DataFrame:
    """The rows of one rank, without that column."""
    return table[table["rank"] == rank].drop(columns="rank").reset_index(drop=True)


def around(series: pandas.DataFrame, rank: int) -> pandas.DataFrame:
    """Rows of the table series: of the rank, of its GPU (of all where it is not known), of the machine it ran on."""
    import pandas

    target = series["target"]
    own = target == f"rank {rank}"
    neighbor = target.str.match(r"(?:rank|pid) \d") & ~own
    gpu = target.str.match(r"(?:amd )?gpu \d")
    index = series[own & (series["name"] == "gpu_index")]
    if len(index) == 1 and index["low"].item() == index["high"].item():  # it was on one GPU all the time
        neighbor |= gpu & ~target.str.match(rf"(?:amd )?gpu {index['low'].item():.0f}(?: |$)")
    rest = series["host"].isin(series.loc[own, "host"]) & ~neighbor & ~own
    return pandas.concat([series[own], series[rest & gpu], series[rest & ~gpu]], ignore_index=True)


def with_texts(table: pandas.DataFrame, columns: Sequence[str]) -> pandas.DataFrame:
    """With these columns as plain texts: of categories nothing can be joined, and an empty one would be in no group."""
    return table.assign(**{name: table[name].astype(object).fillna("") for name in columns})

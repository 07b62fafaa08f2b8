"""What a run is in the cell of a notebook: step time, where the time goes, what to change first, how to go on.

Static HTML without scripts and style sheets; what inline styles color is readable on light and dark pages. Names are
those of a trace, which is not ours to trust: all texts are escaped, and cut.
"""

from __future__ import annotations

from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_FINDINGS, MOST_GROUNDS, MOST_DEVICES, MOST_PARTS = 6, 3, 4, 10
LONGEST, LONGEST_PART = 240, 40
GRAY = "rgba(128,128,128,.35)"
# Of parts of time, as the page has them; the first that fits.
COLORS = (
    ("idle", "#8b949e"), ("exposed", "#d55e00"), ("hidden", "#e69f00"), ("communication", "#d55e00"),
    ("compute", "#0072b2"), ("kernel", "#0072b2"), ("copy", "#009e73"), ("set", "#56b4e9"),
    ("data", "#f0e442"), ("cpu", "#b5836b"), ("runtime", "#8c7bc0"),
)  # fmt: skip
OTHER = "#cc79a7"
CONFIDENCE = {"high": 0, "medium": 1}
SCALES = {
    "ns": (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1)),
    "bytes": (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)),
}
# (answer, scalar with {} for the window, what it is called)
FIGURES = (
    ("overview", "gpu_utilization_{}", "device busy"),
    ("utilization", "sm_efficiency_{}", "SM efficiency"),
    ("flops", "mfu", "MFU"),
    ("memory", "peak_device_bytes", "peak memory"),
)


def run_html(report: dict[str, Any]) -> str:
    """The report of a run, all answers, in less than 30 kB."""
    answers = report["answers"]
    path = report["input"]["path"]
    parts = [
        f'<p style="margin:0 0 .4em"><b>stepscope</b> {_text(path)} · {_text(_inputs(report["input"]["files"]))}</p>',
        _headline(answers),
        _breakdown(answers.get("overview", {}).get("tables", {}).get("breakdown")),
        _findings(answers),
        _lost(report["issues"]),
        _next(path),
    ]
    return f'<div style="max-width:60em;line-height:1.4">{"".join(parts)}</div>'


def figure(value: object, unit: str) -> str:
    """A value as the terminal shows it, about three digits."""
    if value is None:
        return "unknown"
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)):
        return str(value)
    if unit == "ratio":
        return f"{value * 100:.1f} %" if value == 0 or abs(value) >= 0.0005 else "<0.1 %"
    for suffix, factor in SCALES.get(unit, ()):
        if abs(value) >= factor or factor == 1:
            shown = value / factor
            return f"{shown:,.0f} {suffix}" if factor == 1 else f"{shown:,.{2 if abs(shown) < 9.995 else 1}f} {suffix}"
    shown_text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return f"{shown_text} {unit}" if unit not in ("", "count") else shown_text


def _text(text: object, longest: int = LONGEST) -> str:
    said = str(text)
    return escape(said if len(said) <= longest else said[: longest - 1] + "…")


def _inputs(files: list[dict[str, Any]]) -> str:
    paths = len({file["path"] for file in files})
    ranks = len({file["rank"] for file in files})
    return f"{paths} file{'' if paths == 1 else 's'}, {ranks} rank{'' if ranks == 1 else 's'}"


def _headline(answers: dict[str, Any]) -> str:
    overview = answers.get("overview", {}).get("scalars", {})
    window = "span" if overview.get("window", {}).get("value") == "span" else "steps"
    items = []
    step = overview.get("step_time_median_ns")
    if step is not None and step["value"] is not None:
        count = overview.get("whole_step_count", {}).get("value")
        of = "" if count is None else f", median of {count} whole step{'' if count == 1 else 's'}"
        items.append(f"<b>Step {_text(figure(step['value'], step['unit']))}</b>{of}")
    else:
        items.append("<b>Step time unknown</b>: no whole step was found")
    for answer, name, label in FIGURES:
        scalar = answers.get(answer, {}).get("scalars", {}).get(name.format(window))
        if scalar is not None and scalar["value"] is not None:
            items.append(f"{label} <b>{_text(figure(scalar['value'], scalar['unit']))}</b>")
    return f'<p style="margin:.2em 0">{" · ".join(items)}</p>'


def _color(part: str) -> str:
    return next((color for word, color in COLORS if word in part), OTHER)


def _breakdown(table: dict[str, Any] | None) -> str:
    if table is None or not table["rows"]:
        return ""
    names = [column["name"] for column in table["columns"]]
    devices: dict[str, list[dict[str, Any]]] = {}
    for values in table["rows"]:
        row = dict(zip(names, values))
        device = "" if row["device"] is None else f", device {row['device']}"
        devices.setdefault(f"rank {row['rank']}{device}", []).append(row)
    bars = []
    for title, rows in list(devices.items())[:MOST_DEVICES]:
        rows = [{**row, "part": str(row["part"]).replace("_", " ")} for row in rows if row["time_ns"]][:MOST_PARTS]
        bar = "".join(
            f'<span title="{_text(row["part"], LONGEST_PART)}" style="display:inline-block;height:1.1em;'
            f'width:{(row["share"] or 0) * 100:.2f}%;background:{_color(row["part"])}"></span>'
            for row in rows
        )
        legend = " · ".join(
            f'<span style="white-space:nowrap"><span style="display:inline-block;width:.7em;height:.7em;'
            f'background:{_color(row["part"])}"></span> {_text(row["part"], LONGEST_PART)} '
            f"<b>{_text(figure(row['time_ns'], 'ns'))}</b> {_text(figure(row['share'], 'ratio'))}</span>"
            for row in rows
        )
        head = f'<div style="opacity:.75">{_text(title)}</div>' if len(devices) > 1 else ""
        bars.append(
            f'{head}<div style="border:1px solid {GRAY};white-space:nowrap;overflow:hidden;font-size:0">'
            f'<div style="font-size:1rem;line-height:0">{bar}</div></div><div style="margin:.2em 0 .5em">{legend}</div>'
        )
    more = f"<p>and {len(devices) - MOST_DEVICES} more devices</p>" if len(devices) > MOST_DEVICES else ""
    return f'<p style="margin:.5em 0 .2em"><b>Where the time goes</b></p>{"".join(bars)}{more}'


def _gain(finding: dict[str, Any]) -> str:
    gain = finding["gain"]
    if not gain:
        return "gain unknown"
    low, high = gain["speedup_low"], gain["speedup_high"]
    if low is None or high is None:
        return "gain unknown"
    span = f"{high:.2f}×" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}× to {high:.2f}×"
    how = f" ({gain['how']})" if gain.get("how") else ""
    return f"steps {span} as fast{how}"


def _findings(answers: dict[str, Any]) -> str:
    findings = [finding for answer in answers.values() for finding in answer["findings"]]
    if not findings:
        return ""
    findings.sort(key=lambda finding: CONFIDENCE.get(finding["confidence"] or "", 2))
    items = []
    for finding in findings[:MOST_FINDINGS]:
        grounds = "; ".join(
            f"{_text(one['text'])} <b>{_text(figure(one['value'], one['unit']))}</b>"
            for one in finding["evidence"][:MOST_GROUNDS]
        )
        following = f"<br>Next: {_text(finding['next'])}" if finding["next"] else ""
        items.append(
            f'<li style="margin:.2em 0"><b>{_text(finding["sentence"])}</b><br>{_text(_gain(finding))}'
            f"{'<br>' + grounds if grounds else ''}{following}</li>"
        )
    more = len(findings) - MOST_FINDINGS
    end = f"<p>and {more} more in the report</p>" if more > 0 else ""
    head = '<p style="margin:.5em 0 .2em"><b>What to change first</b></p>'
    return f'{head}<ol style="margin:0">{"".join(items)}</ol>{end}'


def _lost(issues: list[dict[str, Any]]) -> str:
    lost = [issue for issue in issues if issue["severity"] == "lost"]
    if not lost:
        return ""
    more = f" And {len(lost) - 1} more." if len(lost) > 1 else ""
    return f"<p><b>Partial data.</b> {_text(lost[0]['sentence'])}{more}</p>"


def _next(path: str) -> str:
    from shlex import quote

    return (
        f'<p style="margin:.5em 0 0">All of it, with the timeline: <code>stepscope view {_text(quote(path))}</code>; '
        "one answer: <code>run.idle()</code>; a table: <code>run.table(&quot;slices&quot;)</code></p>"
    )

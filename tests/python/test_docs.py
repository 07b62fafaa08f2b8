"""The examples of docs/python.md run as they stand there, one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WriteTrace = Callable[..., Path]
NEEDS = {"to_pandas": ("pandas", "pyarrow"), "to_polars": ("polars",), "pyarrow": ("pyarrow",), "duckdb": ("duckdb",)}


def test_the_examples_of_the_guide_run(
    write_trace: WriteTrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trace("traces/a.json", rank=0)
    write_trace("traces/b.json", rank=1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", (ROOT / "docs" / "python.md").read_text())
    assert len(blocks) >= 8
    names: dict[str, object] = {}
    for block in blocks:
        for word, modules in NEEDS.items():
            if word in block:
                for module in modules:
                    pytest.importorskip(module)
        exec(compile(block, "docs/python.md", "exec"), names)
    said = capsys.readouterr().out
    assert "<stepscope.Run 2 ranks: 14 slices>" in said
    assert "<dur_ns [ns], integer: Duration.>" in said
    assert "not_found" in said

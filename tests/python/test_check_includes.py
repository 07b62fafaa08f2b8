"""The check of includes must see what it exists for: every test seeds a fault into a clean small tree."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_includes


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "base/column.h": "#include <vector>\nstruct Column {\n  std::vector<int> all;\n};\n",
        "model/trace.h": '#include "base/column.h"\nstruct Trace {\n  Column times;\n};\n',
        "read/kineto.cc": '#include "model/trace.h"\n// std::map is not used\nTrace read() { return Trace{}; }\n',
        "read/shape.h": "template <class Trace>\nvoid visit(const Trace& trace);\n",
    }
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(check_includes, "ROOT", tmp_path)
    monkeypatch.setattr(check_includes, "SOURCES", tmp_path / "src")
    monkeypatch.setattr(check_includes, "sources", lambda: sorted((tmp_path / "src").rglob("*.*")))
    return tmp_path / "src"


def wrong() -> list[str]:
    return check_includes.missing_of_standard() + check_includes.missing_of_our_own()


def test_a_clean_tree_passes(tree: Path) -> None:
    assert wrong() == []


def test_a_missing_header_of_the_standard_library_is_named(tree: Path) -> None:
    (tree / "model" / "trace.h").write_text(
        '#include "base/column.h"\nstruct Trace {\n  std::map<int, Column> all;\n};\n'
    )
    assert wrong() == ["src/model/trace.h: std::map without <map>"]


def test_a_missing_header_of_our_own_is_named(tree: Path) -> None:
    (tree / "read" / "kineto.cc").write_text("Trace read();\n")
    assert wrong() == ["src/read/kineto.cc: Trace without model/trace.h"]
    (tree / "read" / "kineto.cc").write_text('const char* text = "Trace";  // Trace\n')
    assert wrong() == []

"""The layer check must see each fault that it exists for: every test seeds one into a clean small tree."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import check_layers

RULES = """
```layers
base:
model: base
read! reader.h: base model
cli! command.h: base model read
```
```web-layers
data:
draw: data
panels!: data draw
app: data draw panels
```
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "docs/architecture.md": RULES,
        "src/base/column.h": "",
        "src/model/trace.h": '#include "base/column.h"\n#include <vector>\n',
        "src/read/reader.h": '#include "model/trace.h"\n',
        "src/read/readers.list": "kineto\nnsys\n",
        "src/read/kineto.cc": '#include "read/reader.h"\n#include "read/kineto/part.h"\nReader kineto_reader() {}\n',
        "src/read/kineto/part.h": "",
        "src/read/kineto/part.cc": '#include "read/kineto/part.h"\n',
        "src/read/nsys.cc": '#include "read/reader.h"\n',
        "src/read/nsys_fixture.h": '#include "read/kineto/part.h"\n',
        "src/read/nsys_test.cc": '#include "read/kineto/part.h"\n',
        "web/src/main.ts": 'import { start } from "./app/start";\n',
        "web/src/app/start.ts": 'import { bars } from "../panels/bars";\n',
        "web/src/panels/bars.ts": 'import { scale } from "../draw/scale";\n',
        "web/src/panels/table.ts": "",
        "web/src/draw/scale.ts": "",
        "web/src/data/report.ts": "",
        "python/stepscope/__init__.py": "import json\n\n\ndef frame() -> None:\n    import pandas\n",
    }
    for name, text in files.items():
        write(tmp_path, name, text)
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_clean_tree_has_no_faults(tree: Path) -> None:
    assert check_layers.check(tree) == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("src/base/up.h", '#include "model/trace.h"\n', "src/base/up.h:1: base includes model/trace.h"),
        ("src/model/side.cc", '\n#include "read/reader.h"\n', "src/model/side.cc:2: model includes read/reader.h"),
        ("src/read/nsys.cc", '#include "read/kineto/part.h"\n', "registry room read do not use each other"),
        ("src/read/other.cc", '#include "reader.h"\n', "which is no room"),
        ("src/secret/x.cc", "", "secret is no room"),
        ("src/read/readers.list", "kineto\nnsys\ngone\n", "lists gone, but src/read/gone.cc does not exist"),
        ("src/read/readers.list", "kineto\nnsys\nnsys\n", "lists nsys twice"),
        ("src/read/readers.list", "nsys\n", "does not list kineto"),
        ("web/src/draw/bad.ts", 'import { x } from "../panels/bars";\n', "draw imports ../panels/bars"),
        ("web/src/panels/table.ts", 'import { x } from "./bars";\n', "registry room panels do not use each other"),
        ("web/src/data/bad.ts", 'const m = await import("../draw/scale");\n', "data imports ../draw/scale"),
    ],
)
def test_a_seeded_fault_is_named_with_its_place(tree: Path, name: str, text: str, told: str) -> None:
    write(tree, name, text)
    faults = check_layers.check(tree)
    assert len(faults) == 1, faults
    assert told in faults[0]


def test_rules_that_hold_a_circle_are_refused(tree: Path) -> None:
    write(tree, "docs/architecture.md", RULES.replace("base:\n", "base: model\n"))
    assert check_layers.check(tree) == ["docs/architecture.md: base allows model, which no line above it lists"]


@pytest.mark.skipif(sys.version_info < (3, 10), reason="needs sys.stdlib_module_names")
@pytest.mark.parametrize(
    "text", ["import torch\n", "try:\n    from numpy import array\nexcept ImportError:\n    pass\n"]
)
def test_python_that_needs_more_than_the_standard_library_to_load_is_refused(tree: Path, text: str) -> None:
    write(tree, "python/stepscope/heavy.py", text)
    assert "when loaded" in check_layers.check(tree)[0]


@pytest.mark.skipif(sys.version_info < (3, 10), reason="needs sys.stdlib_module_names")
def test_a_callback_may_load_its_own_trainer_and_no_other(tree: Path) -> None:
    write(tree, "python/stepscope/huggingface.py", "from transformers import TrainerCallback\n")
    assert check_layers.check(tree) == []
    write(tree, "python/stepscope/huggingface.py", "import lightning\n")
    assert "imports lightning when loaded" in check_layers.check(tree)[0]


def test_this_repository_is_clean() -> None:
    assert check_layers.check(Path(__file__).resolve().parents[2]) == []

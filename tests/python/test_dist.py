"""The packed folder runs where none of our packages are and no network is: in a root that holds glibc and it alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLIBC = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1")
TRACE = """{"schemaVersion": 1, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 5.0},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 11.0, "dur": 2.0,
 "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20.0, "dur": 4.0,
 "args": {"correlation": 7, "device": 0, "stream": 7}}]}"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the tar file holds, unpacked somewhere else than it was made."""
    if not (ROOT / "build" / "stepscope").exists():
        pytest.fail("build/stepscope is not built: make build")
    made = tmp_path_factory.mktemp("made")
    subprocess.run(["tools/make_dist.sh", "build", str(made)], cwd=ROOT, check=True, capture_output=True)
    (archive,) = made.glob("stepscope-*.tar.gz")
    assert archive.stat().st_size <= 40 * 2**20
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with tarfile.open(archive) as packed:
        packed.extractall(elsewhere)
    shutil.rmtree(made)
    (folder,) = elsewhere.iterdir()
    return folder


def needed(path: Path) -> dict[str, str]:
    """Library name → where the loader finds it, with an empty environment."""
    told = subprocess.run(["ldd", str(path)], env={}, text=True, capture_output=True, check=True).stdout
    return dict(re.findall(r"^\s*(\S+) => (.*?)(?: \(0x\w+\))?$", told, re.MULTILINE))


def test_only_glibc_comes_from_the_machine(dist: Path) -> None:
    products = [dist / "bin" / "stepscope", *(dist / "lib").glob("*.so*")]
    for product in products:
        for name, where in needed(product).items():
            inside = Path(where).resolve().is_relative_to(dist.resolve())
            # A carried library finds its own needs among those that its product loaded before it.
            carried = product.parent.name == "lib" and (dist / "lib" / name).exists()
            assert inside or carried or name in GLIBC, f"{product.name} takes {name} from {where}"


def minimal_root(dist: Path, root: Path) -> None:
    """A root folder with the C library, the unpacked folder and one trace; nothing else."""
    loader = next(Path("/lib64").glob("ld-linux-*"), None) or next(Path("/lib").glob("ld-linux-*"))
    (root / loader.parent.relative_to("/")).mkdir(parents=True)
    shutil.copy(loader, root / loader.relative_to("/"))
    libc = Path(needed(dist / "bin" / "stepscope")["libc.so.6"]).parent
    (root / libc.relative_to("/")).mkdir(parents=True, exist_ok=True)
    for name in GLIBC:
        if (libc / name).exists():
            shutil.copy(libc / name, root / libc.relative_to("/") / name)
    shutil.copytree(dist, root / "opt", symlinks=True)
    (root / "proc").mkdir()
    (root / "tmp").mkdir()
    (root / "trace.json").write_text(TRACE)


NAMESPACE = ("unshare", "-rnm", "sh", "-c", 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"')


def run_in(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in the root with no network and no environment; /proc is there, as on every machine."""
    everything = [*NAMESPACE, str(root), *command]
    return subprocess.run(everything, env={"PATH": os.environ["PATH"]}, text=True, capture_output=True)


def test_the_command_line_runs_with_glibc_alone_and_without_a_network(dist: Path, tmp_path: Path) -> None:
    if subprocess.run([*NAMESPACE, "/", "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine allows no namespaces of its own (unshare -rnm)")
    minimal_root(dist, tmp_path)
    version = run_in(tmp_path, "/opt/bin/stepscope", "--version")
    assert version.returncode == 0, version.stderr
    report = run_in(tmp_path, "/opt/bin/stepscope", "report", "--no-cache", "--json", "/trace.json")
    assert report.returncode == 0, report.stderr
    data = json.loads(report.stdout)
    assert data["schema_version"] >= 1
    assert "kernels" in data["answers"]


def test_python_loads_the_packed_library(dist: Path, tmp_path: Path) -> None:
    if not (dist / "python" / "stepscope" / "__init__.py").exists():
        pytest.skip("there is no Python package yet")
    (tmp_path / "trace.json").write_text(TRACE)
    program = (
        "import stepscope; run = stepscope.open('trace.json');"
        "print([row.split()[-1] for row in open('/proc/self/maps') if 'stepscope' in row or 'simdjson' in row])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=tmp_path, text=True, capture_output=True,
        env={"PYTHONPATH": str(dist / "python"), "STEPSCOPE_CACHE": "off", "PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert str(dist / "lib" / "libstepscope.so") in done.stdout
    assert "/usr/lib" not in done.stdout

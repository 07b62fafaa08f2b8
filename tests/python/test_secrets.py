"""What a job was told in confidence, in its command line or environment, stands in no file that stepscope writes."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from jobs import Place, needs_torch
from test_attach import LOOP, attach, running

pytestmark = needs_torch

PYTHON = str(Path(__file__).resolve().parents[2] / "python")
SECRET = "s3cr3t"  # each secret below holds it
ENVIRONMENT = {
    "HF_TOKEN": f"hf_{SECRET}AAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "AWS_SECRET_ACCESS_KEY": f"{SECRET}/aws",
    "WANDB_API_KEY": f"{SECRET}wandb",
    "MY_PASSWORD": f"{SECRET}password",
    "NCCL_AUTH_TOKEN": f"{SECRET}nccl",  # of a family that is written down otherwise
    "TORCH_HUB_TOKEN": f"{SECRET}hub",
    "NCCL_DEBUG": "WARN",
}
ARGUMENTS = [
    "--api-key", f"{SECRET}-1",
    f"--token={SECRET}-2",
    f"DB_PASSWORD={SECRET}-3",
    "--hf_token", f"hf_{SECRET}BBBBBBBBBBBBBBBBBBBBBBBBBBBB",
    "-token", f"{SECRET}-4",
    f"https://user:{SECRET}-5@example.com/data",
    f"hf_{SECRET}CCCCCCCCCCCCCCCCCCCCCCCCCCCC",
    "--tokenizer", "gpt2",
]  # fmt: skip


def text_of(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def assert_kept(place: Place, folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name.endswith(".trace.json.gz") for path in files)
    assert [str(path) for path in files if SECRET.encode() in text_of(path)] == []
    for form in ((), ("--json",), ("--html", "report.html")):
        done = place.plain(str(place.stepscope), "report", str(folder), "--no-cache", *form)
        assert done.returncode in (0, 4), done.stderr
        assert SECRET not in done.stdout + done.stderr
    assert SECRET not in (place.folder / "report.html").read_text()


def test_under_run(place: Place) -> None:
    place.environment.update(ENVIRONMENT)
    job = place.run(sys.executable, place.script(LOOP), "12", *ARGUMENTS, options=("--steps", "2:4"))
    assert job.code == 0, job.stderr
    assert SECRET not in job.stderr
    assert job.folder is not None
    about = job.manifest()
    assert about["command"][-2:] == ["--tokenizer", "gpt2"], "what is no secret is not masked"
    assert about["environment"]["NCCL_DEBUG"] == "WARN"
    assert_kept(place, job.folder)


def test_of_a_job_that_was_attached_to(place: Place) -> None:
    place.environment.update(ENVIRONMENT)
    with running(place, [sys.executable, place.script(LOOP), "2000", *ARGUMENTS]) as job:
        folder, said = attach(place, str(job.pid), "--steps", "2")
    assert SECRET not in said
    assert_kept(place, folder)


def test_of_a_program_that_records_itself(place: Place) -> None:
    place.environment.update(ENVIRONMENT)
    script = place.script("""
        import torch, stepscope
        with stepscope.profile() as recording:
            torch.nn.Linear(8, 8)(torch.ones(2, 8)).sum().backward()
        print(recording.folder)
    """)
    done = place.execute([sys.executable, script, *ARGUMENTS], PYTHONPATH=PYTHON)
    assert done.returncode == 0, done.stderr
    assert_kept(place, Path(done.stdout.strip()))

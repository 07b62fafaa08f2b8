"""Work for nobody: modules called again on the same input, words that fill up, places that a loss ignores."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jobs import Place, measured, needs_torch
from test_advise import advise, recorded
from test_beside import HEAD, finding

# Policy and value look at the same views, each through the trunk of both.
TWICE = (
    HEAD
    + """
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.policy, self.value = tower(), nn.Linear(512, 8), nn.Linear(512, 1)

    def act(self, views):
        return self.policy(self.trunk(views))

    def judge(self, views):
        return self.value(self.trunk(views))


agent = Agent()
optimizer = torch.optim.SGD(agent.parameters(), lr=0.01)
for step in range(30):
    views = torch.rand(64, 512)
    loss = agent.act(views).logsumexp(1).mean() + agent.judge(views).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)

# Rows of 8 to 20 words, filled up to 64; the loss is of one word in eight.
WORDS = (
    HEAD
    + """
class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.body, self.head = nn.Embedding(4000, 512), tower(), nn.Linear(512, 4000)

    def forward(self, words):
        return self.head(self.body(self.words(words)))


model = Masked()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    words = torch.randint(1, 4000, (8, 64))
    words[torch.arange(64) >= torch.randint(8, 20, (8, 1))] = 0
    target = words.masked_fill(torch.arange(64) % 8 != 0, -100)
    loss = F.cross_entropy(model(words).flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)


FRAMES = (
    HEAD
    + """
class Frames(nn.Module):
    def __init__(self):
        super().__init__()
        self.near, self.body, self.head = nn.Conv1d(40, 512, 5, stride=2, padding=2), tower(), nn.Linear(512, 10)

    def forward(self, frames):
        return self.head(self.body(self.near(frames).transpose(1, 2)).mean(1))


model = Frames()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    frames, ends = torch.randn(8, 40, 120), torch.randint(20, 40, (8, 1, 1))
    frames = frames.masked_fill(torch.arange(120) >= ends, 0.0)
    loss = F.cross_entropy(model(frames), torch.randint(10, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)
ANSWERS = (
    HEAD
    + """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.text, self.keys, self.word = nn.Linear(64, 256), nn.Linear(256, 256), nn.Linear(256, 256)

    def forward(self, text):
        memory, word = self.text(text).expand(4, -1, -1), torch.zeros(4, 1, 256)
        for _ in range(16):
            keys = self.keys(memory)
            word = self.word(F.scaled_dot_product_attention(word, keys, keys))
        return word


reader = Reader().eval()
with torch.inference_mode():
    for request in range(400):
        reader(torch.randn(1, 100, 64))
"""
)

# Rows of 8 to 20 words in an answer, filled up to 64.
ROWS = (
    HEAD
    + """
class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.body, self.head = nn.Embedding(4000, 512), tower(), nn.Linear(512, 8)

    def forward(self, words):
        return self.head(self.body(self.words(words)).mean(1))


sorter = Sorter().eval()
with torch.inference_mode():
    for request in range(400):
        words = torch.randint(1, 4000, (8, 64))
        words[torch.arange(64) >= torch.randint(8, 20, (8, 1))] = 0
        sorter(words)
"""
)


def noted(folder: Path, key: str) -> list[Any]:
    """Of each recording of the run that has it."""
    found = []
    for path in sorted(folder.glob("traces/*/*.json.gz")):
        trace = json.loads(gzip.decompress(path.read_bytes()))
        if key in trace:
            found.append(trace[key])
    return found


@needs_torch
@measured
def test_a_trunk_that_both_heads_go_through_is_told_where_it_is_called_again(place: Place) -> None:
    found = advise(place, str(recorded(place, TWICE).folder))
    first = found["findings"][0]
    assert first["id"] == "repeated_forward", found["findings"]
    assert "self.trunk(views)" in TWICE.splitlines()[first["where"]["line"] - 1]
    assert 1.2 < first["gain"]["speedup_high"] < 2.6


@needs_torch
@pytest.mark.parametrize(
    ("was", "now", "same"),
    [
        ("agent.judge(views)", "agent.judge(views)", True),
        ("nn.ReLU()", "nn.BatchNorm1d(width)", True),  # what it keeps of batches is for later
        ("agent.judge(views)", "agent.eval().judge(views)", False),  # dropout would be off
        ("agent.judge(views)", "(setattr(agent.trunk[0], 'adapter', step) or agent.judge(views))", False),
        ("agent.judge(views)", "agent.judge(views.clone())", False),
        ("agent.judge(views)", "agent.judge(views[:32])", False),
    ],
    ids=["plain", "norm", "mode", "flag", "copy", "part"],
)
def test_only_the_very_same_input_of_the_very_same_module_is_the_same(
    place: Place, was: str, now: str, same: bool
) -> None:
    program = TWICE.replace("agent.act", "agent.train().act")
    assert program.count(was) == 1
    run = recorded(place, program.replace(was, now))
    assert run.folder is not None
    said = [row[2] for rows in noted(run.folder, "stepscope_code") for row in rows]
    assert any(one.startswith("(again)") for one in said) == same


@needs_torch
@pytest.mark.parametrize(
    ("words", "fills"),
    [
        ("words[torch.arange(64) >= torch.randint(8, 20, (8, 1))] = 0", True),
        ("words[torch.rand(8, 64) < 0.6] = 0; words[:, 50:] = 0", False),  # an empty field of a board
        ("words = torch.arange(64).expand(8, 64)", False),
    ],
    ids=["rows", "board", "positions"],
)
def test_what_fills_up_rows_stands_at_their_ends_alone(place: Place, words: str, fills: bool) -> None:
    fill = "words[torch.arange(64) >= torch.randint(8, 20, (8, 1))] = 0"
    assert WORDS.count(fill) == 1
    run = recorded(place, WORDS.replace(fill, words))
    assert run.folder is not None
    said = [row[2] for rows in noted(run.folder, "stepscope_code") for row in rows if row[2].startswith("(padded)")]
    assert any(int(one.split()[1]) > 500 for one in said) == fills, said


# A kind of tensor that has a loss of its own, found by torch's function, as torch's documentation has it.
OWN_LOSS = WORDS.replace(
    "model = Masked()",
    """
LOSS, asked = F.cross_entropy, []


class Odds(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is LOSS:
            asked.append(function)
        return super().__torch_function__(function, types, args, kwargs or {})


model = Masked()""",
).replace("model(words).flatten(0, 1)", "model(words).flatten(0, 1).as_subclass(Odds)")


@needs_torch
def test_tensors_that_have_a_loss_of_their_own_find_torchs_function(place: Place) -> None:
    assert OWN_LOSS.count("Odds") == 2
    run = recorded(place, OWN_LOSS + "print('asked', len(asked), LOSS is F.cross_entropy)")
    assert run.stdout.splitlines()[-1] == "asked 30 True"


@needs_torch
@measured
def test_words_that_fill_up_and_places_that_are_ignored_are_told(place: Place) -> None:
    run = recorded(place, WORDS)
    found = advise(place, str(run.folder))
    padded, ignored = finding(found, "padded_batches"), finding(found, "ignored_places")
    assert "self.words(words)" in WORDS.splitlines()[padded["where"]["line"] - 1]
    assert "F.cross_entropy" in WORDS.splitlines()[ignored["where"]["line"] - 1]
    shares = {one["text"]: one["value"] for one in padded["evidence"]}
    assert 0.65 < shares["Of the words"] < 0.85
    assert 0.6 < shares["For no row at all"] <= shares["Of the words"]
    assert "longest row" in padded["next"]
    assert padded["gain"]["speedup_high"] > 1.3 and ignored["gain"]["speedup_high"] > 1.1


@needs_torch
@measured
def test_words_that_fill_up_the_rows_of_a_service_are_told(place: Place) -> None:
    run = place.run(sys.executable, place.script(ROWS))
    padded = finding(advise(place, str(run.folder)), "padded_batches")
    assert "self.words(words)" in ROWS.splitlines()[padded["where"]["line"] - 1]
    assert padded["gain"]["speedup_high"] > 1.3


@needs_torch
@measured
def test_frames_that_fill_up_rows_are_told(place: Place) -> None:
    run = recorded(place, FRAMES)
    padded = finding(advise(place, str(run.folder)), "padded_batches")
    assert "model(frames)" in FRAMES.splitlines()[padded["where"]["line"] - 1]
    shares = {one["text"]: one["value"] for one in padded["evidence"]}
    assert 0.65 < shares["Of the frames"] < 0.85
    assert 0.6 < shares["For no row at all"] <= shares["Of the frames"]
    assert padded["gain"]["speedup_high"] > 1.3


@needs_torch
@pytest.mark.parametrize(
    "frames",
    [
        "frames[:, :, 80:] = 0",  # of all rows alike
        "frames = frames.masked_fill(torch.rand(8, 1, 120) < 0.5, 0.0)",
        "frames = frames",
    ],
    ids=["alike", "anywhere", "none"],
)
def test_frames_of_rows_that_are_as_long_are_none(place: Place, frames: str) -> None:
    fill = "frames = frames.masked_fill(torch.arange(120) >= ends, 0.0)"
    assert FRAMES.count(fill) == 1
    run = recorded(place, FRAMES.replace(fill, frames))
    assert run.folder is not None
    said = [row[2] for rows in noted(run.folder, "stepscope_code") for row in rows if row[2].startswith("(frames)")]
    assert said == []


@needs_torch
@measured
@pytest.mark.parametrize("same", [True, False])
def test_what_a_service_makes_again_for_each_word_is_told(place: Place, same: bool) -> None:
    program = ANSWERS if same else ANSWERS.replace("keys = self", "memory[0, 0, 0] += 1; keys = self")
    run = place.run(sys.executable, place.script(program))
    found = {one["id"]: one for one in advise(place, str(run.folder))["findings"]}
    assert ("repeated_forward" in found) == same
    if same:
        assert found["repeated_forward"]["where"]["module"] == "keys"
        assert "self.keys(memory)" in ANSWERS.splitlines()[found["repeated_forward"]["where"]["line"] - 1]
        assert found["repeated_forward"]["gain"]["speedup_high"] > 1.2


@needs_torch
def test_page_faults_of_recorded_and_of_all_other_steps_are_counted(place: Place) -> None:
    run = recorded(place, TWICE)
    assert run.folder is not None
    counts = noted(run.folder, "stepscope_page_faults")
    assert [steps for steps, _ in counts] == [4, 1]  # the window, and the step with stacks
    (process,) = [json.loads(path.read_text()) for path in (run.folder / "processes").glob("*.json")]
    steps, faults = process["page_faults"]
    assert 10 < steps < 30  # others were recorded, and the first warms up
    assert faults >= 0
    around = process["page_faults_around"]
    assert around["before"][0] + around["after"][0] == steps and around["recording_ns"] > 1.7e18

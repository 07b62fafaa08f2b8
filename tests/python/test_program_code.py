"""What the hooks read in the program's own source: calls, and loops whose turns need each other."""

from __future__ import annotations

import ast
import textwrap

import pytest

from stepscope.hooks._stepscope_hooks import carried_state, doubles, program_code

CARRIED = {
    "a state that a policy gives back": """
        for _ in range(9):
            odds, value, memory = policy(place, memory)
            place = 0.9 * place + pushes[odds.argmax()]
    """,
    "a state by way of another name": """
        for t in range(steps):
            new = cell(x[:, t], h)
            h = new
            out.append(h)
    """,
    "layers": """
        for layer in layers:
            x = layer(x)
    """,
    "words that are read again": """
        while len(tokens) < 9:
            logits = model(tokens)
            tokens = torch.cat([tokens, logits.argmax(-1)], 1)
    """,
    "an attribute": """
        for t in range(steps):
            self.h = torch.tanh(self.w @ self.h + x[t])
    """,
    "on one way only": """
        for t in range(steps):
            if t:
                state = step(state)
            else:
                state = init(x)
    """,
    "in place": """
        for t in range(steps):
            state *= 0.9
            state = state + x[t]
    """,
}

ON_ITS_OWN = {
    "a sum": """
        for row in batch:
            total = total + loss(row)
    """,
    "positions": """
        for n in lengths:
            end = start + n
            out.append(f(x[start:end]))
            start = end
    """,
    "a list that grows": """
        for i in range(n):
            y = f(x[i])
            out = torch.cat([out, y])
    """,
    "losses of pictures": """
        for image, boxes in zip(images, targets):
            cost = torch.cdist(image, boxes)
            i, j = match(cost)
            total += (image[i] - boxes[j]).abs().sum()
    """,
    "a state of each turn's own": """
        for k in range(n):
            h = torch.zeros(4)
            for t in range(4):
                h = cell(h)
            out.append(h)
    """,
    "the best so far": """
        for row in rows:
            best = max(best, row.sum())
            count += 1
    """,
    "what each turn is given": """
        for x, y in batch:
            x = self.conv(x)
            out.append(x)
    """,
    "an attribute of what it is given": """
        for p in parameters:
            p.grad = p.grad / n
    """,
    "what turns inside are given": """
        for row in rows:
            for x in row:
                x = x * 2
    """,
    "parameters": """
        for name, p in named:
            ours[name].copy_(decay * ours[name] + (1 - decay) * p)
    """,
}


def loop_of(text: str) -> ast.For | ast.While:
    (loop,) = ast.parse(textwrap.dedent(text)).body
    assert isinstance(loop, (ast.For, ast.While))
    return loop


@pytest.mark.parametrize("what", CARRIED)
def test_a_turn_needs_the_one_before(what: str) -> None:
    assert carried_state.carries(loop_of(CARRIED[what]))


@pytest.mark.parametrize("what", ON_ITS_OWN)
def test_a_turn_is_on_its_own(what: str) -> None:
    assert not carried_state.carries(loop_of(ON_ITS_OWN[what]))


def test_rows_of_a_source() -> None:
    text = textwrap.dedent("""
        def evaluate(model):
            model.eval()

        def main():
            for step in range(9):
                state = cell(state)
                loss.backward(retain_graph=True)
                count = evaluate(model)
                journal.add(step)
                for callback in callbacks:
                    callback.after_step(step)
                    callback.state.clear()
    """)
    rows = set(program_code._rows(ast.parse(text)))
    assert rows >= {
        (2, "def evaluate", 2),
        (2, "(drops) eval", 3),
        (2, "eval", 3),
        (5, "__next__", 6),
        (5, f"{program_code.CARRIES} 13", 6),
        (5, f"{program_code.TURNS} 13", 6),
        (5, f"{program_code.TURNS} 13", 11),
        (5, "cell", 7),
        (5, "backward", 8),
        (5, program_code.RETAINS, 8),
        (5, "evaluate", 9),
        (5, "add", 10),
        (5, "(drops) add", 10),
        (5, "__next__", 11),
        (5, "(each) after_step", 12),
    }
    assert [row for row in rows if row[1].startswith(program_code.EACH)] == [(5, "(each) after_step", 12)]
    assert (5, "(drops) evaluate", 9) not in rows


def test_where_a_source_has_operators_of_pythons() -> None:
    text = """
        def scores(q: Tensor | None, k) -> dict[str, int]:
            odds = q @ k.t() / 3
            odds = (
                odds
                * 0.5
                + mask[:, None]
            )
            odds += 1 + 2
            return -odds > -3, "a %s" % odds, f"{q}" + "b", ~mask & (
                odds < 4
            )
    """
    rows = program_code._rows(ast.parse(textwrap.dedent(text)))
    symbols = {(called[len(program_code.SYMBOL) :], line) for _, called, line in rows if "(symbol)" in called}
    assert symbols == {
        *(("@", 3), ("/", 3), ("*", 6), ("+", 7), ("[]", 7), ("+", 9)),
        *(("-", 10), (">", 10), ("~", 10), ("&", 10), ("<", 11)),
    }


def test_functions_that_set_what_stays() -> None:
    def keeps(text: str) -> bool:
        (function,) = ast.parse(textwrap.dedent(text)).body
        assert isinstance(function, ast.FunctionDef)
        return carried_state.keeps(function)

    assert keeps("""
        def normalize(self):
            self.adv = (self.adv - self.adv.mean()) / self.adv.std()
    """)
    assert keeps("""
        def fill(rows, values):
            rows[0] = values
    """)
    assert not keeps("""
        def add(self, step, model):
            row = {"step": step}
            for name, parameter in model.named_parameters():
                row[name] = parameter.mean()
            self.lines.write(row)
            self.count += 1
    """)


def test_where_workers_of_a_loader_are_a_matter_of() -> None:
    text = textwrap.dedent("""
        train = DataLoader(
            data,
            shuffle=True,
            num_workers=2,
        )
        test = torch.utils.data.DataLoader(data)
    """)
    rows = [row for row in program_code._rows(ast.parse(text)) if row[1] == program_code.WORKERS]
    assert rows == [(1, program_code.WORKERS, 5), (1, program_code.WORKERS, 7)]


def test_where_a_source_asks_for_float64() -> None:
    text = textwrap.dedent("""
        def load(path):
            table = np.loadtxt(path, dtype="float64")
            return torch.tensor(
                table, dtype=torch.float64
            )

        def check(x):
            assert x.dtype == torch.float64
            return x.double() if x.dtype != torch.double else x

        net = Net().double()

        def plain(value: np.float64, *, to: torch.dtype = TYPES["double"]) -> np.float64:
            return float(value) if isinstance(value, np.float64) else print("double", b"double")

        TYPES = {"fp32": torch.float32, "double": torch.float64}
        made = dict(dtype="float64"), {"dtype": torch.float64}
    """)
    assert sorted(doubles.asked_for(ast.parse(text))) == [(1, 12), (1, 18), (1, 18), (2, 3), (2, 5), (8, 10)]


def test_where_all_of_a_model_becomes_float64() -> None:
    text = textwrap.dedent("""
        def ranks(model, x):
            places = model(x).argsort().double() + 1
            return places.double()

        def main():
            model = model.double()
            net.to(torch.float64)
            self.net = Net().to(device, dtype=torch.float64)
            y = x.double()
            torch.set_default_dtype(torch.float64)
            torch.set_default_dtype(torch.float32)
    """)
    assert sorted(doubles.changed_to(ast.parse(text))) == [(6, 7), (6, 8), (6, 9), (6, 11)]

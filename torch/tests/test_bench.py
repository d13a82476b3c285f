# SPDX-License-Identifier: Apache-2.0
"""The networks that torch/bench times, and its runner: a row that fails, dies or hangs does not stop the others."""
import copy
import json
import subprocess
import sys
from pathlib import Path

import networks
import pytest
import torch
import torch.nn.functional as F
from torch import nn

BENCH = Path(networks.__file__).parent
VOCABULARY = 64


def words(*shape):
    return torch.randint(1, VOCABULARY, shape)


def padded():
    real = torch.ones(2, 12, dtype=torch.bool)
    real[1, 9:] = False
    return real


def graph_inputs(*more):
    edges = torch.randint(0, 40, (2, 160))
    return [torch.randn(40, 8), edges, *(of(edges, 40) for of in more), torch.randint(0, 5, (40,))]


# The last input is the labels.
NETS = {
    "llama": lambda: (networks.Llama(), [words(2, 12), words(2, 12)]),
    "bert": lambda: (networks.Bert(), [words(2, 12), torch.zeros(2, 12, dtype=torch.long), padded(), words(2, 12)]),
    "t5": lambda: (networks.T5(), [words(2, 12), words(2, 8), words(2, 8)]),
    "vit": lambda: (networks.Vit(), [torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))]),
    "transformer": lambda: (networks.Translator(), [words(2, 12), words(2, 8), ~padded(), nn.Transformer.generate_square_subsequent_mask(8), words(2, 8)]),
    "mamba": lambda: (networks.Mamba(), [words(2, 12), words(2, 12)]),
    "mlp": lambda: (networks.Perceptron(), [torch.randn(32, 20), torch.randint(0, 10, (32,))]),
    "lstm": lambda: (networks.Recurrent(nn.LSTM), [torch.randn(4, 6, 8), torch.randint(0, 10, (4,))]),
    "gru": lambda: (networks.Recurrent(nn.GRU), [torch.randn(4, 6, 8), torch.randint(0, 10, (4,))]),
    "gat": lambda: (networks.Gat(8, 8, 5), graph_inputs()),
    "graphsage": lambda: (networks.Sage(8, 8, 5), graph_inputs(networks.degrees)),
    "gin": lambda: (networks.Gin(8, 8, 5), graph_inputs()),
}


@pytest.mark.parametrize("name", NETS)
def test_steps_without_the_cpu(name, native):
    host, inputs = NETS[name]()
    losses = []
    for net, where in ((host, "cpu"), (copy.deepcopy(host).to("clutch"), "clutch")):
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
        *given, labels = [t.to(where) for t in inputs]
        losses.append([])
        for _ in range(8):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(*given).flatten(0, -2), labels.flatten())
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert all(p.grad is not None for p in host.parameters())
    torch.testing.assert_close(losses[1], losses[0], rtol=5e-5, atol=1e-6)
    assert losses[0][-1] < losses[0][0]


@pytest.mark.parametrize("device", ["cpu", "clutch"])
def test_decoding_is_the_whole_sequence(device):
    """Each next word's logits from a cache are those of all words at once."""
    source, target = words(2, 12).to(device), words(2, 10).to(device)
    t5, mamba = networks.T5().to(device).eval(), networks.Mamba().to(device).eval()
    with torch.no_grad():
        cache = t5.cache(2, t5.encoded(source))
        got = [t5.decoded(target[:, i:i + 1], cache=cache, at=torch.tensor([i], device=device)) for i in range(10)]
        torch.testing.assert_close(torch.cat(got, 1), t5(source, target), rtol=1e-4, atol=1e-5)
        cache = mamba.cache(2)
        got = [mamba.next(target[:, i:i + 1], cache) for i in range(10)]
        torch.testing.assert_close(torch.stack(got, 1), mamba(target), rtol=1e-4, atol=1e-5)


RUNNER = """
import os
import sys
import time

sys.path.insert(0, {bench!r})
import op_cases
import run

def raises():
    raise ValueError("as planned")

kept = ("op/add/small", "op/bincount/small", "op/mm/large")
op_cases.CASES = {{name: op_cases.CASES[name] for name in kept[:2]}} | {{
    "op/exp/small": (raises, None), "op/log/small": (lambda: os.kill(os.getpid(), 9), None), "op/sin/small": (lambda: time.sleep(60), None),
    kept[2]: op_cases.CASES[kept[2]]}}
run.__file__ = __file__
sys.exit(run.main())
"""


def test_rows_that_fail_do_not_stop_others(tmp_path):
    program, results, page = tmp_path / "runner.py", tmp_path / "rows.json", tmp_path / "page.md"
    program.write_text(RUNNER.format(bench=str(BENCH)))
    page.write_text("in front\n<!-- torch ops: who -->\n| old |\n<!-- end of torch ops -->\nbehind\n")
    done = subprocess.run([sys.executable, str(program), "--ops", "--pairs", "1", "--least", "0.001", "--seconds", "4", "--json", str(results), "--update", str(page)],
                          capture_output=True, text=True, timeout=300)
    rows = {row["name"].split("/")[1]: row for row in json.loads(results.read_text())["benchmarks"]}
    assert list(rows) == ["add", "bincount", "exp", "log", "sin", "mm"], done.stdout + done.stderr
    assert done.returncode == 1 and "failed: op/exp/small, op/log/small, op/sin/small" in done.stderr
    assert [rows[op]["error_message"] for op in ("exp", "log", "sin")] == ["ValueError: as planned", "the process died", "Late: more than 4 s"]
    assert rows["add"]["real_time"] > 0 and rows["add"]["peers"]["torch's CPU"]["ratio"] > 0 and rows["add"]["family"] == "element by element"
    text = page.read_text()
    assert text.startswith("in front\n<!-- torch ops: who -->\n") and text.endswith("<!-- end of torch ops -->\nbehind\n") and "| old |" not in text
    assert "| `add` | 1,000 | " in text and "| `exp` | | | failed | | | |" in text and "| `mm` | | | | 512 | " in text
    assert ("on the CPU" in next(line for line in text.splitlines() if "`bincount`" in line)) == bool(rows["bincount"].get("fallbacks"))
    page.write_text(page.read_text().replace("| `add`", "| `other`"))
    again = subprocess.run([sys.executable, str(BENCH / "run.py"), "--from", str(results), "--update", str(page)], capture_output=True, text=True, timeout=300)
    assert page.read_text() == text, again.stderr  # the same from the file

# SPDX-License-Identifier: Apache-2.0
"""Programs of torch.export as saved graphs, which a process without Python runs with the bits of eager calls."""
import os
import subprocess

import pytest
import torch
from torch import nn


@pytest.fixture
def run_saved(tmp_path):
    """Runs a saved graph in a process of its own: tensors by name in, tensors like the given ones out."""

    def run(path, inputs, outputs, runs=1):
        arguments = [os.environ["TORCH_CLUTCH_RUN_SAVED"], str(path), str(runs)]
        for name, tensor in inputs.items():
            (tmp_path / f"in_{name}").write_bytes(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
            arguments.append(f"{name}={tmp_path / f'in_{name}'}")
        arguments += ["--", *(f"{name}={tmp_path / f'out_{name}'}" for name in outputs)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")})
        assert done.returncode == 0, done.stderr
        made = {}
        for name, like in outputs.items():
            data = bytearray((tmp_path / f"out_{name}").read_bytes())
            made[name] = torch.frombuffer(data, dtype=torch.uint8).view(like.dtype).view(like.shape)
        return made

    return run


def bits(a):
    return a.detach().cpu().contiguous().view(torch.uint8)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.inner = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, 4, 8).permute(2, 0, 3, 1, 4)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, w))
        return x + self.inner(x), x.mean((1, 2))


@pytest.mark.parametrize("exported_on", ["clutch", "cpu"])
def test_a_network(native, tmp_path, run_saved, exported_on):
    net = Block().to(exported_on).eval()
    x = torch.randn(2, 7, 32)
    with torch.no_grad():
        program = torch.export.export(net, (x.to(exported_on),))
    saved = torch.clutch.save_exported(program, tmp_path / "block.safetensors")
    assert saved["x"] == ((2, 7, 32), torch.float32) and saved["output1"] == ((2,), torch.float32) and "qkv.weight" in saved
    net.to("clutch")
    for seed in range(2):
        x = torch.randn(2, 7, 32, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            wanted = net(x.to("clutch"))
        got = run_saved(tmp_path / "block.safetensors", {"x": x}, dict(zip(("output0", "output1"), wanted)))
        assert torch.equal(bits(got["output0"]), bits(wanted[0])) and torch.equal(bits(got["output1"]), bits(wanted[1]))
    # Other weights, by their names.
    with torch.no_grad():
        net.out.bias.add_(1)
        wanted = net(x.to("clutch"))[0]
    got = run_saved(tmp_path / "block.safetensors", {"x": x, "out.bias": net.out.bias}, {"output0": wanted})
    assert torch.equal(bits(got["output0"]), bits(wanted))


class Mx(nn.Module):
    """A layer whose weights are f8 numbers with a scale of a power of two for each 32 of a row, and which rounds its input likewise."""

    def __init__(self, inner, outer):
        super().__init__()
        numbers, scales = self.split(torch.randn(outer, inner))
        self.register_buffer("numbers", numbers)
        self.register_buffer("scales", scales)

    @staticmethod
    def split(x):
        blocks = x.unflatten(-1, (-1, 32))
        # The nearest power of two is at most 1.5 times smaller: 448 is the largest number.
        scales = (blocks.abs().amax(-1) / 256).to(torch.float8_e8m0fnu)
        return (blocks / scales.to(torch.float32).unsqueeze(-1)).to(torch.float8_e4m3fn).flatten(-2), scales

    @staticmethod
    def joined(numbers, scales):
        return (numbers.to(torch.float32).unflatten(-1, (-1, 32)) * scales.to(torch.float32).unsqueeze(-1)).flatten(-2)

    def forward(self, x):
        numbers, scales = self.split(x)
        return self.joined(numbers, scales) @ self.joined(self.numbers, self.scales).mT, numbers, scales


def test_mx_dtypes(native, tmp_path, run_saved):
    net = Mx(96, 17).to("clutch")
    x = torch.randn(5, 96, device="clutch")
    program = torch.export.export(net, (x,))
    saved = torch.clutch.save_exported(program, tmp_path / "mx.safetensors")
    assert saved["scales"] == ((17, 3), torch.float8_e8m0fnu) and saved["numbers"][1] == torch.float8_e4m3fn
    x = torch.randn(5, 96, device="clutch")
    wanted = dict(zip(("output0", "output1", "output2"), net(x)))
    assert not any(t.float().isnan().any() for t in wanted.values())
    assert wanted["output1"].dtype == torch.float8_e4m3fn and wanted["output2"].dtype == torch.float8_e8m0fnu
    got = run_saved(tmp_path / "mx.safetensors", {"x": x}, wanted)
    for name, result in wanted.items():
        assert torch.equal(bits(got[name]), bits(result)), name
    torch.testing.assert_close(wanted["output0"].cpu(), x.cpu() @ Mx.joined(net.numbers.cpu(), net.scales.cpu()).mT, rtol=0.1, atol=2.0)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x, unused):
        self.count.add_(x)
        return x, self.count.clone(), x.expand(2, 3), x * 0 + 1


def test_buffers_that_change_and_outputs_that_are_inputs(native, tmp_path, run_saved):
    net = Counter().to("clutch")
    x = torch.tensor([1.0, 2.0, 3.0])
    program = torch.export.export(net, (x.to("clutch"), x.to("clutch")))
    saved = torch.clutch.save_exported(program, tmp_path / "counter.safetensors")
    assert set(saved) == {"x", "count", "output0", "output1", "output2", "output3"}
    likes = {"output0": x, "output1": x, "output2": torch.empty(2, 3), "count": x}
    got = run_saved(tmp_path / "counter.safetensors", {"x": x}, likes, runs=3)
    assert got["output1"].tolist() == got["count"].tolist() == [3, 6, 9]
    assert got["output0"].tolist() == x.tolist() and got["output2"].tolist() == [x.tolist()] * 2
    assert net.count.sum().item() == 0  # the module's own is as it was


class Decides(nn.Module):
    def forward(self, flag, x):
        return torch.cond(flag, lambda v: v.exp(), lambda v: v - 1, (x,))


def test_control_flow(native, tmp_path, run_saved):
    x = torch.randn(6)
    flag = torch.tensor(True)
    program = torch.export.export(Decides(), (flag.to("clutch"), x.to("clutch")))
    torch.clutch.save_exported(program, tmp_path / "decides.safetensors")
    for value in (True, False):
        wanted = x.to("clutch").exp() if value else x.to("clutch") - 1
        got = run_saved(tmp_path / "decides.safetensors", {"flag": torch.tensor(value), "x": x}, {"output0": wanted})
        assert torch.equal(bits(got["output0"]), bits(wanted))


class Factor(nn.Module):
    def forward(self, x):
        return torch.linalg.cholesky(x)


def test_what_cannot_be_saved_says_so(tmp_path):
    eye = torch.eye(3, device="clutch")
    with pytest.raises(TypeError, match="ExportedProgram|torch.export"):
        torch.clutch.save_exported(Factor(), tmp_path / "x")
    with pytest.raises(NotImplementedError, match="cholesky"):
        torch.clutch.save_exported(torch.export.export(Factor(), (eye,)), tmp_path / "x")
    program = torch.export.export(Counter().to("clutch"), (torch.ones(3, device="clutch"), torch.ones(3, device="clutch")))
    with pytest.raises(Exception, match="(?i)guard|shape|size|dimension"):
        torch.clutch.save_exported(program, tmp_path / "x", (torch.ones(4), torch.ones(3)))
    assert not list(tmp_path.iterdir())
    assert (eye + 1).sum().item() == 12

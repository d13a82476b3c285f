# SPDX-License-Identifier: Apache-2.0
"""Whole numbers, permutations and samples: their ranges and shares, on the device alone, and new ones at each replay of a graph."""
import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.float32, torch.float16, torch.bfloat16])
def test_whole_numbers(dtype, native):
    x = torch.randint(3, 11, (40000,), device="clutch", dtype=dtype)
    counts = torch.bincount(x.cpu().long(), minlength=11)
    assert counts[:3].sum() == 0 and counts.numel() == 11
    assert (counts[3:] - 5000).abs().max() < 400  # six deviations
    assert x.random_().cpu().double().min() >= 0
    assert torch.randint(5, (3, 4), device="clutch").shape == (3, 4)
    y = torch.empty(1000, dtype=dtype, device="clutch").random_(100)
    assert y.max().item() < 100 and y.min().item() >= 0 and len(set(y.tolist())) > 90


def test_whole_numbers_come_from_the_generator(native):
    made = torch.Generator("clutch").manual_seed(3)
    first = torch.randint(1000, (100,), device="clutch", generator=made)
    second = torch.randint(1000, (100,), device="clutch", generator=made)
    again = torch.randint(1000, (100,), device="clutch", generator=made.manual_seed(3))
    assert torch.equal(first.cpu(), again.cpu()) and not torch.equal(first.cpu(), second.cpu())


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.float16])
def test_permutations(dtype, native):
    x = torch.randperm(1000, device="clutch", dtype=dtype)
    assert x.dtype == dtype and not torch.equal(x.cpu(), torch.arange(1000, dtype=dtype))
    assert torch.equal(x.cpu().sort().values, torch.arange(1000, dtype=dtype))
    assert torch.randperm(0, device="clutch").shape == (0,)
    torch.clutch.manual_seed_all(5)
    a = torch.randperm(64, device="clutch")
    torch.clutch.manual_seed_all(5)
    assert torch.equal(a.cpu(), torch.randperm(64, device="clutch").cpu())


def test_samples(native):
    weights = torch.tensor([[1.0, 0.0, 3.0, 4.0], [0.0, 2.0, 0.0, 2.0]], device="clutch")
    shares = (weights / weights.sum(1, keepdim=True)).cpu()
    many = torch.multinomial(weights, 20000, replacement=True).cpu()
    for row, share in zip(many, shares):
        counts = torch.bincount(row, minlength=4) / 20000
        assert (counts - share).abs().max() < 0.022 and (counts[share == 0] == 0).all()
    ones = torch.cat([torch.multinomial(weights, 1) for _ in range(50)], 1).cpu()
    assert ones.shape == (2, 50) and not (ones[0] == 1).any() and set(ones[1].tolist()) == {1, 3}
    all_of = torch.multinomial(torch.ones(50, device="clutch"), 50).cpu()
    assert sorted(all_of.tolist()) == list(range(50))


def test_errors_are_pytorchs():
    x = torch.empty(4, device="clutch", dtype=torch.int8)
    for call, text in [
        (lambda: x.random_(5, 5), "random_ expects 'from' to be less than 'to'"),
        (lambda: x.random_(0, 300), "to - 1 is out of bounds"),
        (lambda: torch.randperm(-1, device="clutch"), "negative"),
        (lambda: torch.randperm(3000, device="clutch", dtype=torch.float16), "n cannot be greater than 2049"),
        (lambda: torch.multinomial(torch.ones(3, device="clutch"), 4), "cannot sample n_sample > prob_dist.size"),
        (lambda: torch.multinomial(torch.zeros(3, device="clutch"), 1), "invalid multinomial distribution"),
        (lambda: torch.multinomial(torch.tensor([1.0, -1.0], device="clutch"), 1), "either `inf`, `nan` or element < 0"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


def test_a_graph_draws_anew(native):
    x, order = torch.empty(64, device="clutch", dtype=torch.int64), torch.empty(64, device="clutch", dtype=torch.int64)

    def draw():
        x.random_(1000)
        order.copy_(torch.randperm(64, device="clutch"))

    stream = torch.Stream("clutch")
    torch.accelerator.synchronize()
    with stream:
        draw()
    torch.accelerator.synchronize()
    graph = torch.accelerator.Graph()
    with stream, graph:
        draw()
    seen = []
    for _ in range(3):
        graph.replay()
        torch.accelerator.synchronize()
        seen.append((tuple(x.tolist()), tuple(order.tolist())))
    assert len({s[0] for s in seen}) == 3 and len({s[1] for s in seen}) == 3


@pytest.mark.parametrize("dtype,least", [(torch.bfloat16, 1000), (torch.float16, 4000)])
def test_numbers_of_16_bits_are_rounded_from_f32(dtype, least, native):
    drawn = torch.empty(10000, dtype=dtype, device="clutch").uniform_(-100, 100)
    assert drawn.unique().numel() > least and drawn.min() >= -100 and drawn.max() < 100
    assert torch.empty(4096, dtype=dtype, device="clutch").uniform_(1, 1.001).float().max() < 1.001

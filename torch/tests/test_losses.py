# SPDX-License-Identifier: Apache-2.0
"""cross_entropy in one launch each way, sums of segments, counts, attention's bias: values and gradients of the CPU's, in f64 and beside it."""
import pytest
import torch
import torch.nn.functional as F

BOUNDS = {torch.float64: dict(rtol=1e-10, atol=1e-12), torch.float32: dict(rtol=1e-5, atol=1e-6), torch.bfloat16: dict(rtol=3e-2, atol=3e-2)}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("sizes", [(7,), (5, 7), (3, 7, 4), (2, 11, 3, 5), (16, 5000)])
def test_cross_entropy(sizes, dtype, native):
    classes = sizes[0] if len(sizes) == 1 else sizes[1]
    target = torch.randint(0, classes, sizes[:1] * (len(sizes) > 1) + sizes[2:])
    if target.numel() > 2:
        target.view(-1)[1] = -100
    for reduction in ("mean", "sum", "none"):
        for weighed in (False, True):
            for smoothing in (0.0, 0.1):
                logits, weight = torch.randn(sizes, dtype=dtype), torch.rand(classes, dtype=dtype) if weighed else None
                found = []
                for device in ("cpu", "clutch"):
                    x = logits.detach().clone().to(device).requires_grad_()
                    w = None if weight is None else weight.to(device)
                    loss = F.cross_entropy(x, target.to(device), w, reduction=reduction, label_smoothing=smoothing)
                    loss.backward(torch.ones_like(loss))
                    found.append((loss, x.grad))
                for ours, theirs in zip(found[1], found[0]):
                    torch.testing.assert_close(ours.cpu(), theirs, **BOUNDS[dtype])


def test_cross_entropy_of_probabilities_and_derivatives_of_any_order(native):
    logits, target = torch.randn(4, 6, dtype=torch.float64).to("clutch").requires_grad_(), torch.tensor([0, 1, -100, 3]).to("clutch")
    share = torch.softmax(torch.randn(4, 6, dtype=torch.float64), 1)
    torch.testing.assert_close(F.cross_entropy(logits, share.to("clutch")).cpu(), F.cross_entropy(logits.cpu(), share))
    assert torch.autograd.gradcheck(lambda x: F.cross_entropy(x, target), (logits,))
    assert torch.autograd.gradgradcheck(lambda x: F.cross_entropy(x, target), (logits,))
    tangent = torch.ones_like(logits)
    _, ours = torch.func.jvp(lambda x: F.cross_entropy(x, target), (logits,), (tangent,))
    torch.testing.assert_close(ours.cpu(), torch.func.jvp(lambda x: F.cross_entropy(x, target.cpu()), (logits.cpu(),), (tangent.cpu(),))[1])
    rows = torch.func.vmap(lambda x, t: F.cross_entropy(x, t))(logits, target.clamp_min(0))
    torch.testing.assert_close(rows, F.cross_entropy(logits, target.clamp_min(0), reduction="none"))


def test_cross_entropy_in_compiled_functions_and_autocast(native):
    logits, target = torch.randn(4, 6).to("clutch"), torch.tensor([0, 1, 2, 3]).to("clutch")

    def step(x):
        return F.cross_entropy(x * 2, target)

    eager, compiled = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    step(eager).backward()
    torch.compile(step, backend="clutch")(compiled).backward()
    assert torch.equal(eager.grad.cpu(), compiled.grad.cpu())
    with torch.autocast("clutch", dtype=torch.bfloat16):
        loss = F.cross_entropy(logits @ torch.eye(6, device="clutch"), target)
    assert loss.dtype == torch.float32


def test_cross_entropy_has_the_cpus_errors():
    for call in (lambda d: F.cross_entropy(torch.ones(3, 4, device=d), torch.ones(2, dtype=torch.int64, device=d)),
                 lambda d: F.cross_entropy(torch.ones(3, 4, device=d), torch.ones(3, device=d)),
                 lambda d: F.cross_entropy(torch.ones(3, 4, device=d), torch.ones(3, dtype=torch.int64, device=d), label_smoothing=2.0),
                 lambda d: F.cross_entropy(torch.ones(3, 4, device=d), torch.ones(3, dtype=torch.int64, device=d), weight=torch.ones(3, device=d))):
        with pytest.raises(Exception) as theirs:
            call("cpu")
        with pytest.raises(type(theirs.value)):
            call("clutch")


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce, native):
    for sizes, lengths, axis in (((10, 3), [2, 0, 5, 3], 0), ((10,), [10], 0), ((2, 10, 3), [[2, 0, 5, 3], [1, 2, 3, 4]], 1)):
        for initial in (None, 1.0):
            data, lengths_of = torch.randn(sizes, dtype=torch.float64), torch.tensor(lengths)
            found = []
            for device in ("cpu", "clutch"):
                x = data.detach().clone().to(device).requires_grad_()
                out = torch.segment_reduce(x, reduce, lengths=lengths_of.to(device), axis=axis, initial=initial)
                (out.nan_to_num(0, 0, 0) ** 2).sum().backward()
                found.append((out, x.grad))
            for ours, theirs in zip(found[1], found[0]):
                torch.testing.assert_close(ours.cpu(), theirs, equal_nan=True)
    offsets = torch.tensor([0, 2, 2, 7, 10])
    data = torch.randn(10, 3)
    torch.testing.assert_close(torch.segment_reduce(data.to("clutch"), reduce, offsets=offsets.to("clutch"), initial=0.0).cpu(),
                               torch.segment_reduce(data, reduce, offsets=offsets, initial=0.0))
    with pytest.raises(RuntimeError, match="to sum to data.size"):
        torch.segment_reduce(data.to("clutch"), reduce, lengths=torch.tensor([4]).to("clutch"))


def test_counts(native):
    numbers = torch.tensor([1, 2, 2, 5])
    for dtype in (torch.int64, torch.int32, torch.uint8):
        for least in (0, 8):
            ours, theirs = torch.bincount(numbers.to(dtype).to("clutch"), minlength=least), torch.bincount(numbers.to(dtype), minlength=least)
            assert ours.dtype == theirs.dtype and torch.equal(ours.cpu(), theirs)
    for weights in (torch.rand(4), torch.rand(4, dtype=torch.float64), torch.tensor([1, 2, 3, 4])):
        ours, theirs = torch.bincount(numbers.to("clutch"), weights=weights.to("clutch")), torch.bincount(numbers, weights=weights)
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours.cpu(), theirs)
    assert torch.bincount(numbers[:0].to("clutch"), minlength=3).tolist() == [0, 0, 0]
    for bad in (torch.tensor([-1, 2]), torch.ones(2), torch.ones(2, 2, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="1-d non-negative integral"):
            torch.bincount(bad.to("clutch"))


@pytest.mark.parametrize("sizes", [(20, 20), (1, 1, 20, 20), (2, 1, 20, 20), (2, 3, 1, 20)])
def test_a_bias_of_attention_gets_its_gradient(sizes, native):
    q, k, v, bias = *(torch.randn(2, 3, 20, 16) for _ in range(3)), torch.randn(sizes)
    found = []
    for device in ("cpu", "clutch"):
        given = [t.detach().clone().to(device).requires_grad_() for t in (q, k, v, bias)]
        out = F.scaled_dot_product_attention(*given[:3], attn_mask=given[3])
        (out * out).sum().backward()
        found.append([out] + [t.grad for t in given])
    for ours, theirs in zip(found[1], found[0]):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-4, atol=1e-5)

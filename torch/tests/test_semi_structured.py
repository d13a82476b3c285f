# SPDX-License-Identifier: Apache-2.0
"""2:4 matrices: PyTorch's subclass and ops beside dense products, and beside PyTorch's own conversions on the CPU."""
import pytest
import torch
from torch.sparse import SparseSemiStructuredTensor, SparseSemiStructuredTensorCUTLASS, to_sparse_semi_structured
from torch.sparse._semi_structured_conversions import _sparse_semi_structured_tile, sparse_semi_structured_from_dense_cutlass, sparse_semi_structured_to_dense_cutlass

BOUNDS = {torch.float32: 1e-5, torch.float64: 1e-13, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def pruned(m, k, dtype=torch.float32):
    """Two numbers of each quad, at random places."""
    places = torch.rand(m, (k + 3) // 4, 4).argsort(-1)[..., :2]
    keep = torch.zeros(m, (k + 3) // 4, 4, dtype=torch.bool).scatter_(2, places, True).view(m, -1)[:, :k]
    return torch.randn(m, k).to(dtype) * keep


def close(got, wanted, dtype):
    torch.testing.assert_close(got.cpu(), wanted, rtol=BOUNDS[dtype], atol=8 * BOUNDS[dtype])


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("m,k,n", [(64, 64, 32), (30, 45, 7), (1, 4, 1)])
def test_products(m, k, n, dtype, native):
    dense, b, x, bias = pruned(m, k, dtype), torch.randn(k, n).to(dtype), torch.randn(3, n, k).to(dtype), torch.randn(m).to(dtype)
    w = to_sparse_semi_structured(dense.to("clutch"))
    assert isinstance(w, SparseSemiStructuredTensor) and w.shape == dense.shape and w.device.type == "clutch" and w.dtype == dtype
    assert torch.equal(w.to_dense().cpu(), dense) and torch.equal(w.cpu(), dense)
    y, z, c = x.to("clutch"), b.to("clutch"), bias.to("clutch")
    exact = dense.double()
    close(w @ z, (exact @ b.double()).to(dtype), dtype)
    close(y[0] @ w.t(), (x[0].double() @ exact.t()).to(dtype), dtype)
    close(torch.nn.functional.linear(y, w, c), (x.double() @ exact.t() + bias.double()).to(dtype), dtype)
    close(torch.nn.functional.linear(y, w), (x.double() @ exact.t()).to(dtype), dtype)
    close(torch.addmm(c, y[0], w.t()), (x[0].double() @ exact.t() + bias.double()).to(dtype), dtype)


def test_products_of_integers(native):
    keep = pruned(32, 64) != 0
    dense, b = torch.randint(-8, 9, (32, 64)).to(torch.int8) * keep, torch.randint(-8, 9, (64, 16)).to(torch.int8)
    w = to_sparse_semi_structured(dense.to("clutch"))
    wanted = dense.int() @ b.int()
    assert torch.equal((w @ b.to("clutch")).cpu(), wanted.to(torch.int8))
    assert torch.equal(torch.ops.clutch.semi_structured_mm(w.packed, w.meta, 64, b.to("clutch"), torch.int32).cpu(), wanted)


def test_products_of_8_bit_numbers(native):
    dtype = torch.float8_e4m3fn
    dense, b = pruned(32, 64).to(dtype), torch.randn(64, 16).to(dtype)
    w = to_sparse_semi_structured(dense.to("clutch"))
    one, two = torch.tensor(0.5), torch.tensor(2.0)
    got = torch._scaled_mm(w, b.to("clutch"), one.to("clutch"), two.to("clutch"), out_dtype=torch.float32)
    torch.testing.assert_close(got.cpu(), dense.float() @ b.float(), rtol=1e-5, atol=1e-4)


def test_values_and_places(native):
    dense = torch.tensor([[1.0, 0, 2, 0, 0, 0, 3, 4]])
    w = to_sparse_semi_structured(dense.to("clutch"))
    assert w.values().tolist() == [[1, 2, 3, 4]]
    assert w.indices().tolist() == [[0b1000 | 0b1110 << 4]]


def test_quads_of_more_than_two_numbers_lose_what_pytorch_drops(native):
    dense = torch.randn(32, 64, dtype=torch.float16)
    kept = sparse_semi_structured_to_dense_cutlass(*sparse_semi_structured_from_dense_cutlass(dense))
    assert torch.equal(to_sparse_semi_structured(dense.to("clutch")).to_dense().cpu(), kept)


@pytest.mark.parametrize("algorithm", ["", "largest_abs_values_greedy", "causal1122", "groups"])
def test_layers_train(algorithm, native):
    """Gradients of a layer whose weight is pruned are those of the dense layer with that weight; the weight's where it has values."""
    layer = torch.nn.Linear(40, 24)
    ours = type(to_sparse_semi_structured(torch.zeros(4, 4, device="clutch")))
    sparse = (
        to_sparse_semi_structured(pruned(24, 40).to("clutch")) if algorithm == "groups" else ours.prune_dense_static_sort(layer.weight.detach().to("clutch"), algorithm)
    )
    assert (sparse.packed_t is None) == (algorithm == "groups")
    dense = sparse.to_dense().cpu().requires_grad_()
    assert torch.equal(sparse.t().t().to_dense().cpu(), dense.detach())
    x, bias = torch.randn(2, 5, 40, requires_grad=True), layer.bias.detach().clone().requires_grad_()
    y, c = x.detach().to("clutch").requires_grad_(), bias.detach().to("clutch").requires_grad_()
    weight = torch.nn.Parameter(sparse)
    wanted, got = torch.nn.functional.linear(x, dense, bias), torch.nn.functional.linear(y, weight, c)
    grad = torch.randn_like(wanted)
    wanted.backward(grad)
    got.backward(grad.to("clutch"))
    for a, b in ((got, wanted), (y.grad, x.grad), (c.grad, bias.grad), (weight.grad, dense.grad * (dense != 0))):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-5, atol=1e-5)


def test_what_products_pack_is_kept_while_the_matrix_lives(native):
    w = to_sparse_semi_structured(pruned(256, 256).to("clutch"))
    x = torch.randn(8, 256, device="clutch")
    torch.nn.functional.linear(x, w)
    torch.accelerator.synchronize()
    before = torch.accelerator.memory_stats()["allocation.all.allocated"]
    for _ in range(3):
        torch.nn.functional.linear(x, w)
    assert torch.accelerator.memory_stats()["allocation.all.allocated"] - before <= 3  # the results alone
    held = torch.accelerator.memory_allocated()
    size = 256 * 256 * 4
    del w
    torch.accelerator.synchronize()
    assert held - torch.accelerator.memory_allocated() >= size // 2  # values, places and what was packed


def test_writes_are_seen(native):
    w = to_sparse_semi_structured(pruned(16, 16).to("clutch"))
    x = torch.randn(3, 16, device="clutch")
    first = torch.nn.functional.linear(x, w)
    w.packed.mul_(2)
    torch.testing.assert_close(torch.nn.functional.linear(x, w).cpu(), 2 * first.cpu())
    with torch.inference_mode():
        w.packed.mul_(2)
        torch.testing.assert_close(torch.nn.functional.linear(x, w).cpu(), 4 * first.cpu())
        other = to_sparse_semi_structured(pruned(16, 16).to("clutch"))
        assert not other.packed.is_inference()


def test_graphs(native):
    w = to_sparse_semi_structured(pruned(32, 64).to("clutch"))
    cutlass = SparseSemiStructuredTensorCUTLASS.prune_dense_static_sort(torch.randn(64, 64, dtype=torch.float16, device="clutch"))
    x, y = torch.randn(8, 64, device="clutch"), torch.randn(64, 8, device="clutch", dtype=torch.float16)
    wanted = torch.nn.functional.linear(x, w), cutlass @ y
    stream = torch.Stream("clutch")
    torch.accelerator.synchronize()
    graph = torch.accelerator.Graph()
    with stream, graph:
        got = torch.nn.functional.linear(x, w), cutlass @ y
    graph.replay()
    torch.accelerator.synchronize()
    assert torch.equal(got[0].cpu(), wanted[0].cpu()) and torch.equal(got[1].cpu(), wanted[1].cpu())


def test_compiled(native):
    layer = torch.nn.Linear(64, 32).to("clutch").eval().requires_grad_(False)
    layer.weight = torch.nn.Parameter(to_sparse_semi_structured(pruned(32, 64).to("clutch")), requires_grad=False)
    x = torch.randn(8, 64, device="clutch")
    with torch.no_grad():
        assert torch.equal(torch.compile(layer, backend="clutch")(x).cpu(), layer(x).cpu())


# PyTorch's own ops and its CUTLASS subclass.


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8])
def test_pytorchs_order(dtype, native):
    dense = pruned(64, 128)
    dense = (dense * 20).to(torch.int8) if dtype == torch.int8 else dense.to(dtype)
    values, metadata = sparse_semi_structured_from_dense_cutlass(dense)
    got = torch._to_sparse_semi_structured(dense.to("clutch"))
    assert torch.equal(got[0].cpu(), values) and torch.equal(got[1].cpu(), metadata)
    if dtype == torch.int8:
        b = torch.randint(-8, 9, (128, 16)).to(torch.int8)
        assert torch.equal(torch._sparse_semi_structured_mm(*got, b.to("clutch"), out_dtype=torch.int32).cpu(), dense.int() @ b.int())
        return
    b, bias, x = torch.randn(128, 16).to(dtype), torch.randn(64).to(dtype), torch.randn(3, 5, 128).to(dtype)
    exact = dense.double() @ b.double()
    close(torch._sparse_semi_structured_mm(*got, b.to("clutch")), exact.to(dtype), dtype)
    with_bias = torch._sparse_semi_structured_addmm(bias.to("clutch"), *got, b.to("clutch"), alpha=0.5, beta=2)
    close(with_bias, (0.5 * exact + 2 * bias.double().unsqueeze(1)).to(dtype), dtype)
    close(torch._sparse_semi_structured_addmm(bias.to("clutch"), *got, b.to("clutch")), (exact + bias.double().unsqueeze(1)).to(dtype), dtype)
    of_x = torch._sparse_semi_structured_linear(x.to("clutch"), *got, bias=bias.to("clutch"), activation="relu")
    close(of_x, (x.double() @ dense.double().t() + bias.double()).relu().to(dtype), dtype)


def test_pytorchs_subclass(native):
    dense = torch.randn(64, 128, dtype=torch.float16)
    w = SparseSemiStructuredTensorCUTLASS.prune_dense_static_sort(dense.to("clutch"))
    kept = _sparse_semi_structured_tile(dense.clone())
    assert torch.equal(w.to_dense().cpu(), kept)
    assert torch.equal(sparse_semi_structured_to_dense_cutlass(w.packed_t.cpu(), w.meta_t.cpu()), kept.t())
    x, grad = torch.randn(6, 128, dtype=torch.float16), torch.randn(64, 6, dtype=torch.float16)
    close(torch.nn.functional.linear(x.to("clutch"), w), (x.double() @ kept.double().t()).half(), torch.float16)
    close(w.t() @ grad.to("clutch"), (kept.double().t() @ grad.double()).half(), torch.float16)
    other = torch.randn(64, 128, dtype=torch.float16)
    other[:, ::3] = 0  # zeros at places that are kept stay there
    wanted = torch.where(kept != 0, other, 0)
    bits = w.compressed_swizzled_bitmask
    assert torch.equal(torch._sparse_semi_structured_apply_dense(other.to("clutch"), bits).cpu(), wanted)
    assert torch.equal(torch._sparse_semi_structured_apply_dense(other.t().contiguous().to("clutch"), bits.transpose(0, 1)).cpu(), wanted.t())
    packed, packed_t = torch._sparse_semi_structured_apply(other.to("clutch"), bits)
    assert torch.equal(sparse_semi_structured_to_dense_cutlass(packed.cpu(), w.meta.cpu()), wanted)
    assert torch.equal(sparse_semi_structured_to_dense_cutlass(packed_t.cpu(), w.meta_t.cpu()), wanted.t())


def test_errors():
    with pytest.raises(RuntimeError, match="2d"):
        to_sparse_semi_structured(torch.zeros(2, 4, 4, device="clutch"))
    with pytest.raises(RuntimeError, match="supported dtype"):
        to_sparse_semi_structured(torch.zeros(4, 4, device="clutch", dtype=torch.int64))
    w = to_sparse_semi_structured(pruned(8, 16).to("clutch"))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        w @ torch.zeros(8, 3, device="clutch")
    with pytest.raises(RuntimeError, match="same dtype"):
        w @ torch.zeros(16, 3, device="clutch", dtype=torch.float64)
    with pytest.raises(RuntimeError, match="bias"):
        torch.nn.functional.linear(torch.zeros(3, 16, device="clutch"), w, torch.zeros(7, device="clutch"))
    with pytest.raises(NotImplementedError, match="specific set"):
        w + 1
    with pytest.raises(ValueError, match="not supported"):
        w @ to_sparse_semi_structured(pruned(16, 8).to("clutch"))
    with pytest.raises(RuntimeError, match="algorithm"):
        type(w).prune_dense_static_sort(torch.zeros(8, 8, device="clutch"), "whatever")
    with pytest.raises(RuntimeError, match="multiples of 64"):
        torch._sparse_semi_structured_tile(torch.zeros(8, 8, device="clutch", dtype=torch.float16))
    with pytest.raises(NotImplementedError):
        torch._to_sparse_semi_structured(torch.zeros(32, 64, device="clutch"))


def test_empty(native):
    w = to_sparse_semi_structured(torch.zeros(0, 8, device="clutch"))
    assert torch.nn.functional.linear(torch.ones(3, 8, device="clutch"), w).shape == (3, 0)
    w = to_sparse_semi_structured(pruned(8, 8).to("clutch"))
    assert torch.nn.functional.linear(torch.ones(0, 8, device="clutch"), w).shape == (0, 8) and (w @ torch.ones(8, 0, device="clutch")).shape == (8, 0)

# SPDX-License-Identifier: Apache-2.0
"""Tensors of entries with indices beside the CPU's: made, coalesced, added, multiplied, as masks and gradients; what only the CPU does."""
import pytest
import torch

import torch_clutch  # noqa: F401

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.int64, torch.bool]


def entries(shape=(5, 7), count=40, dtype=torch.float32, dense=(), seed=0):
    """Entries of which many have the same indices."""
    generator = torch.Generator().manual_seed(seed)
    indices = torch.stack([torch.randint(size, (count,), generator=generator) for size in shape])
    values = torch.randint(-8, 9, (count, *dense), generator=generator).to(dtype)
    return torch.sparse_coo_tensor(indices, values, (*shape, *dense), check_invariants=True)


def same(ours, wanted):
    assert ours.device.type == "clutch" and ours.layout == wanted.layout and ours.shape == wanted.shape and ours.dtype == wanted.dtype
    if wanted.layout == torch.sparse_coo:
        assert ours.is_coalesced() == wanted.is_coalesced() and ours.sparse_dim() == wanted.sparse_dim()
        ours, wanted = ours.coalesce(), wanted.coalesce()
        assert torch.equal(ours.indices().cpu(), wanted.indices())
        ours, wanted = ours.values(), wanted.values()
    assert torch.equal(ours.cpu(), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape,dense", [((5, 7), ()), ((6,), (3,)), ((2, 3, 4), (2, 2))])
def test_entries_are_kept_and_coalesced(shape, dense, dtype):
    host = entries(shape, dtype=dtype, dense=dense)
    device = host.to("clutch")
    same(device, host)
    same(device.coalesce(), host.coalesce())
    same(device.to_dense(), host.to_dense())
    same(device.clone(), host)
    assert torch.equal(device.cpu().to_dense(), host.to_dense())


def test_none_and_few_entries():
    for host in (torch.sparse_coo_tensor(size=(3, 4)), entries(count=1), torch.sparse_coo_tensor(torch.zeros(0, 2, dtype=torch.long), torch.tensor([1.0, 2.0]), ())):
        device = host.to("clutch")
        same(device, host)
        same(device.coalesce(), host.coalesce())
        same(device.to_dense(), host.to_dense())
        same(device + device, host + host)


def test_sums_and_products(native):
    host, other, dense, right = entries(), entries(seed=1), torch.randn(5, 7).round(), torch.randn(7, 3).round()
    device, another, on_device, on_right = (t.to("clutch") for t in (host, other, dense, right))
    same(device + another, host + other)
    same(torch.add(device, another, alpha=3), torch.add(host, other, alpha=3))
    same(device.coalesce() + another.coalesce(), host.coalesce() + other.coalesce())
    same(on_device + device, dense + host)
    same(torch.add(on_device, device, alpha=-2), torch.add(dense, host, alpha=-2))
    same(device * 4, host * 4)
    same(torch.sparse.mm(device, on_right), torch.sparse.mm(host, right))
    same(torch.sparse.addmm(on_right[:5], device, on_right, beta=2, alpha=3), torch.sparse.addmm(right[:5], host, right, beta=2, alpha=3))
    same(on_device.to_sparse(), dense.to_sparse())
    same(on_device.to_sparse(1), dense.to_sparse(1))
    same(on_device.sparse_mask(device.coalesce()), dense.sparse_mask(host.coalesce()))
    changed, wanted = device.clone(), host.clone()
    changed.mul_(2)
    wanted.mul_(2)
    same(changed, wanted)
    same(changed.zero_(), wanted.zero_())


def test_gradients_of_rows_of_a_table():
    where = torch.tensor([1, 4, 1, 0])
    host = torch.nn.Embedding(6, 3, sparse=True)
    device = torch.nn.Embedding(6, 3, sparse=True, _weight=host.weight.detach().to("clutch"))
    for table, places in ((host, where), (device, where.to("clutch"))):
        step = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for _ in range(3):
            step.zero_grad()
            table(places).square().sum().backward()
            step.step()
    assert device.weight.grad.layout == torch.sparse_coo
    torch.testing.assert_close(device.weight.detach().cpu(), host.weight.detach())


def test_the_cpu_does_the_rest_and_is_counted():
    host, device = entries().coalesce(), entries().coalesce().to("clutch")
    torch.clutch.reset_fallbacks()
    same(device.neg(), host.neg())
    same(torch.sparse.sum(device, 0), torch.sparse.sum(host, 0))
    same(device.abs_(), host.abs_())
    assert {"aten::neg", "aten::abs.out"} <= set(torch.clutch.fallbacks())


def test_sizes_that_do_not_fit():
    a, b = entries().to("clutch"), entries((7, 5)).to("clutch")
    with pytest.raises(RuntimeError, match="expected sizes"):
        a + b
    with pytest.raises(RuntimeError, match="to be equal to dim 1"):
        torch.sparse.mm(a, torch.ones(5, 2, device="clutch"))
    with pytest.raises(RuntimeError, match="incompatible sizes"):
        torch.ones(7, 5, device="clutch").sparse_mask(a.coalesce())

# SPDX-License-Identifier: Apache-2.0
"""Matrices of compressed rows beside the CPU's: products from both sides, gradients of both factors, copies."""
import pytest
import torch


def matrix(rows, columns, dtype=torch.float32, indices=torch.int64):
    dense = (torch.rand(rows, columns) > 0.7) * torch.randn(rows, columns, dtype=dtype)
    dense[1] = 0  # a row without entries
    made = dense.to_sparse_csr()
    return torch.sparse_csr_tensor(made.crow_indices().to(indices), made.col_indices().to(indices), made.values(), made.shape)


def moved(host, values=None):
    device = [t.to("clutch") for t in (host.crow_indices(), host.col_indices())]
    return torch.sparse_csr_tensor(*device, host.values().to("clutch") if values is None else values, host.shape)


@pytest.mark.parametrize("indices", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype,bound", [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_products_with_gradients(dtype, bound, indices, native):
    host = matrix(30, 20, dtype, indices)
    x, values = torch.randn(20, 7, dtype=dtype, requires_grad=True), host.values().clone().requires_grad_()
    y, on_device = (t.detach().to("clutch").requires_grad_() for t in (x, values))
    wanted = torch.sparse_csr_tensor(host.crow_indices(), host.col_indices(), values, host.shape) @ x
    got = moved(host, on_device) @ y
    grad = torch.randn_like(wanted)
    wanted.backward(grad)
    got.backward(grad.to("clutch"))
    for a, b in ((got, wanted), (y.grad, x.grad), (on_device.grad, values.grad)):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=bound, atol=bound)


def test_other_forms(native):
    host = matrix(30, 20)
    device, dense = host.to("clutch"), host.to_dense()
    left, right, c = torch.randn(4, 30), torch.randn(20, 5), torch.randn(30, 5)
    for got, wanted in [
        (left.to("clutch") @ device, left @ dense),
        (device.t() @ left.t().to("clutch"), dense.t() @ left.t()),
        (torch.addmm(c.to("clutch"), device, right.to("clutch"), beta=0.5, alpha=2), 0.5 * c + 2 * (dense @ right)),
        (torch.sparse.mm(device, right.to("clutch")), dense @ right),
        (torch.mm(device, right.to("clutch"), out=torch.empty(30, 5, device="clutch")), dense @ right),
        (torch.mm(device, torch.empty(20, 0, device="clutch")), torch.empty(30, 0)),
    ]:
        torch.testing.assert_close(got.cpu(), wanted, rtol=1e-5, atol=1e-5)
    a, b = torch.randn(30, 6), torch.randn(6, 20)
    sampled = torch.sparse.sampled_addmm(device, a.to("clutch"), b.to("clutch"), beta=0.5, alpha=2)
    torch.testing.assert_close(sampled.cpu().to_dense(), torch.where(dense != 0, 0.5 * dense + 2 * (a @ b), 0), rtol=1e-5, atol=1e-5)


def test_copies(native):
    host = matrix(6, 5)
    device = host.to("clutch")
    assert device.layout == torch.sparse_csr and device._nnz() == host._nnz() and device.device.type == "clutch"
    assert torch.equal(device.cpu().to_dense(), host.to_dense()) and torch.equal(device.to_dense().cpu(), host.to_dense())
    twin = device.clone()
    twin.values().zero_()
    assert device.values().abs().sum().item() > 0 and "sparse_csr" in repr(device)


def test_errors_are_pytorchs():
    device = matrix(6, 5).to("clutch")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        device @ torch.ones(6, 2, device="clutch")
    with pytest.raises(RuntimeError, match="same dtype"):
        device @ torch.ones(5, 2, device="clutch", dtype=torch.float64)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_products_with_other_reductions(reduce, native):
    host = matrix(30, 20)
    x, values = torch.randn(20, 7, requires_grad=True), host.values().clone().requires_grad_()
    y, on_device = (t.detach().to("clutch").requires_grad_() for t in (x, values))
    wanted = torch.sparse.mm(torch.sparse_csr_tensor(host.crow_indices(), host.col_indices(), values, host.shape), x, reduce)
    got = torch.sparse.mm(moved(host, on_device), y, reduce)
    grad = torch.randn_like(wanted)
    wanted.backward(grad)
    got.backward(grad.to("clutch"))
    for a, b in ((got, wanted), (y.grad, x.grad), (on_device.grad, values.grad)):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-5, atol=1e-5)

# SPDX-License-Identifier: Apache-2.0
"""Bad input is the exception that PyTorch's CPU gives; fallbacks are counted, named and forbidden."""
import pytest
import torch


def raised(f):
    try:
        f()
    except Exception as error:
        return type(error)
    return None


BAD = {
    "shapes of add": lambda d: torch.ones(2, device=d) + torch.ones(3, device=d),
    "shapes of mm": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    "dtypes of mm": lambda d: torch.ones(2, 2, device=d) @ torch.ones(2, 2, device=d).double(),
    "dimension": lambda d: torch.ones(2, device=d).sum(3),
    "dimension of softmax": lambda d: torch.ones(2, device=d).softmax(3),
    "dimension of cumsum": lambda d: torch.ones(2, 2, device=d).cumsum(5),
    "cat": lambda d: torch.cat([torch.ones(2, 2, device=d), torch.ones(2, 3, device=d)]),
    "dtype of an in-place result": lambda d: torch.ones(2, device=d, dtype=torch.int64).add_(1.5),
    "dtype of out": lambda d: torch.exp(torch.ones(2, device=d), out=torch.empty(2, device=d, dtype=torch.int64)),
    "negation of booleans": lambda d: -torch.ones(2, device=d, dtype=torch.bool),
    "layer_norm": lambda d: torch.nn.functional.layer_norm(torch.ones(2, 3, device=d), (4,)),
    "index_select": lambda d: torch.ones(3, device=d).index_select(0, torch.ones(2, 2, dtype=torch.int64, device=d)),
    "arange": lambda d: torch.arange(0, 3, -1, device=d),
    "view": lambda d: torch.ones(3, device=d).view(2),
    "dropout": lambda d: torch.nn.functional.dropout(torch.ones(3, device=d), 1.5),
    "uniform": lambda d: torch.ones(3, device=d).uniform_(2, 1),
    "normal": lambda d: torch.ones(3, device=d).normal_(0, -1),
    "masked_fill": lambda d: torch.ones(3, device=d).masked_fill_(torch.ones(3, device=d), 1.0),
    "argmax of nothing": lambda d: torch.empty(0, device=d).argmax(),
    "item of two": lambda d: torch.ones(2, device=d).item(),
    "nll_loss": lambda d: torch.nn.functional.nll_loss(torch.ones(2, 3, device=d), torch.zeros(3, dtype=torch.int64, device=d)),
    "cholesky": lambda d: torch.linalg.cholesky(-torch.eye(3, device=d)),
    "dtypes of dot": lambda d: torch.dot(torch.ones(3, device=d), torch.ones(2, device=d).double()),
    "a boolean factor of addr": lambda d: torch.addr(torch.ones(2, 3, device=d), torch.ones(2, device=d), torch.ones(3, device=d), beta=True),
    "a matrix in addr": lambda d: torch.addr(torch.ones(2, 3, device=d), torch.ones(2, 2, device=d), torch.ones(3, device=d)),
    "threshold of gelu": lambda d: torch.nn.functional.gelu(torch.ones(2, device=d), approximate="nothing"),
}


@pytest.mark.parametrize("name", BAD)
def test_same_exception_as_on_the_cpu(name):
    wanted = raised(lambda: BAD[name]("cpu"))
    assert wanted is not None
    assert raised(lambda: BAD[name]("clutch")) is wanted


def test_devices_do_not_mix():
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device="clutch") + torch.ones(2)
    with pytest.raises(RuntimeError):
        torch.ones(2, 2, device="clutch") @ torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="be on the same device"):
        torch.linalg.lstsq(torch.ones(2, 2, device="clutch"), torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="be on the same device"):
        torch.dot(torch.ones(2, device="clutch"), torch.ones(2))


def test_elements_that_share_memory_are_not_written():
    shared, whole = torch.zeros(1, device="clutch").expand(6), torch.rand(6, device="clutch")
    for write in (
        lambda: shared.add_(1),
        lambda: shared.copy_(whole),
        lambda: torch.sin(whole, out=shared),
        lambda: shared.bernoulli_(0.5),
        lambda: shared.erfinv_(),  # by the CPU
        lambda: whole[:5].copy_(whole[1:]),
        lambda: whole.put_(torch.tensor([1], device="clutch"), whole[:1]),
    ):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            write()
    assert shared.fill_(3).tolist() == [3] * 6 and shared.zero_().tolist() == [0] * 6
    assert torch.nn.functional.threshold_(shared, 0.5, 0.25).tolist() == [0.25] * 6
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.threshold(whole, 0.5, 0.25, out=shared)


def test_masks_and_indices_write_elements_that_share_memory_with_a_warning():
    mask = torch.tensor([[True, False, False], [False, False, False]])
    index = torch.tensor([1])

    def written(device, write):
        base = torch.arange(2.0, device=device).view(2, 1)
        with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
            write(base.expand(2, 3), device)
        return base.cpu()

    for write in (lambda x, d: x.masked_fill_(mask.to(d), 5.0), lambda x, d: x.masked_fill_(mask.to(d), torch.tensor(5.0, device=d)),
                  lambda x, d: x.index_fill_(0, index.to(d), 7.0), lambda x, d: x.index_fill_(1, index.to(d), 7.0),
                  lambda x, d: x.index_put_((index.to(d),), torch.tensor(3.0, device=d)), lambda x, d: x.index_put_((index.to(d), index.to(d)), torch.tensor(3.0, device=d))):
        assert torch.equal(written("clutch", write), written("cpu", write))
    numbers = torch.arange(4, device="clutch")
    for write in (lambda: numbers.index_put_((numbers,), numbers), lambda: numbers.index_fill_(0, numbers, 1)):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            write()


def test_autocast_refuses_binary_cross_entropy():
    x = torch.rand(3, device="clutch")
    with torch.autocast("clutch", dtype=torch.float16), pytest.raises(RuntimeError, match="unsafe to autocast"):
        torch.nn.functional.binary_cross_entropy(x, x)


def test_indices_are_on_the_tensors_device():
    with pytest.raises(RuntimeError, match=r"indices should be either on cpu"):
        torch.rand(3, 4)[torch.tensor([0, 2], device="clutch")]


def test_out_of_memory_is_its_own_exception():
    with pytest.raises((torch.OutOfMemoryError, RuntimeError)):
        torch.empty(1 << 48, device="clutch")
    assert torch.ones(2, device="clutch").sum().item() == 2


def test_more_than_a_buffer_has_is_out_of_memory():
    with pytest.raises(torch.OutOfMemoryError, match="must have at most"):
        torch.empty(1 << 45, device="clutch")


def test_fallbacks_are_counted_with_reasons():
    x = torch.eye(3, device="clutch")
    torch.linalg.cholesky(x)
    torch.linalg.cholesky(x)
    assert torch.clutch.fallbacks()["aten::linalg_cholesky_ex.L"] == 2
    z = torch.ones(3, dtype=torch.complex64)
    assert torch.equal(z.to("clutch").sin().cpu(), z.sin())
    calls, why = torch.clutch.fallbacks(reasons=True)["aten::sin.out"]
    assert calls == 1 and "c64" in why
    torch.clutch.reset_fallbacks()
    assert torch.clutch.fallbacks() == {}


def test_fallbacks_are_forbidden_by_name():
    x = torch.eye(3, device="clutch")
    with torch.clutch.forbid_fallbacks():
        with pytest.raises(NotImplementedError, match="aten::linalg_cholesky_ex.L"):
            torch.linalg.cholesky(x)
        with pytest.raises(NotImplementedError, match="aten::sin.out.*c64"):
            torch.ones(3, dtype=torch.complex64, device="clutch").sin()
        with pytest.raises(NotImplementedError, match="convolution"):
            torch.nn.functional.conv1d(torch.ones(1, 1, 4, device="clutch").long(), torch.ones(1, 1, 2, device="clutch").long())
    torch.linalg.cholesky(x)


def test_an_op_that_neither_side_has_names_itself():
    with torch.library._scoped_library("clutch_tests", "DEF") as library:
        library.define("of_cuda(Tensor x) -> Tensor")
        library.impl("of_cuda", lambda x: x, "CUDA")
        library.define("of_nobody(Tensor x) -> Tensor")
        for name in ("of_cuda", "of_nobody"):
            with pytest.raises(NotImplementedError, match=f"clutch_tests::{name}"):
                getattr(torch.ops.clutch_tests, name)(torch.ones(2, device="clutch"))
    x = torch.ones(2, 2, 2, 2, device="clutch")
    with pytest.raises((NotImplementedError, RuntimeError), match="cudnn_convolution"):
        torch.ops.aten.cudnn_convolution(x, x, [0, 0], [1, 1], [1, 1], 1, False, False, False)
    assert (x + 1).sum().item() == 32


def test_more_dimensions_than_clutch_has():
    x = torch.ones([1] * 15 + [2], device="clutch")
    assert (x + 1).sum().item() == 4 and x.transpose(0, 15).contiguous().sum().item() == 2


def test_integers_past_the_doubles():
    big = 2**60 + 1
    assert torch.full((2,), big, device="clutch").tolist() == [big, big]
    assert (torch.full((2,), 1, device="clutch") + big).tolist() == [big + 1] * 2


def test_op_table_names_registered_ops():
    rows = torch.clutch.ops()
    assert len(rows) > 200 and all(family and aten and clutch for family, aten, clutch in rows)
    of = {name: {aten for family, aten, _ in rows if family == name} for name in ("sparse matrices", "sparse tensors")}
    dense = [aten for family, aten, _ in rows if family not in of]
    assert all(len(names) > 10 for names in of.values()) and len(set(dense)) == len(dense)
    of_dense = {"_convert_indices_from_csr_to_coo.out", "_convert_indices_from_coo_to_csr.out", "_to_sparse", "_to_sparse.sparse_dim"}
    for key, names in (
        ("PrivateUse1", [*dense, *of_dense]),
        ("SparseCsrPrivateUse1", of["sparse matrices"] - of_dense),
        ("SparsePrivateUse1", of["sparse tensors"] - of_dense),
    ):
        for aten in names:
            assert torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + aten, key), aten
    assert "| add, add_scaled | `add.out` |" in torch.clutch.ops(markdown=True)


def test_deterministic_mode(native):
    torch.use_deterministic_algorithms(True)
    try:
        index = torch.randint(0, 4, (1000,)).to("clutch")
        source = torch.randn(1000).to("clutch")
        sums = [torch.zeros(4, device="clutch").index_add(0, index, source).cpu() for _ in range(3)]
        assert torch.equal(sums[0], sums[1]) and torch.equal(sums[0], sums[2])
    finally:
        torch.use_deterministic_algorithms(False)


def test_docs_have_the_op_table():
    import op_table

    text, wanted = op_table.wanted()
    assert text == wanted, "scripts/test --torch --python torch/tests/op_table.py --update"

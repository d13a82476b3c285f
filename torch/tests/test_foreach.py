# SPDX-License-Identifier: Apache-2.0
"""_foreach_ ops: the bits of the op on each tensor, in one launch where the list allows it, and in PyTorch's loop otherwise."""
import pytest
import torch

SHAPES = [(3,), (4, 5), (), (1,), (2, 3, 4), (1000,)]
# name: the call on lists a, b, c, and on one tensor of each; those whose name ends in _ are in place
CALLS = {
    "_foreach_add_": [(lambda f, a, b, c: f(a, 2.5), lambda x, y, z: x.add_(2.5)), (lambda f, a, b, c: f(a, b), lambda x, y, z: x.add_(y)),
                      (lambda f, a, b, c: f(a, b, alpha=-0.3), lambda x, y, z: x.add_(y, alpha=-0.3)), (lambda f, a, b, c: f(a, 1), lambda x, y, z: x.add_(1))],
    "_foreach_add": [(lambda f, a, b, c: f(a, 2.5), lambda x, y, z: x.add(2.5)), (lambda f, a, b, c: f(a, b, alpha=2), lambda x, y, z: x.add(y, alpha=2))],
    "_foreach_sub_": [(lambda f, a, b, c: f(a, 0.7), lambda x, y, z: x.sub_(0.7))],
    "_foreach_mul_": [(lambda f, a, b, c: f(a, 0.3), lambda x, y, z: x.mul_(0.3)), (lambda f, a, b, c: f(a, b), lambda x, y, z: x.mul_(y)),
                      (lambda f, a, b, c: f(a, c[2]), None)],
    "_foreach_mul": [(lambda f, a, b, c: f(a, 0.3), lambda x, y, z: x.mul(0.3)), (lambda f, a, b, c: f(a, b), lambda x, y, z: x.mul(y))],
    "_foreach_div_": [(lambda f, a, b, c: f(a, 3), lambda x, y, z: x.div_(3)), (lambda f, a, b, c: f(a, b), lambda x, y, z: x.div_(y)),
                      (lambda f, a, b, c: f(a, [0.7] * len(a)), lambda x, y, z: x.div_(0.7))],
    "_foreach_div": [(lambda f, a, b, c: f(a, 3), lambda x, y, z: x.div(3)), (lambda f, a, b, c: f(a, b), lambda x, y, z: x.div(y))],
    "_foreach_lerp_": [(lambda f, a, b, c: f(a, b, 0.3), lambda x, y, z: x.lerp_(y, 0.3))],
    "_foreach_addcmul_": [(lambda f, a, b, c: f(a, b, c, 0.3), lambda x, y, z: x.addcmul_(y, z, value=0.3)),
                          (lambda f, a, b, c: f(a, b, c), lambda x, y, z: x.addcmul_(y, z))],
    "_foreach_addcdiv_": [(lambda f, a, b, c: f(a, b, c, -0.3), lambda x, y, z: x.addcdiv_(y, z, value=-0.3)),
                          (lambda f, a, b, c: f(a, b, c, [-0.3] * len(a)), lambda x, y, z: x.addcdiv_(y, z, value=-0.3))],
    "_foreach_sqrt_": [(lambda f, a, b, c: f(a), lambda x, y, z: x.sqrt_())],
    "_foreach_sqrt": [(lambda f, a, b, c: f(a), lambda x, y, z: x.sqrt())],
    "_foreach_lerp": [(lambda f, a, b, c: f(a, b, 0.3), lambda x, y, z: x.lerp(y, 0.3))],
    "_foreach_addcmul": [(lambda f, a, b, c: f(a, b, c, value=0.3), lambda x, y, z: x.addcmul(y, z, value=0.3))],
    "_foreach_addcdiv": [(lambda f, a, b, c: f(a, b, c, value=0.3), lambda x, y, z: x.addcdiv(y, z, value=0.3)),
                         (lambda f, a, b, c: f(a, b, c), lambda x, y, z: x.addcdiv(y, z))],
    "_foreach_neg_": [(lambda f, a, b, c: f(a), lambda x, y, z: x.neg_())],
    "_foreach_neg": [(lambda f, a, b, c: f(a), lambda x, y, z: x.neg())],
}


for _name in "abs ceil cos erf exp expm1 floor frac log log1p log2 reciprocal round rsqrt sigmoid sign sin tanh trunc".split():
    CALLS[f"_foreach_{_name}"] = [(lambda f, a, b, c: f(a), lambda x, y, z, n=_name: getattr(x, n)())]
    CALLS[f"_foreach_{_name}_"] = [(lambda f, a, b, c: f(a), lambda x, y, z, n=_name: getattr(x, n + "_")())]
for _name in ("add", "sub", "mul", "div"):
    CALLS.setdefault(f"_foreach_{_name}_", []).append((lambda f, a, b, c: f(a, [0.7] * len(a)), lambda x, y, z, n=_name: getattr(x, n + "_")(0.7)))
    CALLS.setdefault(f"_foreach_{_name}", []).append((lambda f, a, b, c: f(a, [0.7] * len(a)), lambda x, y, z, n=_name: getattr(x, n)(0.7)))
CALLS["_foreach_sub"] += [(lambda f, a, b, c: f(a, b), lambda x, y, z: x.sub(y)), (lambda f, a, b, c: f(a, b, alpha=0.3), lambda x, y, z: x.sub(y, alpha=0.3))]
for _name, _one in (("maximum", "clamp_min"), ("minimum", "clamp_max"), ("clamp_min", "clamp_min"), ("clamp_max", "clamp_max")):
    CALLS[f"_foreach_{_name}_"] = [(lambda f, a, b, c: f(a, 0.5), lambda x, y, z, n=_one: getattr(x, n + "_")(0.5)),
                                   (lambda f, a, b, c: f(a, b), lambda x, y, z, n=_one: getattr(x, n + "_")(y))]
    CALLS[f"_foreach_{_name}"] = [(lambda f, a, b, c: f(a, 0.5), lambda x, y, z, n=_one: getattr(x, n)(0.5)),
                                  (lambda f, a, b, c: f(a, b), lambda x, y, z, n=_one: getattr(x, n)(y))]
CALLS["_foreach_zero_"] = [(lambda f, a, b, c: f(a), lambda x, y, z: x.zero_())]
CALLS["_foreach_copy_"] = [(lambda f, a, b, c: f(a, b), lambda x, y, z: x.copy_(y))]


def lists(shapes, dtype, count=3):
    return [[torch.rand(shape).add(0.1).to(dtype).to("clutch") for shape in shapes] for _ in range(count)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_bits(name, dtype, native):
    for of_lists, of_one in CALLS[name]:
        for shapes in (SHAPES, SHAPES + [(0,)], SHAPES[:1]):
            a, b, c = lists(shapes, dtype)
            factor = c[2].clone() if len(c) > 2 else None
            if of_one is None and factor is None:
                continue
            one = of_one or (lambda x, y, z: x.mul_(factor))
            twins = [t.clone() for t in a]
            got = of_lists(getattr(torch, name), a, b, c)
            wanted = [one(x, y, z) for x, y, z in zip(twins, b, c)]
            for x, y in zip(a if name.endswith("_") else got, wanted):
                assert x.dtype == y.dtype and torch.equal(x.cpu(), y.cpu())


def test_lists_with_nan(native):
    a = [torch.tensor([float("nan"), 1.0]).to("clutch"), torch.tensor([2.0, float("nan")]).to("clutch")]
    for name, one in (("_foreach_maximum", torch.clamp_min), ("_foreach_minimum", torch.clamp_max)):
        for bound in (1.5, float("nan")):
            for x, y in zip(getattr(torch, name)(a, bound), a):
                assert torch.equal(x.cpu().nan_to_num(77), one(y.cpu(), bound).nan_to_num(77))
    torch._foreach_zero_(a)
    assert all((t == 0).all() for t in a)


def test_lists_that_differ_take_the_loop(native):
    a = [torch.ones(3, device="clutch"), torch.ones(2, device="clutch", dtype=torch.float64), torch.ones(2, device="clutch", dtype=torch.int64)]
    torch._foreach_add_(a, 2)
    assert [t.sum().item() for t in a] == [9, 6, 6] and a[2].dtype == torch.int64
    wide = [torch.ones(2, 3, device="clutch"), torch.ones(3, device="clutch")]
    torch._foreach_mul_(wide, [torch.full((3,), 2.0, device="clutch"), torch.full((), 3.0, device="clutch")])
    assert wide[0].sum().item() == 12 and wide[1].sum().item() == 9
    numbers = [torch.ones(2, device="clutch") for _ in range(3)]
    torch._foreach_div_(numbers, [1.0, 2.0, 4.0])
    assert [t[0].item() for t in numbers] == [1, 0.5, 0.25]
    with pytest.raises(RuntimeError, match="must have the same number of tensors"):
        torch._foreach_add_(numbers, numbers[:2])


def test_strided_lists_and_aliases(native):
    base = torch.arange(24.0).to("clutch").view(4, 6)
    views = [base[:, 0], base[:, 1], base[2:, 2:].t()]
    twin = base.clone()
    torch._foreach_mul_(views, 3.0)
    for v in (twin[:, 0], twin[:, 1], twin[2:, 2:].t()):
        v.mul_(3.0)
    assert torch.equal(base.cpu(), twin.cpu())
    same = [torch.ones(4, device="clutch"), torch.ones(4, device="clutch")]
    torch._foreach_add_(same, same)
    assert all((t.cpu() == 2).all() for t in same)


@pytest.mark.parametrize("dtype,bound", [(torch.float32, 1e-5), (torch.float64, 1e-13), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)])
@pytest.mark.parametrize("order", [1, 2, 2.0, float("inf"), 3])
def test_norms(order, dtype, bound, native):
    host = [torch.randn(shape).to(dtype) for shape in [(3, 5), (), (9000,), (1, 2, 3)]]
    host.append(torch.randn(6, 8).to(dtype)[::2, ::2])
    device = [t.to("clutch") for t in host[:-1]] + [torch.empty_strided((3, 4), (16, 2), dtype=dtype, device="clutch").copy_(host[-1])]
    for asked in {None, dtype, torch.float32 if dtype != torch.float64 else None}:
        got, wanted = torch._foreach_norm(device, order, asked), torch._foreach_norm(host, order, asked)
        for a, b in zip(got, wanted):
            assert a.dtype == b.dtype and a.shape == b.shape
            torch.testing.assert_close(a.cpu(), b, rtol=bound, atol=0)


def test_norms_of_some(native):
    bad = [torch.ones(3, device="clutch"), torch.tensor([1.0, float("nan")], device="clutch")]
    for order in (1, 2, float("inf")):
        assert [t.isnan().item() for t in torch._foreach_norm(bad, order)] == [False, True]
    empty = [torch.ones(4, device="clutch"), torch.ones(0, device="clutch")]
    assert [t.item() for t in torch._foreach_norm(empty, 2)] == [2, 0]
    assert torch._foreach_norm([torch.ones(4, device="clutch")] * 3, 2, torch.float64)[0].dtype == torch.float64


def test_clipping_takes_few_launches(native):
    params = [torch.nn.Parameter(torch.randn(7, 9, device="clutch")) for _ in range(40)]
    for p in params:
        p.grad = torch.randn_like(p)
    host = [p.grad.cpu() for p in params]
    total = torch.nn.utils.clip_grad_norm_(params, 1.0)
    torch.testing.assert_close(total.cpu(), torch.linalg.vector_norm(torch.cat([g.view(-1) for g in host])), rtol=1e-5, atol=0)
    torch.testing.assert_close(params[3].grad.cpu(), host[3] / (total.cpu() + 1e-6), rtol=1e-5, atol=1e-7)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]) as profile:
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        torch.accelerator.synchronize()
    assert len([e for e in profile.events() if e.activity_type == "kernel"]) < 15


def test_booleans_are_what_the_loop_says_of_them():
    tensors = [torch.ones(3, device="clutch"), torch.ones(4, device="clutch")]
    for call in (lambda: torch._foreach_sub(tensors, True), lambda: torch._foreach_sub_(tensors, [1.0, True]),
                 lambda: torch._foreach_add(tensors, tensors, alpha=True)):
        with pytest.raises(RuntimeError, match="[Bb]ool"):
            call()
    assert torch.equal(torch._foreach_add(tensors, True)[1].cpu(), torch.full((4,), 2.0))

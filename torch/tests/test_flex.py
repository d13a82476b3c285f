# SPDX-License-Identifier: Apache-2.0
"""flex_attention, forward and backward, beside the dense formula on the CPU."""
import warnings

import pytest
import torch
import torch.nn.attention.flex_attention as flex

LENGTH = 96
Q, KV = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)[None]
SLOPES, TABLE = torch.tensor([0.1, 0.2]), torch.linspace(-1, 1, 2 * LENGTH - 1)


def alibi(slopes):
    return lambda s, b, h, q, kv: s + slopes[h] * (kv - q)


def relative(table):
    return lambda s, b, h, q, kv: s + table[kv - q + LENGTH - 1]


# name: a score mod of its captured tensor, the tensor, the same on all scores (b, h, q, kv)
SCORES = {
    "none": (None, None, lambda s, c: s),
    "alibi": (alibi, SLOPES, lambda s, c: s + c[:, None, None] * (KV - Q)),
    "table": (relative, TABLE, lambda s, c: s + c[KV - Q + LENGTH - 1]),
    "softcap": (lambda _: lambda s, b, h, q, kv: 20 * torch.tanh(s / 20), None, lambda s, c: 20 * torch.tanh(s / 20)),
}
MASKS = {
    "all": (None, torch.ones(LENGTH, LENGTH, dtype=torch.bool)),
    "causal": (lambda b, h, q, kv: q >= kv, Q >= KV),
    "window": (lambda b, h, q, kv: (q >= kv) & (q - kv <= 8), (Q >= KV) & (Q - KV <= 8)),
    "prefix": (lambda b, h, q, kv: (kv < 16) | (q >= kv), (KV < 16) | (Q >= KV)),
    "every third": (lambda b, h, q, kv: (q - kv) % 3 == 0, (Q - KV) % 3 == 0),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "aot_eager"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES)
def test_flex(score, mask, compiled):
    if compiled and (score, mask) not in {("alibi", "causal"), ("softcap", "window"), ("none", "all")}:
        pytest.skip("a few by day: compiling takes seconds")
    torch._dynamo.reset()
    torch.manual_seed(1)
    mod, captured, dense_mod = SCORES[score]
    mask_mod, allowed = MASKS[mask]
    host = [torch.randn(2, 2, LENGTH, 16, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    device = [t.detach().float().to("clutch").requires_grad_() for t in host]
    captured_host = captured.double().clone().requires_grad_() if captured is not None else None
    captured_device = captured.to("clutch").requires_grad_() if captured is not None else None
    block_mask = flex.create_block_mask(mask_mod, 1, 1, LENGTH, LENGTH, device="clutch", BLOCK_SIZE=32) if mask_mod else None
    attention = torch.compile(flex.flex_attention, backend="aot_eager") if compiled else flex.flex_attention
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message=".*flex_attention called without torch.compile.*")
        warnings.filterwarnings("ignore", message=".*lru_cache.*")
        out, lse = attention(*device, score_mod=mod(captured_device) if mod else None, block_mask=block_mask, return_lse=True)
    scores = dense_mod(host[0] @ host[1].mT / 4, captured_host).masked_fill(~allowed, -torch.inf)
    wanted, wanted_lse = torch.softmax(scores, -1) @ host[2], torch.logsumexp(scores, -1)
    grad, grad_lse = torch.randn_like(wanted), torch.randn_like(wanted_lse)
    torch.testing.assert_close(out.cpu().double(), wanted, rtol=0, atol=4e-6)
    torch.testing.assert_close(lse.cpu().double(), wanted_lse, rtol=1e-6, atol=4e-6)
    ((wanted * grad).sum() + (wanted_lse * grad_lse).sum()).backward()
    ((out * grad.float().to("clutch")).sum() + (lse * grad_lse.float().to("clutch")).sum()).backward()
    for a, b in zip(device, host):
        torch.testing.assert_close(a.grad.cpu().double(), b.grad, rtol=0, atol=2e-5)
    if captured is not None:
        scale = captured_host.grad.abs().max().item()
        torch.testing.assert_close(captured_device.grad.cpu().double(), captured_host.grad, rtol=0, atol=2e-5 * max(scale, 1))


def test_grouped_heads_and_autocast():
    q = torch.randn(1, 4, 32, 16, device="clutch", requires_grad=True)
    k, v = (torch.randn(1, 2, 32, 16, device="clutch", requires_grad=True) for _ in range(2))
    out = flex.flex_attention(q, k, v, enable_gqa=True)
    wanted = torch.nn.functional.scaled_dot_product_attention(q.cpu(), k.cpu(), v.cpu(), enable_gqa=True)
    torch.testing.assert_close(out.cpu(), wanted, rtol=0, atol=4e-6)
    out.sum().backward()
    assert k.grad.shape == k.shape
    with torch.autocast("clutch", torch.bfloat16):
        assert flex.flex_attention(q, k, v, enable_gqa=True).dtype == torch.bfloat16


@pytest.mark.parametrize("of_q, of_kv", [(torch.float32, torch.float16), (torch.float16, torch.float8_e4m3fn)], ids=["f16", "f8"])
def test_narrower_keys_and_values_are_widened(of_q, of_kv):
    q = torch.randn(1, 2, 40, 16).to(of_q)
    k, v = (torch.randn(1, 2, 40, 16).to(of_kv) for _ in range(2))
    device = [t.to("clutch").requires_grad_() for t in (q, k, v)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = flex.flex_attention(*device)
    host = [t.to(of_q).double().requires_grad_() for t in (q, k, v)]
    wanted = torch.softmax(host[0] @ host[1].mT / 4, -1) @ host[2]
    assert out.dtype == of_q
    bound = 2e-3 if of_q == torch.float16 else 4e-6
    torch.testing.assert_close(out.cpu().double(), wanted, rtol=0, atol=bound)
    if of_kv == torch.float8_e4m3fn:
        return  # autograd adds no gradients of 8 bits
    out.sum().backward()
    wanted.sum().backward()
    for a, b, dtype in zip(device, host, (of_q, of_kv, of_kv)):
        assert a.grad.dtype == dtype
        torch.testing.assert_close(a.grad.cpu().double(), b.grad, rtol=1e-3, atol=2e-5)


def test_keys_of_another_dtype_as_wide_go_the_dense_way():
    q = torch.randn(1, 2, 16, 16).half()
    k, v = (torch.randn(1, 2, 16, 16).bfloat16() for _ in range(2))
    with pytest.warns(UserWarning, match="torch.bfloat16 with queries of torch.float16"):
        out = flex.flex_attention(q.to("clutch"), k.to("clutch"), v.to("clutch"))
    torch.testing.assert_close(out.cpu(), flex.flex_attention(q, k, v), rtol=0, atol=2e-3)


def test_an_unknown_op_takes_the_dense_formula_and_says_so():
    q, k, v = (torch.randn(1, 1, 8, 16, device="clutch") for _ in range(3))
    with pytest.warns(UserWarning, match="the op lgamma is not known there"):
        out = flex.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + torch.lgamma(s.abs() + 1.0))
    scores = q.cpu() @ k.cpu().mT / 4
    torch.testing.assert_close(out.cpu(), torch.softmax(scores + torch.lgamma(scores.abs() + 1.0), -1) @ v.cpu(), rtol=0, atol=1e-5)


def test_more_captured_tensors_than_a_kernel_takes_go_the_dense_way():
    q, k, v = (torch.randn(1, 2, 16, 16, device="clutch", requires_grad=True) for _ in range(3))
    tables = [torch.randn(16, 16, device="clutch", requires_grad=True) for _ in range(12)]

    def mod(s, b, h, i, j):
        for table in tables:
            s = s + torch.tanh(s + table[i, j])
        return s

    with pytest.warns(UserWarning, match="a mod that captures that many tensors is not known there"):
        out = flex.flex_attention(q, k, v, score_mod=mod)
        out.sum().backward()
    host, tables_host = [t.detach().cpu().requires_grad_() for t in (q, k, v)], [t.detach().cpu().requires_grad_() for t in tables]
    scores = host[0] @ host[1].mT / 4
    for table in tables_host:
        scores = scores + torch.tanh(scores + table)
    wanted = torch.softmax(scores, -1) @ host[2]
    wanted.sum().backward()
    torch.testing.assert_close(out.detach().cpu(), wanted.detach(), rtol=0, atol=1e-5)
    for a, b in zip((q, k, v, *tables), (*host, *tables_host)):
        torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-4, atol=2e-5)


def test_eager_calls_do_not_warn_of_dense_scores(run_python):
    """PyTorch's warning would be wrong on clutch; on the CPU it stays."""
    program = """
import warnings, torch
from torch.nn.attention.flex_attention import flex_attention
for where in ("clutch", "cpu"):
    q = torch.randn(1, 1, 8, 4, device=where)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        flex_attention(q, q, q)
    print(where, any("materializes the full scores" in str(w.message) for w in seen))
"""
    assert run_python(program).stdout.splitlines() == ["clutch False", "cpu True"]

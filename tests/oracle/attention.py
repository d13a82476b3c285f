# SPDX-License-Identifier: Apache-2.0
"""Attention: block masks, flex, sdpa, sequences of several lengths, paged caches, multi-head attention."""

import math

import numpy as np
import torch
from torch.nn.attention.flex_attention import create_block_mask

from common import DTYPES, EPS, NAMES, Refusal, case, compute_name
from random_numbers import philox
from tensors import unchanged

MASK = "clutch/ops/block_mask.hpp"
FLEX = "clutch/ops/flex.hpp"
SDPA = "clutch/attention.hpp"


def pick_mask(c, batch, q_len, kv_len, names=None):
    """Arguments of the call, and the mask as a function of index tensors."""
    which = c.pick(names or ["causal", "window", "prefix", "prefix_number", "document", "dilated", "causal_document", "window_or_prefix", "not_causal", "nothing",
                             "by_head", "table"])
    offset = c.pick([0, 0, kv_len - q_len, 3, -2])
    window, dilation, prefix = c.pick([0, 1, 8, 40, 200]), c.pick([1, 2, 3]), c.pick([0, 1, 10, 300])
    arguments = {"mask": which, "mask_offset": offset, "window": window, "dilation": dilation, "prefix_length": prefix}
    causal = lambda b, h, q, kv: q + (offset if which != "causal_document" else 0) >= kv
    in_window = lambda b, h, q, kv: (q >= kv) & (q - kv <= window)
    plain_causal = lambda b, h, q, kv: q >= kv
    if which in ("document", "causal_document"):
        length = max(q_len, kv_len)
        ids = torch.from_numpy(np.sort(c.rng.integers(0, 4, size=length)).astype(np.int32))
        if c.chance(0.3):
            ids = torch.from_numpy(c.rng.integers(0, 3, size=length).astype(np.int32))
        arguments["ids"] = ids
        same = lambda b, h, q, kv: ids[q] == ids[kv]
        return arguments, same if which == "document" else (lambda b, h, q, kv: (q >= kv) & same(b, h, q, kv))
    if which == "prefix":
        p = torch.from_numpy(c.rng.integers(0, kv_len, size=batch, endpoint=True).astype(np.int32))
        arguments["prefix"] = p
        return arguments, lambda b, h, q, kv: (kv < p[b]) | (q >= kv)
    if which == "table":
        t = c.tensor([q_len, kv_len], "u8", expand=False)
        t = torch.from_numpy(np.asarray(c.rng.random([q_len, kv_len]) < c.pick([0.02, 0.5, 0.98]))).to(torch.uint8)
        arguments["table"] = t
        return arguments, lambda b, h, q, kv: t[q, kv] != 0
    return arguments, {
        "causal": causal, "window": in_window, "prefix_number": lambda b, h, q, kv: (kv < prefix) | (q >= kv),
        "dilated": lambda b, h, q, kv: ((q - kv).abs() <= window) & ((q - kv) % dilation == 0),
        "window_or_prefix": lambda b, h, q, kv: in_window(b, h, q, kv) | (kv < prefix) | (q >= kv),
        "not_causal": lambda b, h, q, kv: ~causal(b, h, q, kv), "nothing": lambda b, h, q, kv: q < 0,
        "by_head": lambda b, h, q, kv: (q + kv + h + b) % 3 != 0,
    }[which]


def grid(batch, heads, q_len, kv_len):
    return torch.meshgrid(torch.arange(batch), torch.arange(heads), torch.arange(q_len), torch.arange(kv_len), indexing="ij")


def dense_mask(mask, batch, heads, q_len, kv_len):
    m = mask(*grid(batch, heads, q_len, kv_len))
    return m.expand(batch, heads, q_len, kv_len)


@case(60, covers=["create_block_mask", "block_mask_from_lists"], sharp=True)
def block_masks(c):
    batch, heads = c.pick([1, 1, 2]), c.pick([1, 1, 3])
    q_len, kv_len = c.pick([1, 16, 33, 100, 257, 640]), c.pick([1, 17, 64, 150, 300, 640])
    block_q, block_kv = c.pick([16, 32, 128]), c.pick([16, 32, 128])
    arguments, mask = pick_mask(c, batch, q_len, kv_len)
    arguments.update(mask_batch=batch, mask_heads=heads, q_len=q_len, kv_len=kv_len, block_q=block_q, block_kv=block_kv)

    def check(got, want, q_len, kv_len, what):
        pairs = [("kv_num_blocks", 0), ("kv_indices", 1), ("full_kv_num_blocks", 2), ("full_kv_indices", 3), ("q_num_blocks", 4), ("q_indices", 5),
                 ("full_q_num_blocks", 6), ("full_q_indices", 7)]
        for field, i in pairs:
            c.same(got[i], getattr(want, field).contiguous().to(torch.int32), MASK + ", BlockMask", f"{what}{field} of {arguments['mask']}: ")
        kinds = reference_kinds(dense_mask(mask, batch, heads, q_len, kv_len), block_q, block_kv)
        c.same(got[8], kinds, MASK + ", kinds", f"{what}{arguments['mask']}: ")
        c.same(got[9], (kinds > 0).to(torch.int32), MASK + ", to_dense", f"{what}{arguments['mask']}: ")
        if q_len % block_q == 0 and kv_len % block_kv == 0:
            want = 100.0 * float((kinds == 0).double().mean())
            c.true(abs(got.values["sparsity"] - want) < 1e-3, f"sparsity {got.values['sparsity']}, wanted {want}", MASK + ", sparsity")

    def torchs(q_len, kv_len):
        return create_block_mask(mask, batch, heads, q_len, kv_len, device="cpu", BLOCK_SIZE=(block_q, block_kv))

    got, want = c.call("create_block_mask", **arguments), torchs(q_len, kv_len)
    check(got, want, q_len, kv_len, "")
    if arguments["mask"] != "table" and "ids" not in arguments and c.chance(0.5):
        new_q, new_kv = c.pick([1, 20, q_len, q_len + 50]), c.pick([1, 40, kv_len, kv_len + 70])
        adjusted = c.call("create_block_mask", adjust_q=new_q, adjust_kv=new_kv, **arguments)
        dense = dense_mask(mask, batch, heads, new_q, new_kv)
        c.alike(adjusted[8], [batch, heads, -(-new_q // block_q), -(-new_kv // block_kv)], "u8", MASK + ", adjust")
        # Blocks that were there keep their kinds, also where they reached past the old lengths; new ones are found by the mask.
        kinds = reference_kinds(dense, block_q, block_kv)
        rows, columns = (min(a, b) for a, b in zip(kinds.shape[2:], got[8].shape[2:]))
        new = torch.ones(kinds.shape[2:], dtype=torch.bool)
        new[:rows, :columns] = False
        c.same(adjusted[8][:, :, :rows, :columns].contiguous(), got[8][:, :, :rows, :columns].contiguous(), MASK + ", adjust: kinds of blocks stay", "blocks that were there: ")
        c.true(bool(((adjusted[8] > 0) == (kinds > 0))[:, :, new].all()), "a new block is not what the mask says", MASK + ", adjust: new ones are found by the mask")
    if batch > 1 and c.chance(0.5):
        part = c.call("create_block_mask", batch_begin=1, batch_end=2, head_begin=0, head_end=heads, **arguments)
        c.same(part[8], got[8][1:2], MASK + ", slice", "kinds of the second batch: ")
    from_lists = c.call("block_mask_from_lists", kv_num_blocks=got[0], kv_indices=got[1], full_kv_num_blocks=got[2], full_kv_indices=got[3], **arguments)
    check(from_lists, want, q_len, kv_len, "from lists, ")


def reference_kinds(dense, block_q, block_kv):
    b, h, q, kv = dense.shape
    rows, columns = -(-q // block_q), -(-kv // block_kv)
    padded = torch.zeros([b, h, rows * block_q, columns * block_kv], dtype=torch.bool)
    padded[:, :, :q, :kv] = dense
    count = padded.reshape(b, h, rows, block_q, columns, block_kv).sum(dim=(3, 5))
    return ((count > 0).to(torch.uint8) + (count == block_q * block_kv).to(torch.uint8))


MODS = ["none", "none", "alibi", "softcap", "relative", "relative_table", "shift", "product", "bias", "opencl"]


def pick_mod(c, heads, q_len, kv_len, name, names=MODS):
    """Arguments, the mod as a function of scores and indices, the tensors that it captured, and the largest size of its terms."""
    which = c.pick(names)
    arguments = {"score_mod": which}
    if which == "none":
        return arguments, None, [], 0.0
    if which == "alibi":
        t = c.tensor([heads], c.pick(["f32", name]), "positive", expand=False)
        arguments["slopes"] = t

        def mod(s, b, h, q, kv, u):
            term = u[0][h] * (kv - q)
            if t.dtype != torch.float64:
                term = term + (term.detach().float().double() - term.detach())  # in f32, as they are
            return s + term

        return arguments, mod, [t], 2.0 * max(q_len, kv_len)
    if which == "softcap":
        cap = c.pick([1.0, 5.0, 30.0])
        arguments["cap"] = cap
        return arguments, lambda s, b, h, q, kv, u: cap * torch.tanh(s / cap), [], cap * 8
    if which == "relative":
        return arguments, lambda s, b, h, q, kv, u: s + (q - kv), [], float(max(q_len, kv_len))
    if which == "relative_table":
        n = c.pick([1, 5, 33])
        t = c.tensor([n] if c.chance(0.5) else [heads, n], name, "normal", expand=False)
        arguments["relative"] = t

        def mod(s, b, h, q, kv, u):
            place = (q - kv + (n - 1) // 2).clamp(0, n - 1)
            return s + (u[0][place] if u[0].dim() == 1 else u[0][h, place])

        return arguments, mod, [t], 4.0
    if which == "shift":
        shift = c.pick([3.0, -20.0, 100.0])
        arguments["shift"] = shift
        return arguments, lambda s, b, h, q, kv, u: s + shift, [], abs(shift)
    if which == "product":
        return arguments, lambda s, b, h, q, kv, u: s * 0.5 + (q - kv) * 0.125 + (h - b), [], float(max(q_len, kv_len)) / 8 + heads + 4
    if which == "bias":
        t = c.tensor([heads, q_len, kv_len], name, "normal", expand=False)
        arguments["bias"] = t
        return arguments, lambda s, b, h, q, kv, u: s + u[0][h, q, kv], [t], 4.0
    if which == "reversed":
        pattern = c.pick(["q_kv", "r_kv", "q_r", "r_r"])
        t = c.tensor([q_len, kv_len], name, "normal", expand=False)
        arguments.update(bias=t, pattern=pattern)

        def mod(s, b, h, q, kv, u):
            return s + u[0][(q_len - 1 - q) if pattern[0] == "r" else q, (kv_len - 1 - kv) if pattern[-1] == "r" else kv]

        return arguments, mod, [t], 4.0
    return arguments, lambda s, b, h, q, kv, u: s * s * 0.25 + s, [], 8.0


def reference(q, k, v, mask=None, mod=None, captured=(), scale=None, weights=None):
    """out, lse, largest score in f64; k and v have q's heads and batches already. A mask is a boolean tensor, mod a function."""
    b, h, l, e = q.shape
    s = k.shape[2]
    scores = (q @ k.mT) * (1 / math.sqrt(e) if scale is None else scale)
    if mod is not None:
        scores = mod(scores, *grid(b, h, l, s), captured).expand(b, h, l, s)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    if s == 0:
        return torch.zeros(b, h, l, v.shape[-1], dtype=torch.float64), torch.full([b, h, l], -math.inf, dtype=torch.float64), torch.full([b, h, l], -math.inf, dtype=torch.float64)
    lse = torch.logsumexp(scores, -1)
    top = scores.amax(-1)
    p = torch.exp(scores - torch.where(lse == -math.inf, 0.0, lse)[..., None])
    if weights is not None:
        p = p * weights
    return p @ v, lse, top


def widen(t, heads, batch):
    """Keys or values with the queries' heads and batches."""
    return t.repeat_interleave(heads // t.shape[1], 1).expand(batch, -1, -1, -1)


def sizes_of(c, small=False):
    l = c.pick([1, 2, 5, 8] if small or c.chance(0.3) else [9, 17, 33, 64, 100, 130])
    return l, c.pick([1, 3, 16, 33, 64, 100, 150, 300] if not small else [1, 16, 100, 513, 600])


def accuracy(name, e, terms, v, base=2e-6):
    """The stated bound, for unit-normal q, k and v."""
    unit = 1.0 if name != "f64" else 2.0**-29
    return unit * (base * math.sqrt(max(e, 64) / 64) + 6 * EPS["f32"] * terms) * max(1.0, float(v.double().abs().max()) / 4 if v.numel() else 1.0)


@case(120, covers=["flex", "flex_out"])
def flexes(c):
    name = c.floating()
    batch, kv_heads, share = c.pick([1, 2]), c.pick([1, 2]), c.pick([1, 1, 2, 4])
    heads = kv_heads * share
    l, s = sizes_of(c)
    e, ev = c.pick([1, 3, 8, 16, 32, 64, 80]), c.pick([1, 8, 16, 40, 64])
    kv_batch = 1 if c.chance(0.2) else batch
    q = c.tensor([batch, heads, l, e], name, "normal")
    k, v = c.tensor([kv_batch, kv_heads, s, e], name, "normal"), c.tensor([kv_batch, kv_heads, s, ev], name, "normal")
    arguments, mod, captured, terms = pick_mod(c, heads, l, s, name)
    mask = None
    if c.chance(0.6):
        more, function = pick_mask(c, batch, l, s)
        mask = dense_mask(function, batch, heads, l, s)
        more.update(mask_batch=batch, mask_heads=heads, q_len=l, kv_len=s, block_q=c.pick([16, 64, 128]), block_kv=c.pick([16, 64, 128]), mask_by=c.pick(["block", "mod"]))
        arguments.update(more)
    if c.chance(0.3):
        arguments["scale"] = c.pick([0.1, 0.5, 1.0 / math.sqrt(e)])
    if share > 1:
        arguments["enable_gqa"] = 1
    if c.chance(0.2):
        arguments["skip_masked"] = 1
    wide = [widen(t.double(), heads, batch) for t in (k, v)]
    exact, lse, top = reference(q.double(), *wide, mask, mod, [t.double() for t in captured], arguments.get("scale"))
    tolerance = accuracy(name, e, terms, v)
    if arguments["score_mod"] == "softcap":
        tolerance += (2.0**-22 if name != "f64" else 2.0**-51) * arguments["cap"] * 8
    if arguments["score_mod"] == "opencl":
        tolerance *= 1 + float(top.abs().amax()) if math.isfinite(float(top.abs().amax())) else 8
    # Scores of several units: their rounding counts, too.
    unit = EPS[compute_name(name)]
    finite = torch.nan_to_num(top.abs(), posinf=0.0)
    spread = 8 * unit * (1 + finite + terms)
    if c.chance(0.25):
        out = c.tensor([batch, heads, l, ev], name, "normal", expand=False)
        contiguous = torch.full([batch, heads, l], 7.0, dtype=DTYPES[compute_name(name)])
        got = c.call("flex_out", back=["out", "lse", "max_scores"], q=q, k=k, v=v, out=out, lse=contiguous, max_scores=contiguous.clone(), **arguments).back
        unchanged(c, out, got["out"], FLEX)
        got = [got["out"], got["lse"], got["max_scores"]]
    else:
        got = c.call("flex", q=q, k=k, v=v, return_lse=1, return_max_scores=1, **arguments)
    what = f"{arguments['score_mod']}, mask {arguments.get('mask')}, {name}, E {e}: "
    c.near(got[0], exact, torch.full(exact.shape, tolerance, dtype=torch.float64), FLEX + ", Accuracy; rows without any key are 0", what)
    c.near(got[1], lse, spread + tolerance, FLEX + ", FlexResult::lse", "lse, " + what)
    c.near(got[2], top, spread + tolerance, FLEX + ", FlexResult::max_scores", "max_scores, " + what)


@case(40, covers=[])
def decoding(c):
    """Few queries of many keys."""
    name = c.floating()
    batch, kv_heads, share = c.pick([1, 3]), c.pick([1, 2]), c.pick([1, 4])
    heads = kv_heads * share
    l, s = sizes_of(c, small=True)
    e, ev = c.pick([8, 33, 64]), c.pick([8, 64])
    q = c.tensor([batch, heads, l, e], name, "normal")
    k, v = c.tensor([batch, kv_heads, s, e], name, "normal"), c.tensor([batch, kv_heads, s, ev], name, "normal")
    arguments, mod, captured, terms = pick_mod(c, heads, l, s, name, ["none", "alibi", "softcap", "relative"])
    mask = None
    if c.chance(0.6):
        more, function = pick_mask(c, batch, l, s)
        mask = dense_mask(function, batch, heads, l, s)
        arguments.update(more, mask_batch=batch, mask_heads=heads, q_len=l, kv_len=s, block_q=c.pick([16, 128]), block_kv=c.pick([16, 128]), mask_by=c.pick(["block", "mod"]))
    exact, lse, _ = reference(q.double(), *[widen(t.double(), heads, batch) for t in (k, v)], mask, mod, [t.double() for t in captured])
    got = c.call("flex", q=q, k=k, v=v, enable_gqa=1, return_lse=1, **arguments)
    tolerance = accuracy(name, e, terms, v)
    c.near(got[0], exact, torch.full(exact.shape, tolerance, dtype=torch.float64), FLEX + ", Accuracy", f"{arguments['score_mod']}, mask {arguments.get('mask')}, {name}: ")
    c.near(got[1], lse, torch.nan_to_num(lse.abs(), posinf=0.0) * 4 * EPS[compute_name(name)] + tolerance * 2, FLEX, f"lse of {name}: ")


@case(60, covers=[])
def flex_of_nan(c):
    """NaN and infinities among queries and keys, or among values of keys that all have a weight."""
    name = c.floating()
    batch, heads = c.pick([1, 2]), c.pick([1, 2])
    l, s = sizes_of(c, small=c.chance(0.4))
    e, ev = c.pick([1, 8, 33, 64]), c.pick([1, 8, 40])

    def tensor(shape, often):
        t = c.tensor(shape, name, "normal", strides=False)
        bits = {"f32": torch.int32, "f64": torch.int64, "f16": torch.int16, "bf16": torch.int16}[name]
        info = torch.iinfo(bits)
        odd = [torch.tensor(x, dtype=bits).view(t.dtype) for x in (-1, info.max)]  # NaN of all ones, and of none but the sign's
        for at in np.argwhere(c.rng.random(shape[:-1]) < often):
            t[tuple(at)][c.integer(0, shape[-1] - 1)] = c.pick([torch.tensor(x, dtype=t.dtype) for x in (math.nan, math.inf, -math.inf)] + odd)
        return c.lay_out(t)

    of_values = c.chance(0.3)
    often = c.pick([0.5 / max(1, l), 2 / max(1, s), 1.0])
    q = tensor([batch, heads, l, e], 0 if of_values else c.pick([0, 0, often]))
    k, v = tensor([batch, heads, s, e], 0 if of_values else often), tensor([batch, heads, s, ev], often if of_values else 0)
    arguments, mask = {}, None
    if not of_values and c.chance(0.6):
        more, function = pick_mask(c, batch, l, s)
        mask = dense_mask(function, batch, heads, l, s)
        arguments.update(more, mask_batch=batch, mask_heads=heads, q_len=l, kv_len=s, block_q=c.pick([16, 128]), block_kv=c.pick([16, 128]), mask_by=c.pick(["block", "mod"]))
    scores = (q.double() @ k.double().mT) / math.sqrt(e)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    bad = (torch.isnan(scores) | (scores == math.inf)).any(-1)
    lse = torch.where(bad, math.nan, torch.logsumexp(torch.where(bad[..., None], 0.0, scores), -1))
    weights = torch.exp(scores - torch.where(lse == -math.inf, 0.0, lse)[..., None])
    exact = torch.where(bad[..., None], math.nan, weights @ v.double())
    got = c.call("flex", q=q, k=k, v=v, return_lse=1, **arguments)
    tolerance = accuracy(name, e, 0.0, torch.nan_to_num(v, posinf=0.0, neginf=0.0))
    what = f"mask {arguments.get('mask')}, {name}, E {e}, specials among {'values' if of_values else 'queries and keys'}: "
    c.near(got[0], exact, torch.full(exact.shape, tolerance, dtype=torch.float64), FLEX + ", Range", what)
    c.near(got[1], lse, torch.nan_to_num(lse.abs(), posinf=0.0) * 4 * EPS[compute_name(name)] + tolerance * 2, FLEX + ", Range", "lse, " + what)


def gradient_bound(name, e, terms, grad, others, count):
    unit = 1.0 if name != "f64" else 2.0**-29
    big = max([1.0] + [float(t.double().abs().max()) / 3 for t in others if t.numel()])
    return unit * (1e-5 * math.sqrt(max(e, 64) / 64) + 20 * EPS["f32"] * terms) * max(1.0, float(grad.double().abs().max()) / 3) * big * count


def slope_of(arguments, top):
    """The largest derivative of the mods by their score."""
    return 1 + 0.5 * float(torch.nan_to_num(top.detach().abs(), posinf=0.0).max() + 8) if arguments["score_mod"] == "opencl" else 1.0


def rounding_of_result(name, grad, exact):
    """Backward reads the result as it is stored: what rounding to f16 and bf16 may move a row's sum of grad times result by."""
    return EPS[name] * float((grad.double().abs() * exact.detach().abs()).sum(-1).max()) if name in ("f16", "bf16") and exact.numel() else 0.0


@case(80, covers=[])
def flex_gradients(c):
    name = c.floating()
    batch, kv_heads, share = c.pick([1, 2]), c.pick([1, 2]), c.pick([1, 1, 2])
    heads = kv_heads * share
    l, s = c.pick([1, 2, 7, 17, 33, 65]), c.pick([1, 2, 16, 33, 70])
    e, ev = c.pick([1, 8, 16, 64]), c.pick([1, 8, 32])
    kv_batch = 1 if c.chance(0.2) else batch
    q = c.tensor([batch, heads, l, e], name, "normal")
    k, v = c.tensor([kv_batch, kv_heads, s, e], name, "normal"), c.tensor([kv_batch, kv_heads, s, ev], name, "normal")
    arguments, mod, captured, terms = pick_mod(c, heads, l, s, name, MODS + ["reversed", "reversed", "bias", "alibi", "relative_table"])
    mask = None
    if c.chance(0.5):
        more, function = pick_mask(c, batch, l, s)
        mask = dense_mask(function, batch, heads, l, s)
        arguments.update(more, mask_batch=batch, mask_heads=heads, q_len=l, kv_len=s, block_q=c.pick([16, 64]), block_kv=c.pick([16, 64]), mask_by=c.pick(["block", "mod"]))
    if share > 1:
        arguments["enable_gqa"] = 1
    leaves = [t.double().clone().requires_grad_() for t in (q, k, v)]
    read = [t.double().clone().requires_grad_() for t in captured]
    exact, lse, top = reference(leaves[0], widen(leaves[1], heads, batch), widen(leaves[2], heads, batch), mask, mod, read)
    grad = c.tensor([batch, heads, l, ev], name, "normal")
    loss = (exact * grad.double()).sum()
    grad_lse = None
    if c.chance(0.3):
        grad_lse = c.tensor([batch, heads, l], compute_name(name), "normal", strides=False)
        loss = loss + torch.where(lse == -math.inf, 0.0, lse * grad_lse.double()).sum() if bool((lse != -math.inf).all()) else loss
        if not bool((lse != -math.inf).all()):
            grad_lse = None
    if mask is not None and not bool(mask.any(-1).all()):
        # PyTorch's own derivative of a row without keys is NaN: the reference leaves these rows out.
        rows = mask.any(-1)
        leaves = [t.double().clone().requires_grad_() for t in (q, k, v)]
        read = [t.double().clone().requires_grad_() for t in captured]
        safe = mask | ~rows[..., None]
        exact, lse, top = reference(leaves[0], widen(leaves[1], heads, batch), widen(leaves[2], heads, batch), safe, mod, read)
        loss = (exact * grad.double() * rows[..., None]).sum()
        grad_lse = None
    loss.backward()
    got = c.call("flex", q=q, k=k, v=v, grad=grad, grad_lse=grad_lse, captured_gradients=1, **arguments)
    what = f"{arguments['score_mod']} {arguments.get('pattern', '')}, mask {arguments.get('mask')}, {name}, E {e}: "
    if arguments["score_mod"] == "opencl":
        terms += 8 * float(torch.nan_to_num(top.detach().abs(), posinf=0.0).max())
    many = math.sqrt(max(1, share * (batch // kv_batch) * l / 16)) + 1
    extra = rounding_of_result(name, grad, exact) * slope_of(arguments, top)
    for i, (t, n) in enumerate(zip(leaves, ("q", "k", "v"))):
        bound = gradient_bound(name, e, terms, grad, [q, k, v], 4 if n == "q" else 2 * many)
        size = {"q": 1 * float(k.double().abs().max()), "k": many * 4 * float(q.double().abs().max()), "v": 0.0}[n] * extra / math.sqrt(e)
        c.near(got[4 + i], t.grad, torch.full(t.shape, bound, dtype=torch.float64) + size, FLEX + ", flex_backward, Accuracy", f"gradient of {n}, " + what)
    for i, t in enumerate(read):
        factor = batch * max(1.0, l * s / max(1, t.numel()) * heads) ** 0.5 + 2
        if arguments["score_mod"] == "alibi":
            factor *= max(l, s)
        # Beside scores of f64 what is captured in f32 has gradients in f32.
        bound = gradient_bound("f32" if name == "f64" and captured[i].dtype != torch.float64 else name, e, terms, grad, [q, k, v], factor * 4)
        # Weights of a row add up to 1.
        size = rounding_of_result(name, grad, exact) * (batch * heads * l / t.numel() + 1) * (max(l, s) if arguments["score_mod"] == "alibi" else 1)
        c.near(got[7 + i], t.grad, torch.full(t.shape, bound, dtype=torch.float64) + size, FLEX + ", captured_gradients", f"gradient of what it captured, " + what)


@case(40, covers=[])
def large_scores(c):
    """Scores with a large common part: shifts lose nothing that their own rounding does not."""
    name = c.pick(["f32", "f32", "bf16"] + (["f64"] if c.traits["fp64"] else []))
    l, s = c.pick([1, 5, 17, 40]), c.pick([2, 16, 70, 300])
    e = c.pick([8, 64])
    q, k, v = torch.zeros([1, 2, l, e]).to(DTYPES[name]), c.tensor([1, 2, s, e], name, "normal"), c.tensor([1, 2, s, 16], name, "normal")
    shift = c.pick([1e2, 1e4, 1e9, 1e10, 1e20, 1e30, 3e38]) * c.pick([1, -1])
    grad = c.tensor([1, 2, l, 16], name, "normal")
    got = c.call("flex", q=q, k=k, v=v, score_mod="shift", shift=shift, grad=grad, return_lse=1)
    # All scores are alike: the mean of v, whatever the shift.
    exact = v.double().mean(2, keepdim=True).expand(1, 2, l, 16)
    tolerance = accuracy(name, e, 0, v)
    what = f"shift {shift:g}, {name}, {s} keys: "
    c.near(got[0], exact, torch.full(exact.shape, tolerance, dtype=torch.float64), FLEX + ", Accuracy", what)
    rounded = float(np.float32(shift)) if name != "f64" else shift
    lse = torch.full([1, 2, l], rounded + math.log(s), dtype=torch.float64)
    c.near(got[1], lse, 2 * EPS[compute_name(name)] * lse.abs() + tolerance, FLEX + ", FlexResult::lse", "lse, " + what)
    want = grad.double().sum(2, keepdim=True).expand(1, 2, s, 16) / s
    c.near(got[6], want, torch.full(want.shape, gradient_bound(name, e, 0, grad, [v], 2 * math.sqrt(l)), dtype=torch.float64), FLEX + ", flex_backward", "gradient of v, " + what)
    dp = grad.double() @ v.double().mT
    ds = (dp - dp.mean(-1, keepdim=True)) / s
    want = ds @ k.double() / math.sqrt(e)
    extra = EPS[name] * 16 if name == "bf16" else 0.0
    bound = gradient_bound(name, e, 0, grad, [v, k], 4) + extra * float(grad.double().abs().max() * k.double().abs().max())
    c.near(got[4], want, torch.full(want.shape, bound, dtype=torch.float64), FLEX + ", flex_backward", "gradient of q, " + what)


@case(80, covers=["sdpa"])
def sdpas(c):
    name = c.floating()
    batch, kv_heads, share = c.pick([1, 2]), c.pick([1, 2]), c.pick([1, 1, 2])
    heads = kv_heads * share
    l, s = c.pick([1, 5, 8, 17, 33, 64, 100]), c.pick([1, 2, 16, 33, 64, 130])
    e, ev = c.pick([1, 8, 16, 64]), c.pick([1, 16, 64])
    rank = c.pick([4, 4, 4, 3, 2])
    if rank < 4:
        heads = kv_heads = share = 1
    if rank < 3:
        batch = 1
    q, k, v = c.tensor([batch, heads, l, e], name, "normal"), c.tensor([batch, kv_heads, s, e], name, "normal"), c.tensor([batch, kv_heads, s, ev], name, "normal")
    arguments = {"backend": c.pick(["flash", "flash", "math"])}
    mask = bias = None
    kind = c.pick(["none", "none", "boolean", "numbers", "padding", "upper_left", "lower_right"])
    shape = [c.pick([1, batch]), c.pick([1, heads]), c.pick([1, l]), s]
    if kind == "boolean":
        m = torch.from_numpy(np.asarray(c.rng.random(shape) < 0.7))
        arguments["attn_mask"], mask = m, m.expand(batch, heads, l, s)
    elif kind == "numbers":
        m = c.tensor(shape, c.pick([name, "f32"]) if name != "f64" else name, "normal", expand=False)
        arguments["attn_mask"], bias = m, m.expand(batch, heads, l, s)
    elif kind == "padding":
        # Rows that are masked throughout by a large finite number, as padding is in practice.
        worst = c.pick([float(torch.finfo(DTYPES[name]).min), -1e9 if name != "f16" else -1e4, -3e38 if name != "f16" else -65504.0, -math.inf])
        m = torch.where(torch.from_numpy(np.asarray(c.rng.random(shape) < 0.4)), torch.tensor(worst, dtype=torch.float64), 0.0)
        m[..., c.integer(0, shape[2] - 1), :] = worst
        m = m.to(DTYPES[name if name == "f64" else c.pick([name, "f32"])]) if name != "f16" else m.to(torch.float16)
        arguments["attn_mask"], bias = m, m.expand(batch, heads, l, s)
    elif kind in ("upper_left", "lower_right"):
        arguments["causal"] = kind
        offset = 0 if kind == "upper_left" else s - l
        mask = (torch.arange(l).reshape(-1, 1) + offset >= torch.arange(s)).expand(batch, heads, l, s)
    if share > 1:
        arguments["enable_gqa"] = 1
    if rank < 4:
        q, k, v = (t.squeeze(1) for t in (q, k, v))
        if "attn_mask" in arguments and c.chance(0.99):
            arguments["attn_mask"] = arguments["attn_mask"].squeeze(1) if rank == 3 else arguments["attn_mask"].reshape(shape[2], s)
    if rank == 2:
        q, k, v = (t.squeeze(0) for t in (q, k, v))
    grad = c.tensor([*q.shape[:-1], ev], name, "normal")

    four = lambda t: t.reshape([batch, -1, *t.shape[-2:]])
    leaves = [four(t).double().clone().requires_grad_() for t in (q, k, v)]
    wide = DTYPES[compute_name(name)]
    scores = (leaves[0] @ widen(leaves[1], heads, batch).mT) / math.sqrt(e)
    if bias is not None:
        # The sum is rounded to the compute type: beside -1e9 nothing of the score is left.
        total = (scores.detach().to(wide) + bias.to(wide)).double()
        scores = scores + (total - scores.detach())
        scores = torch.where(total == -math.inf, -math.inf, scores)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    rows = (scores.detach() != -math.inf).any(-1, keepdim=True)
    p = torch.softmax(torch.where(rows, scores, 0.0), -1) * rows
    exact = p @ widen(leaves[2], heads, batch)
    (exact * four(grad).double()).sum().backward()
    lse = torch.logsumexp(scores.detach(), -1)
    got = c.call("sdpa", q=q, k=k, v=v, grad=grad, **arguments)
    terms = 4.0 if kind == "numbers" else 0.0
    tolerance = accuracy(name, e, terms, v, 4e-6 if arguments["backend"] == "math" else 2e-6)
    what = f"{arguments['backend']}, {kind}, {name}, rank {rank}: "
    c.near(four(got[0]), exact.detach(), torch.full(exact.shape, tolerance, dtype=torch.float64), SDPA + ", sdpa, Accuracy; rows that attend to nothing are 0", what)
    c.near(got[1].reshape(lse.shape), lse, 4 * EPS[compute_name(name)] * torch.nan_to_num(lse.abs(), posinf=0.0) + tolerance * 2, SDPA + ", SdpaResult::lse", "lse, " + what)
    extra = rounding_of_result(name, four(grad), exact) / math.sqrt(e)
    many = math.sqrt(max(1, share * l / 16)) + 1
    for i, (t, n) in enumerate(zip(leaves, ("q", "k", "v"))):
        bound = gradient_bound(name, e, terms, grad, [q, k, v], 4 if n == "q" else 2 * many)
        size = {"q": 1 * float(k.double().abs().max()), "k": many * 4 * float(q.double().abs().max()), "v": 0.0}[n] * extra
        c.near(four(got[3 + i]), t.grad, torch.full(t.grad.shape, bound, dtype=torch.float64) + size, SDPA + ", sdpa_backward", f"gradient of {n}, " + what)
    if kind in ("upper_left", "lower_right"):
        c.refused("invalid_argument", "sdpa", SDPA + ": attn_mask beside causal", q=q, k=k, v=v, attn_mask=torch.ones([l, s], dtype=torch.bool), causal=kind)


@case(30, covers=[])
def dropout(c):
    """The weights that the words of Philox drop."""
    name = c.floating()
    batch, heads = c.pick([1, 2]), c.pick([1, 3])
    l, s = c.pick([1, 3, 17, 40]), c.pick([1, 5, 16, 33, 70])
    e = c.pick([8, 16])
    q, k, v = (c.tensor([batch, heads, n, e], name, "normal") for n in (l, s, s))
    p, seed = c.pick([0.1, 0.5, 0.9]), c.integer(0, 2**40)
    blocks = -(-s // 4)
    index = ((torch.arange(batch * heads * l).reshape(batch, heads, l, 1)) * blocks + torch.arange(s) // 4).numpy().astype(np.uint64)
    words = philox(seed, index)[np.arange(s) % 4, ..., np.arange(s)]  # (s, batch, heads, l)
    words = np.moveaxis(words, 0, -1)
    keep = torch.from_numpy(words >= np.uint64(int(p * 2.0**32)))
    leaves = [t.double().clone().requires_grad_() for t in (q, k, v)]
    exact, lse, _ = reference(*leaves, weights=keep.double() / (1 - p))
    grad = c.tensor([batch, heads, l, e], name, "normal")
    (exact * grad.double()).sum().backward()
    got = c.call("flex", q=q, k=k, v=v, grad=grad, dropout_p=p, generator_seed=seed)
    tolerance = accuracy(name, 64, 0, v) / (1 - p)
    source = FLEX + ", FlexOptions::dropout_p"
    c.near(got[0], exact.detach(), torch.full(exact.shape, tolerance, dtype=torch.float64), source, f"p {p}, {name}: ")
    c.same(got[3], torch.tensor([seed, 0]), FLEX + ", FlexResult::dropout_state", "state: ")
    extra = rounding_of_result(name, grad, exact) / math.sqrt(e)
    for i, (t, n) in enumerate(zip(leaves, ("q", "k", "v"))):
        size = extra * 20 / (1 - p) if n != "v" else 0.0
        c.near(got[4 + i], t.grad, torch.full(t.shape, gradient_bound(name, 64, 0, grad, [q, k, v], 8 / (1 - p)), dtype=torch.float64) + size, source, f"gradient of {n}, p {p}, {name}: ")
    for backend in ("flash", "math"):
        again = c.call("sdpa", q=q, k=k, v=v, dropout_p=p, generator_seed=seed, backend=backend)
        c.near(again[0], exact.detach(), torch.full(exact.shape, 2 * tolerance, dtype=torch.float64), SDPA + ", SdpaOptions::dropout_p: the same weights by either backend", f"{backend}, p {p}, {name}: ")


@case(50, covers=["varlen_attn"])
def varlen(c):
    name = c.floating()
    n, kv_heads, share = c.integer(1, 4), c.pick([1, 2]), c.pick([1, 2])
    heads = kv_heads * share
    e, ev = c.pick([8, 16, 64]), c.pick([8, 16])
    q_lens, kv_lens = [c.pick([0, 1, 3, 20, 50]) for _ in range(n)], [c.pick([0, 1, 5, 33, 60]) for _ in range(n)]
    if sum(q_lens) == 0:
        q_lens[0] = 4
    if sum(kv_lens) == 0:
        kv_lens[0] = 4
    cu_q, cu_kv = [0, *np.cumsum(q_lens).tolist()], [0, *np.cumsum(kv_lens).tolist()]
    q = c.tensor([cu_q[-1], heads, e], name, "normal")
    k, v = c.tensor([cu_kv[-1], kv_heads, e], name, "normal"), c.tensor([cu_kv[-1], kv_heads, ev], name, "normal")
    grad = c.tensor([cu_q[-1], heads, ev], name, "normal")
    arguments = dict(cu_seq_q=torch.tensor(cu_q, dtype=torch.int32), cu_seq_kv=torch.tensor(cu_kv, dtype=torch.int32))
    if share > 1:
        arguments["enable_gqa"] = 1
    if c.chance(0.5):
        arguments.update(max_q=max(q_lens), max_kv=max(max(kv_lens), 1))
    kind = c.pick(["none", "lower_right", "causal", "window"])
    window = c.pick([0, 4, 30])
    if kind == "lower_right":
        arguments["lower_right"] = 1
    elif kind != "none":
        arguments.update(mask=kind, window=window, mask_by="mod")
    more, mod, captured, terms = pick_mod(c, heads, 1, 1, name, ["none", "alibi", "relative", "softcap"])
    terms = terms * 60
    arguments.update(more)
    leaves = [t.double().clone().requires_grad_() for t in (q, k, v)]
    outs, lses = [], []
    for i in range(n):
        part = leaves[0][cu_q[i] : cu_q[i + 1]].transpose(0, 1)[None]
        key, value = (widen(t[cu_kv[i] : cu_kv[i + 1]].transpose(0, 1)[None], heads, 1) for t in leaves[1:])
        lq, lk = q_lens[i], kv_lens[i]
        gq, gk = torch.arange(lq).reshape(-1, 1), torch.arange(lk)
        m = {"none": torch.ones([lq, lk], dtype=torch.bool), "lower_right": gq + (lk - lq) >= gk, "causal": gq >= gk, "window": (gq >= gk) & (gq - gk <= window)}[kind]
        rows = m.any(-1)
        safe = m | ~rows[:, None]
        out, lse, _ = reference(part, key, value, safe.expand(1, heads, lq, lk), (lambda s, b, h, q, kv, u, i=i: mod(s, b + i, h, q, kv, u)) if mod else None, [t.double() for t in captured])
        outs.append((out * rows[:, None])[0].transpose(0, 1))
        lses.append(torch.where(rows, lse[0], -math.inf))
    exact, lse = torch.cat(outs), torch.cat(lses, dim=1).detach()
    (exact * grad.double()).sum().backward()
    got = c.call("varlen_attn", q=q, k=k, v=v, grad=grad, return_lse=1, **arguments)
    tolerance = accuracy(name, e, terms, v) + ((2.0**-22 if name != "f64" else 2.0**-51) * more.get("cap", 0) * 8)
    what = f"{kind}, {more['score_mod']}, {name}: "
    c.near(got[0], exact.detach(), torch.full(exact.shape, tolerance, dtype=torch.float64), SDPA + ", varlen_attn", what)
    c.near(got[1], lse, 6 * EPS[compute_name(name)] * torch.nan_to_num(lse.abs(), posinf=0.0) + 2 * tolerance, SDPA + ", varlen_attn", "lse, " + what)
    extra = rounding_of_result(name, grad, exact) / math.sqrt(e)
    for i, (t, m) in enumerate(zip(leaves, ("q", "k", "v"))):
        size = extra * 20 if m != "v" else 0.0
        c.near(got[3 + i], t.grad if t.grad is not None else torch.zeros_like(t), torch.full(t.shape, gradient_bound(name, e, terms, grad, [q, k, v], 8), dtype=torch.float64) + size,
               SDPA + ", varlen_attn_backward", f"gradient of {m}, " + what)


@case(30, covers=["multi_head_attention", "alibi_slopes"])
def multi_head(c):
    name = c.floating()
    eps = EPS[compute_name(name)]
    batch, l, e_in, d = c.pick([1, 2]), c.pick([1, 5, 17]), c.pick([8, 16]), c.pick([4, 8])
    kv_heads, share = c.pick([1, 2]), c.pick([1, 2])
    heads = kv_heads * share
    e_out = c.pick([8, 12])
    x = c.tensor([batch, l, e_in], name, "normal")
    in_weight, out_weight = c.tensor([(heads + 2 * kv_heads) * d, e_in], name, "unit"), c.tensor([e_out, heads * d], name, "unit")
    in_bias = c.tensor([(heads + 2 * kv_heads) * d], name, "unit", expand=False) if c.chance(0.6) else None
    out_bias = c.tensor([e_out], name, "unit", expand=False) if c.chance(0.6) else None
    causal = c.chance(0.5)
    leaves = [None if t is None else t.double().clone().requires_grad_() for t in (x, in_weight, in_bias, out_weight, out_bias)]
    linear = torch.nn.functional.linear
    p = linear(leaves[0], leaves[1], leaves[2]).reshape(batch, l, heads + 2 * kv_heads, d).transpose(1, 2)
    q, k, v = p[:, :heads], p[:, heads : heads + kv_heads], p[:, heads + kv_heads :]
    mask = torch.tril(torch.ones([l, l], dtype=torch.bool)).expand(batch, heads, l, l) if causal else None
    out, _, _ = reference(q, widen(k, heads, batch), widen(v, heads, batch), mask)
    y = linear(out.transpose(1, 2).reshape(batch, l, heads * d), leaves[3], leaves[4])
    grad = c.tensor(list(y.shape), name, "normal")
    (y * grad.double()).sum().backward()
    arguments = dict(mask="causal", mask_by="mod") if causal else {}
    got = c.call("multi_head_attention", x=x, in_weight=in_weight, in_bias=in_bias, out_weight=out_weight, out_bias=out_bias, heads=heads, kv_heads=0 if share == 1 else kv_heads, grad=grad,
                 **arguments)
    # Between the layers numbers are rounded to the tensors' dtype.
    middle = EPS[name] * 4 if name in ("f16", "bf16") else 0.0
    scale = float(p.detach().abs().max()) ** 2 + 1
    bound = (60 * eps + middle) * heads * d * float(v.detach().abs().max() + 1) * scale
    c.near(got[0], y.detach(), torch.full(y.shape, bound, dtype=torch.float64), SDPA + ", multi_head_attention", f"{name}: ")
    big = float(grad.double().abs().max()) * scale * float(x.double().abs().max() + 1) * heads * d * e_out * batch * l
    for i, (t, n) in enumerate(zip(leaves, ("x", "in_weight", "in_bias", "out_weight", "out_bias"))):
        if t is None:
            c.true(got[1 + i] is None, f"there is a gradient of {n}, which is not there", SDPA)
        else:
            c.near(got[1 + i], t.grad, torch.full(t.shape, (10 * eps + middle) * big * 0.2, dtype=torch.float64), SDPA + ", multi_head_attention_backward", f"gradient of {n}, {name}: ")
    h = c.pick([1, 2, 8, 12])
    exact = 2.0 ** (-8.0 * (torch.arange(h, dtype=torch.float64) + 1) / h)
    c.near(c.call("alibi_slopes", heads=h)[0], exact, 4 * EPS["f32"] * exact, FLEX + ", alibi_slopes", f"{h} heads: ")


@case(30, covers=["paged_cache"])
def paged_caches(c):
    name = c.floating()
    page, n, kv_heads, share = c.pick([4, 16, 128]), c.integer(1, 4), c.pick([1, 2]), c.pick([1, 4])
    heads = kv_heads * share
    e, ev, l = c.pick([8, 64]), c.pick([8, 16]), c.pick([1, 1, 3, 12])
    lengths = [c.pick([1, page - 1, page, page + 1, 3 * page]) for _ in range(n)]
    longest = max(lengths)
    pages = sum(-(-m // page) for m in lengths) + c.integer(0, 3)
    k, v = c.tensor([n, kv_heads, longest, e], name, "normal"), c.tensor([n, kv_heads, longest, ev], name, "normal")
    q = c.tensor([n, heads, l, e], name, "normal")
    sequences = torch.arange(n, dtype=torch.int32)
    order = torch.from_numpy(np.asarray(c.rng.permutation(longest)))
    positions = order.to(torch.int32).expand(n, longest).contiguous()
    arguments = dict(erase=c.integer(0, n - 1)) if c.chance(0.4) else {}
    got = c.call("paged_cache", pages=pages, page_size=page, max_batch=n, k=k, v=v, q=q, sequences=sequences, positions=positions,
                 reserve=[float(m) for m in lengths], lengths=torch.tensor(lengths, dtype=torch.int32), enable_gqa=int(share > 1), **arguments)
    used = sum(-(-m // page) for m in lengths)
    c.true(got.values["free"] == pages - used, f"{got.values['free']} pages are free, wanted {pages - used}", "clutch/paged_cache.hpp")
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(longest)
    outs = []
    for i, m in enumerate(lengths):
        # The key at position p was the inverse[p]-th of those that were written.
        at = inverse[:m]
        key, value = (widen(t[i : i + 1].double()[:, :, at], heads, 1) for t in (k, v))
        outs.append(reference(q[i : i + 1].double(), key, value)[0])
    exact = torch.cat(outs)
    c.near(got[0], exact, torch.full(exact.shape, accuracy(name, e, 0, v), dtype=torch.float64), "clutch/paged_cache.hpp, varlen", f"{name}, pages of {page}: ")
    c.near(got[3], exact, torch.full(exact.shape, accuracy(name, e, 0, v), dtype=torch.float64), "clutch/paged_cache.hpp, physical", f"by physical rows, {name}, pages of {page}: ")
    table = got[1]
    for i, m in enumerate(lengths):
        need = -(-m // page)
        mine = table[i, :need].tolist()
        c.true(all(0 <= p < pages for p in mine) and len(set(mine)) == need and bool((table[i, need:] == -1).all()), f"row {i} of the page table is {table[i].tolist()}", "clutch/paged_cache.hpp, page_table")
        for j, p in enumerate(mine):
            c.true(int(got[2][i, p]) == j, f"physical_to_logical of page {p} of sequence {i} is {int(got[2][i, p])}", "clutch/paged_cache.hpp, physical_to_logical")

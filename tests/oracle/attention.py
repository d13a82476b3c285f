# SPDX-License-Identifier: Apache-2.0
"""Attention: block masks, flex, sdpa, sequences of several lengths, paged caches, multi-head attention."""

import math

import numpy as np
import torch
from torch.nn.attention.flex_attention import and_masks, create_block_mask, flex_attention, or_masks

from common import DTYPES, EPS, NAMES, Refusal, case, compute_name
from random_numbers import philox
from tensors import unchanged

MASK = "clutch/ops/block_mask.hpp"
FLEX = "clutch/ops/flex.hpp"
SDPA = "clutch/attention.hpp"


def plain_masks(arguments):
    """Masks that are made of the call's numbers alone, by name, as functions of index tensors."""
    offset, window, dilation, prefix = (arguments[n] for n in ("mask_offset", "window", "dilation", "prefix_length"))
    causal = lambda b, h, q, kv: q + offset >= kv
    in_window = lambda b, h, q, kv: (q >= kv) & (q - kv <= window)
    return {
        "causal": causal, "window": in_window, "prefix_number": lambda b, h, q, kv: (kv < prefix) | (q >= kv),
        "dilated": lambda b, h, q, kv: ((q - kv).abs() <= window) & ((q - kv) % dilation == 0),
        "window_or_prefix": lambda b, h, q, kv: in_window(b, h, q, kv) | (kv < prefix) | (q >= kv),
        "not_causal": lambda b, h, q, kv: ~causal(b, h, q, kv), "nothing": lambda b, h, q, kv: q < 0,
        "by_head": lambda b, h, q, kv: (q + kv + h + b) % 3 != 0,
    }


def pick_mask(c, batch, q_len, kv_len, names=None):
    """Arguments of the call, and the mask as a function of index tensors."""
    which = c.pick(names or ["causal", "window", "prefix", "prefix_number", "document", "dilated", "causal_document", "window_or_prefix", "not_causal", "nothing",
                             "by_head", "table"])
    offset = c.pick([0, 0, kv_len - q_len, 3, -2])
    window, dilation, prefix = c.pick([0, 1, 8, 40, 200]), c.pick([1, 2, 3]), c.pick([0, 1, 10, 300])
    arguments = {"mask": which, "mask_offset": offset, "window": window, "dilation": dilation, "prefix_length": prefix}
    if which in ("document", "causal_document"):
        # One list of documents, or one for each batch.
        shape = [batch, max(q_len, kv_len)] if c.chance(0.3) else [max(q_len, kv_len)]
        ids = c.rng.integers(0, 3, size=shape) if c.chance(0.3) else np.sort(c.rng.integers(0, 4, size=shape))
        ids = torch.from_numpy(ids.astype(np.int32))
        arguments["ids"] = ids
        same = (lambda b, h, q, kv: ids[b, q] == ids[b, kv]) if len(shape) > 1 else (lambda b, h, q, kv: ids[q] == ids[kv])
        return arguments, same if which == "document" else (lambda b, h, q, kv: (q >= kv) & same(b, h, q, kv))
    if which == "prefix":
        p = torch.from_numpy(c.rng.integers(0, kv_len, size=batch, endpoint=True).astype(np.int32))
        arguments["prefix"] = p
        return arguments, lambda b, h, q, kv: (kv < p[b]) | (q >= kv)
    if which == "table":
        t = torch.from_numpy(np.asarray(c.rng.random([q_len, kv_len]) < c.pick([0.02, 0.5, 0.98]))).to(torch.uint8)
        arguments["table"] = t
        return arguments, lambda b, h, q, kv: t[q, kv] != 0
    return arguments, plain_masks(arguments)[which]


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


@case(24, covers=["mask & mask", "mask | mask", "! mask"], sharp=True)
def masks_of_masks(c):
    batch, heads = c.pick([1, 2]), c.pick([1, 3])
    q_len, kv_len = c.pick([1, 16, 100, 257]), c.pick([1, 64, 150, 300])
    block_q, block_kv = c.pick([16, 32, 128]), c.pick([16, 32, 128])
    arguments, first = pick_mask(c, batch, q_len, kv_len)
    second = c.pick(list(plain_masks(arguments)))
    function = c.pick(["mask & mask", "mask | mask", "! mask"])
    other = plain_masks(arguments)[second]
    mask = {"mask & mask": and_masks(first, other), "mask | mask": or_masks(first, other), "! mask": lambda b, h, q, kv: ~first(b, h, q, kv)}[function]
    got = c.call(function, second_mask=second, mask_batch=batch, mask_heads=heads, q_len=q_len, kv_len=kv_len, block_q=block_q, block_kv=block_kv, **arguments)
    kinds = reference_kinds(dense_mask(mask, batch, heads, q_len, kv_len), block_q, block_kv)
    what = f"{function} of {arguments['mask']} and {second}: "
    c.same(got[0], kinds, MASK + ", operators of masks", "kinds, " + what)
    c.same(got[1], (kinds > 0).to(torch.int32), MASK + ", operators of masks", "dense, " + what)


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
    # Where the elements of a row are one, so are the products: their roundings do not cancel.
    alike = q.stride(3) == 0 and k.stride(3) == 0
    spread = (max(8, e / 2) if alike else 8) * unit * (1 + finite + terms)
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
    return unit * (1e-5 * math.sqrt(max(e, 64) / 64) + 20 * EPS["f32"] * terms) * max(1.0, float(grad.double().abs().max()) / 3 if grad.numel() else 0.0) * big * count


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
    if c.chance(0.3):
        arguments["scale"] = c.pick([0.5 / math.sqrt(e), 1.0 / e])
    scale = arguments.get("scale")
    if c.chance(0.2):
        arguments["skip_masked"] = 1
    if c.chance(0.5):
        arguments["return_max_scores"] = 1  # and the backward call begins there
    leaves = [t.double().clone().requires_grad_() for t in (q, k, v)]
    read = [t.double().clone().requires_grad_() for t in captured]
    exact, lse, top = reference(leaves[0], widen(leaves[1], heads, batch), widen(leaves[2], heads, batch), mask, mod, read, scale)
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
        exact, lse, top = reference(leaves[0], widen(leaves[1], heads, batch), widen(leaves[2], heads, batch), safe, mod, read, scale)
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


def rounded_to(x, name):
    return torch.from_numpy(np.asarray(x.numpy().astype(np.float32))).double() if compute_name(name) == "f32" else x


@case(70, covers=[])
def large_scores(c):
    """Scores of any size: alike, that differ by as much, with a large common part, of products that cancel, changed by large terms. All products and sums of them are
    exact in the compute type, in any order, so that scores are known; a mod's sum is rounded once."""
    name = c.pick(["f32", "f32", "f16", "bf16"] + (["f64"] if c.traits["fp64"] else []))
    compute = compute_name(name)
    batch, kv_heads, share = c.pick([1, 2]), c.pick([1, 2]), c.pick([1, 1, 2])
    heads = kv_heads * share
    l, s = c.pick([1, 5, 17, 40]), c.pick([2, 16, 70, 300, 600])
    e, ev = 64, 16
    kind = ["alike", "spread", "common part", "cancelling", "cancelling to nothing", "shifted", "shifted", "capped", "alibi"][c.number % 9]
    whole = lambda shape: torch.from_numpy(c.rng.integers(-3, 3, size=shape, endpoint=True).astype(np.float64))
    q, k, v = whole([batch, heads, l, e]), whole([batch, kv_heads, s, e]), c.tensor([batch, kv_heads, s, ev], name, "normal")
    arguments, slope, terms = {}, None, 0.0
    wide, sign = name in ("f32", "bf16", "f64"), c.pick([1, -1])
    mod = lambda x: x
    if kind == "alike":
        q = torch.zeros_like(q)
    elif kind == "spread":
        q = q * 2.0 ** c.pick([0, 4, 10, 12] + ([30, 100, 118] if wide else []) + ([900] if name == "f64" else []))
    elif kind == "common part":
        q[..., 0], k[..., 0] = 1.0, sign * 2.0 ** c.pick([10, 15] + ([13, 20] if wide else []) + ([40] if name == "f64" else []))
    elif kind == "cancelling":
        q[..., 0], q[..., e - 1] = sign, -sign
        k[..., 0] = k[..., e - 1] = 2.0 ** c.pick([10, 15] + ([13, 20] if wide else []) + ([40] if name == "f64" else []))
    elif kind == "cancelling to nothing":
        large = [c.integer(0, 15) for _ in range(2)] if not wide else [c.integer(0, 62) for _ in range(2)]
        chosen = torch.from_numpy(np.asarray(c.rng.random([batch, kv_heads, s, 1]) < 0.5))
        k = torch.where(chosen, 0.0, k)
        q[..., 0], q[..., 1] = 2.0 ** large[0], -(2.0 ** large[0])
        k[..., 0] = k[..., 1] = torch.where(chosen[..., 0], 2.0 ** large[1], 0.0)
    if kind in ("alike", "shifted"):
        shift = c.pick([1e2, 1e4, 1e6, 1e9, 1e10, 1e20, 1e30, 3e38]) * sign
        arguments.update(score_mod="shift", shift=shift)
        term = rounded_to(torch.tensor(shift, dtype=torch.float64), name)
        mod = lambda x: rounded_to(x + term, name)
    elif kind == "capped":
        cap = c.pick([1.0, 30.0, 1e4])
        arguments.update(score_mod="softcap", cap=cap)
        q = q * 2.0 ** c.pick([0, 4, 10])
        mod = lambda x: cap * torch.tanh(x / cap)
        slope = lambda x: 1 - (x / cap) ** 2
        terms = cap
    elif kind == "alibi":
        slopes = 2.0 ** torch.from_numpy(c.rng.integers(0, c.pick([3, 20, 100]), size=[heads]).astype(np.float64))
        arguments.update(score_mod="alibi", slopes=slopes.to(DTYPES[compute]))
        mod = lambda x: rounded_to(x + slopes.reshape(-1, 1, 1) * (torch.arange(s) - torch.arange(l).reshape(-1, 1)), name)
    if share > 1:
        arguments["enable_gqa"] = 1
    q, k = c.lay_out(q.to(DTYPES[name])), c.lay_out(k.to(DTYPES[name]))
    grad = c.tensor([batch, heads, l, ev], name, "normal")
    wide_k, wide_v = (widen(t.double(), heads, batch) for t in (k, v))
    scale = 1 / math.sqrt(e)
    scores = mod((q.double() @ wide_k.mT) * scale)
    if c.chance(0.4) and l <= s:
        # Every query has its own key at least.
        arguments.update(mask="causal", mask_by=c.pick(["mod", "block"]), mask_batch=1, mask_heads=1, q_len=l, kv_len=s, block_q=16, block_kv=64)
        scores = torch.where(torch.ones([l, s], dtype=torch.bool).tril(), scores, -math.inf)
    top = scores.amax(-1, keepdim=True)
    p = torch.softmax(scores, -1)
    exact, g = p @ wide_v, grad.double()
    if c.chance(0.5):
        arguments["return_max_scores"] = 1
    got = c.call("flex", q=q, k=k, v=v, grad=grad, return_lse=1, **arguments)
    what = f"{kind}, {name}, {s} keys, scores to {float(scores[scores.isfinite()].abs().max()):g}: "
    cap_error = terms * (2.0**-21 if compute == "f32" else 2.0**-50)
    tolerance = accuracy(name, e, 0, v) * (1 if kind != "capped" else 2) + 8 * cap_error
    # A weight is e^difference, whose product with log2(e) is rounded; roundings of sums of equal values do not cancel.
    weighed = torch.nan_to_num(p * (top - scores)) @ wide_v.abs() + (s / 4 if v.stride(2) == 0 else max(4, math.sqrt(s))) * (p @ wide_v.abs())
    c.near(got[0], exact, tolerance + 2 * EPS[compute] * weighed, FLEX + ", Range", what)
    lse = torch.logsumexp(scores, -1)
    c.near(got[1], lse, 6 * EPS[compute] * lse.abs() + tolerance, FLEX + ", FlexResult::lse", "lse, " + what)
    if "return_max_scores" in arguments:
        c.near(got[2], top[..., 0], 2 * EPS[compute] * top[..., 0].abs() + cap_error, FLEX + ", FlexResult::max_scores", "max_scores, " + what)
    # Of each sum the sizes of its terms, of which r is lost: of weights, of grad v^T, of the rows' sums of both.
    r = max(1e-5 if compute == "f32" else 1e-5 * 2.0**-29, (ev + s + 60) * EPS[compute]) + 4 * cap_error
    least = 2.0**-125 if compute == "f32" else 2.0**-1000  # subnormal weights, and gradients, may count as 0
    dp = g @ wide_v.mT
    ds = p * (dp - (p * dp).sum(-1, keepdim=True))
    sizes = g.abs() @ wide_v.abs().mT
    sizes = sizes + (p * sizes).sum(-1, keepdim=True)
    stored = EPS[name] * (g.abs() * exact.abs()).sum(-1, keepdim=True) if name in ("f16", "bf16") else 0.0
    if slope is not None:
        ds = ds * slope(torch.where(scores.isfinite(), scores, 0.0))
    # A weight is e^difference, whose product with log2(e) is rounded.
    r = r + 2 * EPS[compute] * torch.where(p > 0, top - scores, 0.0)
    error = p * (r * sizes + stored) + least * sizes
    together = lambda t: t.reshape(batch, kv_heads, share, s, -1).sum(2)
    wants = {
        "q": (ds @ wide_k * scale, error @ wide_k.abs() * scale), "k": (together(ds.mT @ q.double()) * scale, together(error.mT @ q.double().abs()) * scale),
        "v": (together(p.mT @ g), together((p * r + least).mT @ g.abs()) + least),
    }
    for i, (n, (want, bound)) in enumerate(wants.items()):
        c.near(got[4 + i], want, bound, FLEX + ", flex_backward: lse is enough for scores of any size", f"gradient of {n}, {'with' if 'return_max_scores' in arguments else 'without'} max_scores, " + what)


NOTHING = ["queries", "keys", "batches", "heads", "elements of values", "queries and keys"]


@case(48, covers=[])
def attention_of_nothing(c):
    """Sizes of 0: PyTorch's scaled_dot_product_attention, with its gradients; its flex_attention refuses most of these on CPUs. Without keys rows are 0, lse and the largest
    score -inf."""
    nothing = NOTHING[c.number % len(NOTHING)]
    name = c.floating()
    batch, kv_heads, share, l, s = c.pick([1, 2]), c.pick([1, 2]), c.pick([1, 2]), c.pick([1, 5, 20]), c.pick([1, 16, 70, 600])
    e, ev = c.pick([1, 8, 64]), c.pick([4, 16])
    if nothing in ("queries", "queries and keys"):
        l = 0
    if nothing in ("keys", "queries and keys"):
        s = 0
    if nothing == "batches":
        batch = 0
    if nothing == "heads":
        kv_heads = 0
    if nothing == "elements of values":
        ev = 0
    heads = kv_heads * share
    kv_batch = 1 if c.chance(0.3) else batch
    q, k, v = c.tensor([batch, heads, l, e], name, "normal"), c.tensor([kv_batch, kv_heads, s, e], name, "normal"), c.tensor([kv_batch, kv_heads, s, ev], name, "normal")
    grad = c.tensor([batch, heads, l, ev], name, "normal")
    leaves = [t.double().clone().requires_grad_() for t in (q, k, v)]
    key, value = (t.expand(batch, -1, -1, -1).repeat_interleave(share, 1) for t in leaves[1:])
    causal = c.chance(0.3)
    exact = torch.nn.functional.scaled_dot_product_attention(leaves[0], key, value, is_causal=causal)
    (exact * grad.double()).sum().backward()
    exact = exact.detach()
    lower = torch.ones([l, s], dtype=torch.bool).tril().expand(batch, heads, l, s)
    _, lse, top = reference(leaves[0].detach(), key.detach(), value.detach(), lower if causal else None)
    if nothing == "elements of values" and not causal and batch == kv_batch:
        _, again = flex_attention(leaves[0].detach(), key.detach(), value.detach(), return_lse=True)
        c.true(bool(torch.allclose(lse, again)), "the reference's lse is not PyTorch's", FLEX)
    tolerance = accuracy(name, e, 0, v, 4e-6)
    many = math.sqrt(max(1, share * max(batch, 1) * l / 16)) + 1

    def check(got, first, function):
        what = f"{function} of no {nothing}, {name}: "
        c.near(got[0], exact, torch.full(exact.shape, tolerance, dtype=torch.float64), FLEX + "; rows without any key are 0", what)
        c.near(got[1], lse, 4 * EPS[compute_name(name)] * torch.nan_to_num(lse.abs(), posinf=0.0) + 2 * tolerance, FLEX + "; rows without any key, lse", "lse, " + what)
        for i, (t, n) in enumerate(zip(leaves, ("q", "k", "v"))):
            want = t.grad if t.grad is not None else torch.zeros_like(t)
            c.near(got[first + i], want, torch.full(want.shape, gradient_bound(name, e, 0, grad, [q, k, v], 4 * many), dtype=torch.float64), FLEX + ", flex_backward", f"gradient of {n}, " + what)

    gqa = dict(enable_gqa=int(share > 1))
    for backend in ("flash", "math"):
        check(c.call("sdpa", q=q, k=k, v=v, grad=grad, backend=backend, **gqa, **({"causal": "upper_left"} if causal else {})), 3, backend)
    more = dict(mask="causal", mask_by="mod") if causal else {}
    if causal and l and s and c.chance(0.5):
        more.update(mask_by="block", mask_batch=1, mask_heads=1, q_len=l, kv_len=s, block_q=16, block_kv=16)
    got = c.call("flex", q=q, k=k, v=v, grad=grad, return_max_scores=1, **gqa, **more)
    check(got, 4, "flex")
    c.near(got[2], top, 4 * EPS[compute_name(name)] * torch.nan_to_num(top.abs(), posinf=0.0) + tolerance, FLEX + "; rows without any key, largest score", f"max_scores of no {nothing}: ")
    if heads:
        # What a mod captured has gradients of 0 where nothing was read.
        slopes = c.values([heads], compute_name(name), "positive")
        got = c.call("flex", q=q, k=k, v=v, grad=grad, score_mod="alibi", slopes=slopes, captured_gradients=1, **gqa)
        c.same(got[7], torch.zeros_like(slopes), FLEX + ", captured_gradients", f"gradient of slopes, no {nothing}: ", zero_signs=False)
    if not l or not s:
        c.refused("invalid_argument", "create_block_mask", MASK + ", create_block_mask, Errors: lengths below 1", mask="causal", q_len=l, kv_len=s)
    # PyTorch gives zeros for queries and keys without elements, whose scores, 0 / sqrt(0), are no numbers.
    c.refused("invalid_shape", "flex", FLEX + ", Errors", q=torch.zeros(1, 1, 2, 0), k=torch.zeros(1, 1, 3, 0), v=torch.zeros(1, 1, 3, 4))
    if nothing in ("queries", "batches"):
        x = c.tensor([batch, l, 8], name, "normal")
        in_weight, out_weight = c.tensor([3 * 8, 8], name, "unit"), c.tensor([6, 8], name, "unit")
        bias = c.tensor([24], name, "unit", expand=False)
        got = c.call("multi_head_attention", x=x, in_weight=in_weight, in_bias=bias, out_weight=out_weight, heads=2, grad=c.tensor([batch, l, 6], name, "normal"))
        c.alike(got[0], [batch, l, 6], name, SDPA + ", multi_head_attention")
        c.alike(got[1], [batch, l, 8], name, SDPA + ", multi_head_attention_backward")
        for result, weight in ((got[2], in_weight), (got[3], bias), (got[4], out_weight)):
            c.same(result, torch.zeros(weight.shape, dtype=weight.dtype), SDPA + ", multi_head_attention_backward", f"gradient of a weight, no {nothing}: ", zero_signs=False)


@case(24, covers=[])
def what_is_masked_is_not_read(c):
    """FlexOptions::skip_masked: NaN and infinities of keys and values that nobody attends to, forward and backward."""
    name = c.floating()
    batch, kv_heads, share = c.pick([1, 2]), c.pick([1, 2]), c.pick([1, 2])
    heads = kv_heads * share
    l, s = c.pick([1, 5, 17, 40]), c.pick([2, 16, 70, 150])
    e, ev = c.pick([8, 64]), c.pick([8, 16])
    bad = torch.from_numpy(np.asarray(c.rng.random(s) < c.pick([0.1, 0.5])))
    if c.chance(0.4) and s > l:
        arguments, mask = pick_mask(c, batch, l, s, ["causal"])
        arguments["mask_offset"] = 0
        mask = plain_masks(arguments)["causal"]
        bad = bad & (torch.arange(s) >= l)
    else:
        arguments, mask = pick_mask(c, batch, l, s, ["table"])
        arguments["table"][:, bad] = 0
    arguments.update(mask_batch=batch, mask_heads=heads, q_len=l, kv_len=s, block_q=c.pick([16, 64]), block_kv=c.pick([16, 64]), mask_by=c.pick(["block", "mod"]))
    mask = dense_mask(mask, batch, heads, l, s)
    more, mod, captured, terms = pick_mod(c, heads, l, s, name, ["none", "relative", "alibi"])
    q, k, v = c.tensor([batch, heads, l, e], name, "normal"), c.values([batch, kv_heads, s, e], name, "normal"), c.values([batch, kv_heads, s, ev], name, "normal")
    grad = c.tensor([batch, heads, l, ev], name, "normal")
    leaves = [t.double().clone().requires_grad_() for t in (q, k, v)]
    rows = mask.any(-1)
    exact, _, _ = reference(leaves[0], widen(leaves[1], heads, batch), widen(leaves[2], heads, batch), mask | ~rows[..., None], mod, [t.double() for t in captured])
    exact = exact * rows[..., None]
    (exact * grad.double()).sum().backward()
    which = c.pick(["keys", "values", "both"])
    for t, n in ((k, "keys"), (v, "values")):
        if which in (n, "both"):
            t[:, :, bad] = c.pick([math.nan, math.inf, -math.inf])
    got = c.call("flex", q=q, k=c.lay_out(k), v=c.lay_out(v), grad=grad, skip_masked=1, enable_gqa=1, **arguments, **more)
    what = f"{more['score_mod']}, mask {arguments['mask']} by {arguments['mask_by']}, {which} of {int(bad.sum())} masked keys are no numbers, {name}: "
    c.near(got[0], exact.detach(), torch.full(exact.shape, accuracy(name, e, terms, v[:, :, ~bad]), dtype=torch.float64), FLEX + ", FlexOptions::skip_masked", what)
    extra = rounding_of_result(name, grad, exact) / math.sqrt(e)
    many = math.sqrt(max(1, share * l / 16)) + 1
    for i, (t, n) in enumerate(zip(leaves, ("q", "k", "v"))):
        bound = gradient_bound(name, e, terms, grad, [q, k[:, :, ~bad], v[:, :, ~bad]], 4 if n == "q" else 2 * many)
        size = {"q": float(leaves[1].detach().abs().max()), "k": many * 4 * float(q.double().abs().max()), "v": 0.0}[n] * extra
        c.near(got[4 + i], t.grad, torch.full(t.shape, bound, dtype=torch.float64) + size, FLEX + ", FlexOptions::skip_masked", f"gradient of {n}, " + what)


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
    if c.chance(0.3):
        arguments["scale"] = c.pick([0.5 / math.sqrt(e), 1.0 / e])
    scores = (leaves[0] @ widen(leaves[1], heads, batch).mT) * arguments.get("scale", 1 / math.sqrt(e))
    added = None
    if bias is not None:
        # The sum is rounded to the compute type: beside -1e9 nothing of the score is left.
        total = (scores.detach().to(wide) + bias.to(wide)).double()
        added = (total - scores.detach()).requires_grad_()
        scores = scores + added
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
    if kind == "numbers":
        want = added.grad.sum_to_size(shape).reshape(arguments["attn_mask"].shape)
        magnitude = (p.detach() * ((four(grad).double() @ widen(leaves[2].detach(), heads, batch).mT).abs() + 1)).sum_to_size(shape).reshape(want.shape)
        kept = EPS[NAMES[arguments["attn_mask"].dtype]]
        c.near(got[6], want, (64 * (EPS[compute_name(name)] + EPS[name]) + 4 * kept) * (magnitude + want.abs()) + tolerance * (1 + magnitude), SDPA + ", sdpa_backward: attn_mask's gradient", what)
    if kind in ("upper_left", "lower_right"):
        c.refused("invalid_argument", "sdpa", SDPA + ": attn_mask beside causal", q=q, k=k, v=v, attn_mask=torch.ones([l, s], dtype=torch.bool), causal=kind)


@case(30, covers=[])
def dropout(c):
    """The weights that the words of Philox drop."""
    name = c.floating()
    batch, kv_heads, share = c.pick([1, 2]), c.pick([1, 3]), c.pick([1, 1, 2])
    heads = kv_heads * share
    l, s = c.pick([1, 3, 17, 40]), c.pick([1, 5, 16, 33, 70])
    e = c.pick([8, 16])
    q, k, v = (c.tensor([batch, h, n, e], name, "normal") for n, h in ((l, heads), (s, kv_heads), (s, kv_heads)))
    p, seed = c.pick([0.1, 0.5, 0.9]), c.integer(0, 2**40)
    blocks = -(-s // 4)
    index = ((torch.arange(batch * heads * l).reshape(batch, heads, l, 1)) * blocks + torch.arange(s) // 4).numpy().astype(np.uint64)
    words = philox(seed, index)[np.arange(s) % 4, ..., np.arange(s)]  # (s, batch, heads, l)
    words = np.moveaxis(words, 0, -1)
    keep = torch.from_numpy(words >= np.uint64(int(p * 2.0**32)))
    causal = c.chance(0.4)
    mask = torch.ones([l, s], dtype=torch.bool).tril().expand(batch, heads, l, s) if causal else None
    arguments, mod, captured, terms = pick_mod(c, heads, l, s, name, ["none", "none", "relative", "alibi"])
    if share > 1:
        arguments["enable_gqa"] = 1
    if c.chance(0.5):
        arguments["return_max_scores"] = 1
    leaves = [t.double().clone().requires_grad_() for t in (q, k, v)]

    def want(*changes):
        return reference(leaves[0], *(widen(t, heads, batch) for t in leaves[1:]), mask, *changes, weights=keep.double() / (1 - p))[0]

    exact = want(mod, [t.double() for t in captured])
    grad = c.tensor([batch, heads, l, e], name, "normal")
    (exact * grad.double()).sum().backward()
    got = c.call("flex", q=q, k=k, v=v, grad=grad, dropout_p=p, generator_seed=seed, **arguments, **(dict(mask="causal", mask_by="mod") if causal else {}))
    tolerance = accuracy(name, 64, terms, v) / (1 - p)
    source = FLEX + ", FlexOptions::dropout_p"
    what = f"p {p}, {arguments['score_mod']}, causal {causal}, {name}: "
    c.near(got[0], exact.detach(), torch.full(exact.shape, tolerance, dtype=torch.float64), source, what)
    c.same(got[3], torch.tensor([seed, 0]), FLEX + ", FlexResult::dropout_state", "state: ")

    def gradients(got, exact, terms, source, what):
        extra = rounding_of_result(name, grad, exact) / math.sqrt(e)
        for i, (t, n) in enumerate(zip(leaves, ("q", "k", "v"))):
            size = extra * 20 / (1 - p) if n != "v" else 0.0
            c.near(got[i], t.grad, torch.full(t.shape, gradient_bound(name, 64, terms, grad, [q, k, v], 8 / (1 - p)), dtype=torch.float64) + size, source, f"gradient of {n}, " + what)

    gradients(got[4:], exact, terms, source, what)
    for t in leaves:
        t.grad = None
    exact = want()
    (exact * grad.double()).sum().backward()
    tolerance = accuracy(name, 64, 0, v) / (1 - p)
    for backend in ("flash", "math"):
        again = c.call("sdpa", q=q, k=k, v=v, grad=grad, dropout_p=p, generator_seed=seed, backend=backend, enable_gqa=int(share > 1), **({"causal": "upper_left"} if causal else {}))
        source = SDPA + ", SdpaOptions::dropout_p: the same weights by either backend"
        c.near(again[0], exact.detach(), torch.full(exact.shape, 2 * tolerance, dtype=torch.float64), source, f"{backend}, p {p}, {name}: ")
        gradients(again[3:], exact, 0, source, f"{backend}, p {p}, {name}: ")


def used_keys(c, lengths, arguments):
    """Sets seqused_kv; how many keys of each sequence that leaves. Numbers past the lengths are clamped."""
    given = [c.pick([0, n // 2, max(n - 1, 0), n, n + 3, -2]) for n in lengths]
    arguments["seqused_kv"] = torch.tensor(given, dtype=torch.int32)
    return [min(max(u, 0), n) for u, n in zip(given, lengths)]


@case(50, covers=["varlen_attn"])
def varlen(c):
    name = c.floating()
    n, kv_heads, share = c.integer(1, 4), c.pick([1, 2]), c.pick([1, 2])
    heads = kv_heads * share
    e, ev = c.pick([8, 16, 64]), c.pick([8, 16])
    q_lens, kv_lens = [c.pick([0, 1, 3, 20, 50]) for _ in range(n)], [c.pick([0, 1, 5, 33, 60]) for _ in range(n)]
    if sum(q_lens) == 0 and c.chance(0.8):
        q_lens[0] = 4
    if sum(kv_lens) == 0 and c.chance(0.8):
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
    used = used_keys(c, kv_lens, arguments) if c.chance(0.5) else kv_lens
    if c.chance(0.5):
        arguments["return_max_scores"] = 1
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
        lq, lk = q_lens[i], used[i]
        key, value = key[:, :, :lk], value[:, :, :lk]
        gq, gk = torch.arange(lq).reshape(-1, 1), torch.arange(lk)
        m = {"none": torch.ones([lq, lk], dtype=torch.bool), "lower_right": gq + (lk - lq) >= gk, "causal": gq >= gk, "window": (gq >= gk) & (gq - gk <= window)}[kind]
        rows = m.any(-1)
        safe = m | ~rows[:, None]
        out, lse, _ = reference(part, key, value, safe.expand(1, heads, lq, lk), (lambda s, b, h, q, kv, u, i=i: mod(s, b + i, h, q, kv, u)) if mod else None, [t.double() for t in captured])
        outs.append((out * rows[:, None])[0].transpose(0, 1))
        lses.append(torch.where(rows, lse[0], -math.inf))
    exact, lse = torch.cat(outs), torch.cat(lses, dim=1).detach()
    if exact.requires_grad:
        # Some key counts.
        (exact * grad.double()).sum().backward()
    got = c.call("varlen_attn", q=q, k=k, v=v, grad=grad, return_lse=1, **arguments)
    tolerance = accuracy(name, e, terms, v) + ((2.0**-22 if name != "f64" else 2.0**-51) * more.get("cap", 0) * 8)
    what = f"{kind}, {more['score_mod']}, keys used {arguments.get('seqused_kv')}, {name}: "
    c.near(got[0], exact.detach(), torch.full(exact.shape, tolerance, dtype=torch.float64), SDPA + ", varlen_attn", what)
    c.near(got[1], lse, 6 * EPS[compute_name(name)] * torch.nan_to_num(lse.abs(), posinf=0.0) + 2 * tolerance, SDPA + ", varlen_attn", "lse, " + what)
    extra = rounding_of_result(name, grad, exact) / math.sqrt(e)
    for i, (t, m) in enumerate(zip(leaves, ("q", "k", "v"))):
        size = extra * 20 if m != "v" else 0.0
        c.near(got[3 + i], t.grad if t.grad is not None else torch.zeros_like(t), torch.full(t.shape, gradient_bound(name, e, terms, grad, [q, k, v], 8), dtype=torch.float64) + size,
               SDPA + ", varlen_attn_backward", f"gradient of {m}, " + what)


@case(60, covers=[])
def sequences_of_lengths(c):
    """Varlen of flex(): queries, keys or both in batches or one after another, of which some keys are used, the longest ones are cut, and what a mod captured has gradients."""
    name = c.floating()
    n, kv_heads, share = c.integer(1, 3), c.pick([1, 2]), c.pick([1, 2])
    heads = kv_heads * share
    e, ev = c.pick([8, 16, 64]), c.pick([8, 16])
    q_together, kv_together = c.chance(0.5), c.chance(0.5)
    some = c.pick([[1, 2, 5], [0, 1, 3, 20, 50]])
    q_lens = [c.pick(some) for _ in range(n)] if q_together else [c.pick([1, 3, 8, 9, 40])] * n
    kv_lens = [c.pick([0, 1, 5, 33, 60, 600]) for _ in range(n)] if kv_together else [c.pick([1, 16, 70, 600])] * n
    arguments = {}
    if q_together:
        arguments.update(cu_seq_q=torch.tensor([0, *np.cumsum(q_lens)], dtype=torch.int32), max_q=c.pick([0, max(q_lens), max(q_lens) + 5]))
    if kv_together:
        arguments.update(cu_seq_kv=torch.tensor([0, *np.cumsum(kv_lens)], dtype=torch.int32), max_kv=c.pick([0, max(kv_lens), max(kv_lens) + 5]))
    used = used_keys(c, kv_lens, arguments) if c.chance(0.7) or not (q_together or kv_together) else kv_lens
    if kv_together and c.chance(0.2):
        # Longer ones of sequences one after another are cut off.
        arguments["max_kv"] = c.pick([1, 4, 30])
        used = [min(u, arguments["max_kv"]) for u in used]
    rows = (sum(q_lens), max(q_lens), q_lens) if q_together else (q_lens[0], q_lens[0], q_lens)
    q = c.tensor([1 if q_together else n, heads, rows[0], e], name, "normal")
    k, v = (c.tensor([1 if kv_together else n, kv_heads, sum(kv_lens) if kv_together else kv_lens[0], size], name, "normal") for size in (e, ev))
    grad = c.tensor([*q.shape[:3], ev], name, "normal")
    kind = c.pick(["none", "causal", "window", "by_head"])
    more, mod, captured, terms = pick_mod(c, heads, 1, 1, name, ["none", "alibi", "relative", "softcap", "relative_table"])
    if kind != "none":
        more.update(mask=kind, window=c.pick([0, 4, 30]), mask_offset=c.pick([0, 3]), dilation=1, prefix_length=0, mask_by="mod")
        if c.chance(0.4):
            # Of the longest lengths, or of all rows.
            q_len, kv_len = (min(arguments.get(longest) or t.shape[2], t.shape[2]) for longest, t in (("max_q", q), ("max_kv", k)))
            if q_len and kv_len:
                more.update(mask_by="block", mask_batch=n if kind == "by_head" else 1, mask_heads=heads if kind == "by_head" else 1, q_len=q_len, kv_len=kv_len, block_q=16, block_kv=c.pick([16, 64]))
    if share > 1:
        more["enable_gqa"] = 1
    if c.chance(0.5):
        more["return_max_scores"] = 1
    if c.chance(0.5):
        more["captured_gradients"] = 1
    function = plain_masks(more)[kind] if kind != "none" else (lambda b, h, q, kv: q >= 0)
    leaves = [t.double().clone().requires_grad_() for t in (q, k, v)]
    read = [t.double().clone().requires_grad_() for t in captured]
    outs, lses, tops = [], [], []
    for i in range(n):
        begin, batch = (sum(q_lens[:i]), 0) if q_together else (0, i)
        part = leaves[0][batch : batch + 1, :, begin : begin + q_lens[i]]
        begin, batch = (sum(kv_lens[:i]), 0) if kv_together else (0, i)
        key, value = (widen(t[batch : batch + 1, :, begin : begin + used[i]], heads, 1) for t in leaves[1:])
        _, h, gq, gk = grid(1, heads, q_lens[i], used[i])
        m = function(i, h, gq, gk)
        alive = m.any(-1)
        out, lse, top = reference(part, key, value, m | ~alive[..., None], (lambda s, b, h, q, kv, u, i=i: mod(s, b + i, h, q, kv, u)) if mod else None, read)
        outs.append(torch.where(alive[..., None], out, 0.0))
        lses.append(torch.where(alive, lse, -math.inf))
        tops.append(torch.where(alive, top, -math.inf))
    exact, lse, top = (torch.cat(t, dim=2 if q_together else 0) for t in (outs, lses, tops))
    if exact.requires_grad:
        # Some key counts.
        (exact * grad.double()).sum().backward()
    got = c.call("flex", q=q, k=k, v=v, grad=grad, **arguments, **more)
    longest = max(max(q_lens), max(kv_lens))
    terms = {"alibi": 2.0 * longest, "relative": float(longest)}.get(more["score_mod"], terms)
    tolerance = accuracy(name, e, terms, v) + ((2.0**-22 if name != "f64" else 2.0**-51) * more.get("cap", 0) * 8)
    what = f"{kind} by {more.get('mask_by')}, {more['score_mod']}, queries {q_lens} {'together' if q_together else 'in batches'}, keys {kv_lens} {'together' if kv_together else 'in batches'}, used {used}, {name}: "
    source = FLEX + ", Varlen"
    c.near(got[0], exact.detach(), torch.full(exact.shape, tolerance, dtype=torch.float64), source, what)
    spread = 6 * EPS[compute_name(name)]
    c.near(got[1], lse.detach(), spread * torch.nan_to_num(lse.detach().abs(), posinf=0.0) + 2 * tolerance, source, "lse, " + what)
    if "return_max_scores" in more:
        c.near(got[2], top.detach(), spread * torch.nan_to_num(top.detach().abs(), posinf=0.0) + 2 * tolerance, source, "max_scores, " + what)
    extra = rounding_of_result(name, grad, exact)
    for i, (t, m) in enumerate(zip(leaves, ("q", "k", "v"))):
        size = extra / math.sqrt(e) * 20 if m != "v" else 0.0
        want = t.grad if t.grad is not None else torch.zeros_like(t)
        c.near(got[4 + i], want, torch.full(t.shape, gradient_bound(name, e, terms, grad, [q, k, v], 8), dtype=torch.float64) + size, source, f"gradient of {m}, " + what)
    for i, t in enumerate(read if "captured_gradients" in more else []):
        of_distances = longest if more["score_mod"] == "alibi" else 1
        # Beside scores of f64 what is captured in f32 has gradients in f32.
        kept = "f32" if name == "f64" and captured[i].dtype != torch.float64 else name
        bound = gradient_bound(kept, e, terms, grad, [q, k, v], 4 * (n * math.sqrt(max(1.0, rows[1] * longest * heads / t.numel())) + 2) * of_distances)
        size = extra * (n * heads * max(rows[1], 1) / t.numel() + 1) * of_distances
        want = t.grad if t.grad is not None else torch.zeros_like(t)
        c.near(got[7 + i], want, torch.full(t.shape, bound, dtype=torch.float64) + size, FLEX + ", captured_gradients", "gradient of what it captured, " + what)


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
    arguments, mod, captured, terms = pick_mod(c, heads, l, l, name, ["none", "none", "relative", "alibi", "bias"])
    if causal:
        arguments.update(mask="causal", mask_by=c.pick(["mod", "block"]), mask_batch=1, mask_heads=1, q_len=l, kv_len=l, block_q=16, block_kv=16)
    if c.chance(0.3):
        arguments["scale"] = 0.5 / math.sqrt(d)
    out, _, _ = reference(q, widen(k, heads, batch), widen(v, heads, batch), mask, mod, [t.double() for t in captured], arguments.get("scale"))
    y = linear(out.transpose(1, 2).reshape(batch, l, heads * d), leaves[3], leaves[4])
    grad = c.tensor(list(y.shape), name, "normal")
    (y * grad.double()).sum().backward()
    got = c.call("multi_head_attention", x=x, in_weight=in_weight, in_bias=in_bias, out_weight=out_weight, out_bias=out_bias, heads=heads, kv_heads=0 if share == 1 else kv_heads, grad=grad,
                 **arguments)
    # Between the layers numbers are rounded to the tensors' dtype.
    middle = EPS[name] * 4 if name in ("f16", "bf16") else 0.0
    scale = float(p.detach().abs().max()) ** 2 + 1
    bound = (60 * eps + middle + 6 * EPS["f32" if name != "f64" else name] * terms) * heads * d * float(v.detach().abs().max() + 1) * scale
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
    source = "clutch/paged_cache.hpp"
    name = c.floating()
    page, n, kv_heads, share = c.pick([4, 16, 128]), c.integer(1, 4), c.pick([1, 2]), c.pick([1, 4])
    heads = kv_heads * share
    e, ev, l = c.pick([8, 64]), c.pick([8, 16]), c.pick([1, 1, 3, 12])
    lengths = [c.pick([1, page - 1, page, page + 1, 3 * page]) for _ in range(n)]
    longest = max(lengths)
    pages = sum(-(-m // page) for m in lengths) + c.integer(0, 3)
    k, v = c.tensor([n, kv_heads, longest, e], name, "normal"), c.tensor([n, kv_heads, longest, ev], name, "normal")
    order = torch.from_numpy(np.asarray(c.rng.permutation(longest)))
    positions = order.to(torch.int32).expand(n, longest).contiguous()
    arguments = dict(erase=c.integer(0, n - 1)) if c.chance(0.4) else {}
    # Queries of all sequences, or of those that are named; not all of their keys may count.
    named = c.chance(0.4)
    sequences = [c.integer(0, n - 1) for _ in range(c.integer(1, n))] if named else list(range(n))
    if named:
        sequences = list(dict.fromkeys(sequences))
    counts = [c.pick([lengths[i], lengths[i], lengths[i] - 1, 0]) for i in sequences]
    most = -(-longest // page) + c.integer(0, 2) if c.chance(0.3) else 0
    q = c.tensor([len(sequences), heads, l, e], name, "normal")
    more, mod, captured, terms = pick_mod(c, heads, l, longest, name, ["none", "none", "relative", "alibi", "softcap"])
    got = c.call("paged_cache", pages=pages, page_size=page, max_batch=n, max_pages=most, k=k, v=v, q=q, written=torch.arange(n, dtype=torch.int32), positions=positions,
                 sequences=torch.tensor(sequences, dtype=torch.int32), named=named, reserve=[float(m) for m in lengths], lengths=torch.tensor(counts, dtype=torch.int32),
                 enable_gqa=int(share > 1), by_blocks=c.chance(0.5), kv_len=longest, **arguments, **more)
    needs = [-(-m // page) for m in lengths]
    c.true(got.values["free"] == pages - sum(needs), f"{got.values['free']} pages are free, wanted {pages - sum(needs)}", source)
    c.true(got.values["capacities"] == [need * page for need in needs], f"capacities are {got.values['capacities']}, wanted {[need * page for need in needs]}", source + ", capacity")
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(longest)
    outs = []
    for b, (i, m) in enumerate(zip(sequences, counts)):
        # The key at position p was the inverse[p]-th of those that were written.
        at = inverse[:m]
        key, value = (widen(t[i : i + 1].double()[:, :, at], heads, 1) for t in (k, v))
        outs.append(reference(q[b : b + 1].double(), key, value, None, mod, [t.double() for t in captured])[0])
    exact = torch.cat(outs)
    what = f"{more['score_mod']}, sequences {sequences}, {counts} keys, {name}, pages of {page}: "
    tolerance = torch.full(exact.shape, accuracy(name, e, terms, v) + (2.0**-22 if name != "f64" else 2.0**-51) * more.get("cap", 0) * 8, dtype=torch.float64)
    c.near(got[0], exact, tolerance, source + ", varlen", what)
    c.near(got[3], exact, tolerance, source + ", physical", "by physical rows, " + what)
    table = got[1]
    c.alike(table, [n, most or pages], "i32", source + ", page_table")
    for i, need in enumerate(needs):
        mine = table[i, :need].tolist()
        c.true(all(0 <= p < pages for p in mine) and len(set(mine)) == need and bool((table[i, need:] == -1).all()), f"row {i} of the page table is {table[i].tolist()}", source + ", page_table")
        for j, p in enumerate(mine):
            c.true(int(got[2][i, p]) == j, f"physical_to_logical of page {p} of sequence {i} is {int(got[2][i, p])}", source + ", physical_to_logical")

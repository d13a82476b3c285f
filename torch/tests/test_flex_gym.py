# SPDX-License-Identifier: Apache-2.0
"""The masks and score mods that Attention Gym collects, and others of their kind, written from their definitions: each becomes part of clutch's kernels,
forward and backward, and gives what softmax of PyTorch's CPU gives in f64."""
import math
import warnings

import pytest
import torch
import torch.nn.attention.flex_attention as flex
from torch.overrides import TorchFunctionMode

BATCH, HEADS, LENGTH, SIZE = 2, 4, 64, 16
WIDTH = 8  # of a canvas of LENGTH places


def whole(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


# Masks: a function of what they capture.


def causal(b, h, q, kv):
    return q >= kv


def sliding_window(window):
    return flex.and_masks(lambda b, h, q, kv: q - kv <= window, causal)


def prefix_lm(length):
    return flex.or_masks(lambda b, h, q, kv: kv < length, causal)


def sink(sinks, window):
    return flex.and_masks(causal, flex.or_masks(lambda b, h, q, kv: kv < sinks, lambda b, h, q, kv: q - kv < window))


def dilated(window, step):
    def mask(b, h, q, kv):
        distance = torch.abs(q - kv)
        return (distance <= window) & (distance % step == 0)

    return mask


def documents(inner):
    """Documents in one sequence; the inner mask sees places in its document."""

    def make(starts):
        of = torch.repeat_interleave(torch.arange(len(starts) - 1, dtype=torch.int32), (starts[1:] - starts[:-1]).cpu()).to(starts.device)

        def mask(b, h, q, kv):
            a, z = of[q], of[kv]
            return (a == z) & inner(b, h, q - starts[a], kv - starts[z])

        return mask

    return make


def groups(inner, size):
    return lambda b, h, q, kv: (q // size == kv // size) & inner(b, h, q % size, kv % size)


def neighbours(place, kernel):
    """A neighbourhood whose centre keeps half a kernel from the canvas's edges."""
    half = kernel // 2

    def mask(b, h, q, kv):
        result = None
        for a, z in zip(place(q), place(kv)):
            near = (a.clamp(half, WIDTH - 1 - half) - z).abs() <= half
            result = near if result is None else result & near
        return result

    return mask


def by_rows(i):
    return i // WIDTH, i % WIDTH


def by_tiles(i, tile=2):
    number, within = i // (tile * tile), i % (tile * tile)
    across = WIDTH // tile
    return number % across * tile + within % tile, number // across * tile + within // tile


def by_morton(i):
    """Every second bit: a place on a Z-order curve."""

    def squeezed(code):
        code = code & 0x55555555
        for shift, bits in ((1, 0x33333333), (2, 0x0F0F0F0F), (4, 0x00FF00FF), (8, 0x0000FFFF)):
            code = (code | (code >> shift)) & bits
        return code

    return squeezed(i), squeezed(i >> 1)


def sliding_tiles(canvas, kernel, tile, text):
    """Tiles of a video or a picture attend to tiles around them; its last tokens are text."""
    tiles, reach = [c // t for c, t in zip(canvas, tile)], [k // t for k, t in zip(kernel, tile)]
    seen, volume = math.prod(canvas), math.prod(tile)

    def place(i):
        number, result = i // volume, []
        for n in reversed(tiles):
            result.append(number % n)
            number = number // n
        return result[::-1]

    def mask(b, h, q, kv):
        near = (q < seen) & (kv < seen)
        for a, z, n, k in zip(place(q), place(kv), tiles, reach):
            left, right = k // 2, k // 2 + k % 2 - 1
            centre = a.clamp(left, n - 1 - right)
            near = near & (z >= centre - left) & (z <= centre + right)
        to_text = (q < seen) & (kv >= seen) & (kv < seen + text)
        return near | to_text | ((q >= seen) & (kv < seen + text))

    return mask


def spatial_head(prompt, frame, width, grain, sinks):
    reach = math.floor(width * frame / grain) * grain
    return lambda b, h, q, kv: (kv < prompt + sinks * frame) | (q < prompt) | (torch.abs(q - kv) < reach)


def temporal_head(prompt, frame, frames, width):
    reach = width * frame // frames
    return lambda b, h, q, kv: (kv < prompt) | (q < prompt) | (torch.abs((q - prompt) % frame - (kv - prompt) % frame) < reach)


def flamingo(intervals):
    """Text attends to the tokens of the images whose interval it is in."""
    image = torch.arange(len(intervals), device=intervals.device).repeat_interleave(LENGTH // len(intervals))

    def mask(b, h, q, kv):
        interval = intervals[image[kv]]
        return (q >= interval[0]) & (q < interval[1])

    return mask


def diffusion_blocks(size):
    """The noised half attends to its own block and to clean blocks before it, the clean half by blocks causally."""
    half = LENGTH // 2

    def mask(b, h, q, kv):
        clean_q, clean_kv = q >= half, kv >= half
        of_q, of_kv = torch.where(clean_q, q - half, q) // size, torch.where(clean_kv, kv - half, kv) // size
        own = (of_q == of_kv) & (clean_q == clean_kv)
        before = (of_q > of_kv) & clean_kv & ~clean_q
        return own | before | ((of_q >= of_kv) & clean_kv & clean_q)

    return mask


def padded(lengths):
    return lambda b, h, q, kv: (kv < lengths[b]) & (q >= kv)


def of_heads(windows):
    return lambda b, h, q, kv: (q - kv).abs() <= windows[h]


def table(allowed):
    return lambda b, h, q, kv: allowed[q // 8, kv // 8].logical_not().logical_xor(h < 2)


def rows(allowed):
    return lambda b, h, q, kv: allowed[q // 8][kv // 8] | (q == kv)


MASKS = {  # name: of what it captures a mask, what it captures
    "causal": (lambda: causal,),
    "sliding window": (lambda: sliding_window(9),),
    "prefix": (lambda: prefix_lm(20),),
    "sink": (lambda: sink(4, 12),),
    "dilated window": (lambda: dilated(16, 3),),
    "documents": (documents(causal), whole(0, 7, 30, 31, 64)),
    "whole documents": (documents(lambda b, h, q, kv: q.new_ones((), dtype=torch.bool)), whole(0, 7, 30, 31, 64)),
    "groups": (lambda: groups(causal, 12),),
    "neighbours": (lambda: neighbours(by_rows, 5),),
    "tiled neighbours": (lambda: neighbours(by_tiles, 3),),
    "morton neighbours": (lambda: neighbours(by_morton, 3),),
    "sliding tiles 2-D": (lambda: sliding_tiles((6, 8), (4, 4), (2, 2), 10),),
    "sliding tiles 3-D": (lambda: sliding_tiles((3, 4, 4), (3, 2, 4), (1, 2, 2), 9),),
    "spatial head": (lambda: spatial_head(4, 12, 2, 8, False),),
    "spatial head with sink": (lambda: spatial_head(4, 12, 2, 8, True),),
    "temporal head": (lambda: temporal_head(4, 12, 5, 2),),
    "flamingo": (flamingo, torch.tensor([[0, 20], [5, 20], [20, 50], [40, 64]], dtype=torch.int32)),
    "diffusion blocks": (lambda: diffusion_blocks(8),),
    "padded": (padded, whole(64, 41)),
    "of heads": (of_heads, whole(3, 5, 8, 30)),
    "table": (table, torch.arange(64).reshape(8, 8) % 3 == 0),
    "rows": (rows, torch.arange(64).reshape(8, 8) % 5 == 0),
}


# Score mods: a function of what they capture.


@torch.library.custom_op("torch_clutch_test::approximate_tanh", mutates_args=())
def approximate_tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x)


@approximate_tanh.register_fake
def _(x):
    return torch.empty_like(x)


class ApproximateTanh(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.ops.torch_clutch_test.approximate_tanh(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * (1 - result * result)

    @staticmethod
    def vmap(info, dims, x):
        return torch.tanh(x), dims[0]


class Straight(torch.autograd.Function):
    """Rounds; the gradient of two arguments is not what was computed."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, step):
        return torch.round(x / step) * step

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx, grad):
        return grad * 0.5, -(grad * ctx.saved_tensors[0])


def alibi(s, b, h, q, kv):
    return s + (kv - q) * torch.exp2(-((h + 1) * 8.0 / HEADS))


def latent(dot):
    return lambda queries, keys: lambda s, b, h, q, kv: s + 0.5 * dot(queries[b, h, q], keys[b, h // HEADS, kv])


def bucketed(bias):
    """T5's relative places: exact ones near, logarithmic ones afar."""

    def mod(s, b, h, q, kv):
        distance = kv - q
        ahead = torch.where(distance > 0, 8, 0)
        near = distance.abs()
        far = 4 + (torch.log(near.clamp(min=1) / 4) / math.log(16) * 4).to(torch.int64)
        return s + bias[ahead + torch.where(near < 4, near, torch.clamp(far, max=7)), h]

    return mod


def of_bits(s, b, h, q, kv):
    return s + torch.sign(q - kv) * torch.floor(s * 4) / 8 + ((q << 2) >> 3 & 3) * 0.1 - torch.where(torch.isnan(s), 1.0, 0.25)


def of_rest(s, b, h, q, kv):
    return s + torch.remainder(s, 0.75) + torch.fmod(s, 0.3) * 0.5 + torch.div(q - kv, 3, rounding_mode="trunc") * 0.05 + (s.detach() // 0.7) * 0.1


def held(s, b, h, q, kv):
    with torch.no_grad():
        gate = torch.sigmoid(s)
    return s * gate + torch.tanh(s).detach()


def windowed_bias(bias):
    """Rows of a captured tensor that are looked at in pieces; negative places count from the end."""
    return lambda s, b, h, q, kv: s + bias[h][:, 3].mean() + bias[h, -1][1:3].sum() * 0.1 + bias.select(0, 1)[q % 5].amax() + bias[(q - kv) % 4 - 4, 0, 0]


def normal(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(4))


SCORES = {  # name: of what it captures a score mod, what it captures
    "alibi": (lambda: alibi,),
    "slopes": (lambda slopes: lambda s, b, h, q, kv: s + slopes[h] * (kv - q).abs(), normal(HEADS) / 16),
    "softcap": (lambda: lambda s, b, h, q, kv: 3 * torch.tanh(s / 3),),
    "approximate softcap": (lambda: lambda s, b, h, q, kv: 3 * ApproximateTanh.apply(s / 3),),
    "function of two": (lambda step: lambda s, b, h, q, kv: s + Straight.apply(s, step[h].exp()), normal(HEADS)),
    "latent by dot": (latent(torch.dot), normal(BATCH, HEADS, LENGTH, 8), normal(BATCH, 1, LENGTH, 8)),
    "latent by sum": (latent(lambda a, b: (a * b).sum(-1)), normal(BATCH, HEADS, LENGTH, 8), normal(BATCH, 1, LENGTH, 8)),
    "latent by matmul": (latent(torch.matmul), normal(BATCH, HEADS, LENGTH, 8), normal(BATCH, 1, LENGTH, 8)),
    "latent by einsum of few": (latent(lambda a, b: a[0] * b[-1] + a[1:3] @ b[1:3]), normal(BATCH, HEADS, LENGTH, 4), normal(BATCH, 1, LENGTH, 4)),
    "relative": (lambda: lambda s, b, h, q, kv: s + (q - kv) * 0.05,),
    "relative table": (lambda t: lambda s, b, h, q, kv: s + t[q - kv + LENGTH - 1], normal(2 * LENGTH - 1)),
    "relative table from its end": (lambda t: lambda s, b, h, q, kv: s + t[q - kv], normal(2 * LENGTH)),
    "buckets": (bucketed, normal(16, HEADS)),
    "bias": (lambda t: lambda s, b, h, q, kv: s + t[b, h, q, kv], normal(BATCH, HEADS, LENGTH, LENGTH)),
    "bias by rows": (lambda t: lambda s, b, h, q, kv: s + t[h][q][kv], normal(HEADS, LENGTH, LENGTH)),
    "one number": (lambda t, u: lambda s, b, h, q, kv: s * t + u[0], normal(()), normal(1)),
    "bits": (lambda: of_bits,),
    "remainders": (lambda: of_rest,),
    "held": (lambda: held,),
    "pieces": (windowed_bias, normal(HEADS, 9, 8)),
    "causal by infinity": (lambda: lambda s, b, h, q, kv: torch.where(q >= kv, s, -float("inf")),),
    "clamped": (lambda: lambda s, b, h, q, kv: torch.clamp(s, -1, max=1.5) + s.clamp(min=0) + torch.nn.functional.gelu(s, approximate="tanh"),),
}


class ReadsByIndex(TorchFunctionMode):
    """t[i] of a batched i is a gather, which vmap and gradients know."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.__getitem__:
            items = args[1] if isinstance(args[1], tuple) else (args[1],)
            if all(isinstance(i, (int, torch.Tensor)) for i in items):
                return torch.ops.aten.index(args[0], [torch.as_tensor(i) for i in items])
        return function(*args, **(kwargs or {}))


def numbers(mod, scores):
    """A mod's numbers on the CPU: PyTorch's vmap over batches, heads, queries and keys."""
    places = [torch.arange(n) for n in scores.shape]
    for dim in (3, 2, 1, 0):
        mod = torch.vmap(mod, in_dims=(0, *(0 if d == dim else None for d in range(4))))
    with ReadsByIndex():
        return mod(scores, *places)


def check(score, score_reads, mask, mask_reads, compiled=None):
    torch._dynamo.reset()
    host = [torch.randn(BATCH, HEADS, LENGTH, SIZE, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    device = [t.detach().float().to("clutch").requires_grad_() for t in host]
    reads_host = [t.double().requires_grad_() for t in score_reads]
    reads = [t.to("clutch").requires_grad_() for t in score_reads]
    attention = flex.flex_attention if compiled is None else torch.compile(flex.flex_attention, **compiled)
    grad = torch.randn_like(host[0])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*all scores are kept in memory.*")
        block_mask = None
        if mask is not None:
            on_device = mask(*(t.to("clutch") for t in mask_reads))
            block_mask = flex.create_block_mask(on_device, BATCH, HEADS, LENGTH, LENGTH, device="clutch", BLOCK_SIZE=16)
        out, lse = attention(*device, score_mod=score(*reads) if score else None, block_mask=block_mask, return_lse=True)
        (out * grad.float().to("clutch")).sum().add(lse.clamp(min=-1e3).sum()).backward()
    scores = host[0] @ host[1].mT / math.sqrt(SIZE)
    if score is not None:
        scores = numbers(score(*reads_host), scores)
    if mask is not None:
        allowed = flex.create_mask(mask(*mask_reads), BATCH, HEADS, LENGTH, LENGTH, device="cpu")
        assert 0 < allowed.sum() < allowed.numel()
        scores = scores.masked_fill(~allowed, -torch.inf)
    wanted = torch._safe_softmax(scores, -1) @ host[2]
    wanted_lse = torch.logsumexp(scores, -1)
    ((wanted * grad).sum() + wanted_lse.clamp(min=-1e3).sum()).backward()
    torch.testing.assert_close(out.cpu().double(), wanted, rtol=0, atol=1e-5)
    torch.testing.assert_close(lse.cpu().double(), wanted_lse, rtol=1e-5, atol=1e-5)
    for a, b in zip((*device, *reads), (*host, *reads_host)):
        torch.testing.assert_close(a.grad.cpu().double(), b.grad, rtol=1e-4, atol=5e-5 * max(1, b.grad.abs().max().item()))


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    mask, *captured = MASKS[name]
    check(None, [], mask, captured)


@pytest.mark.parametrize("name", SCORES)
def test_score_mods(name):
    score, *captured = SCORES[name]
    check(score, captured, None if name == "causal by infinity" else lambda: causal, [])


@pytest.mark.parametrize(
    "score, mask", [("latent by dot", "flamingo"), ("approximate softcap", "morton neighbours"), ("buckets", "documents"), ("pieces", "sink")])
def test_as_aten(score, mask):
    """The same by graphs of ATen, whose constants are tensors of the graph."""
    (score, *score_reads), (mask, *mask_reads) = SCORES[score], MASKS[mask]
    check(score, score_reads, mask, mask_reads, dict(backend="aot_eager"))

# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own databases of operators, modules and optimizers on `clutch` and compares with its CPU.

  databases.py [ops|modules|optimizers ...] [--fallback on|off] [--dtype float32] [--only NAME,...] [--slice K/N] [--samples 2] [--forms] [--out FILE.jsonl]

--forms: ops besides on tensors with gaps and by out=, into tensors that fit, have gaps or are empty.
--update [PAGE]: runs nothing, and writes the outcomes of --out into the table of docs/torch.md.

Each entry has one of these outcomes:
  pass      equal within the bounds below, forward and gradients
  missing   it needs the CPU, which --fallback off forbids
  wrong     other numbers, shapes, dtypes or device
  error     an exception where the CPU has none
  crash     the process died
  skip      the entry has no samples of this dtype
Entries of expected_failures.txt are counted apart; the exit status is 1 for others that neither pass, nor are missing, nor skipped.
A child process does the work and is started again behind an entry that kills it.
"""
import argparse
import collections
import itertools
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import outcomes
import results_page

HERE = Path(__file__).parent
BAD = ("wrong", "error", "crash", "late")


def options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("databases", nargs="*", default="ops", choices=["ops", "modules", "optimizers"])
    parser.add_argument("--fallback", choices=["on", "off"], default="on")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", default="", help="names, joined by commas")
    parser.add_argument("--slice", default="0/1", help="K/N: every N-th entry from the K-th on")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--forms", action="store_true", help="ops with strided inputs and out=, too")
    parser.add_argument("--seconds", type=int, default=60, help="for one entry")
    parser.add_argument("--out", default="", help="one line of JSON an entry; entries that are there are not run again")
    parser.add_argument("--update", nargs="?", const=str(results_page.TORCH), metavar="PAGE", help="writes the page's table from --out")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    asked.databases = ["ops"] if asked.databases == "ops" else asked.databases  # older versions of argparse refuse a list as default
    return asked


class Unusable(Exception):
    """The CPU itself refuses the sample."""


def on_the_cpu(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as error:
        raise Unusable(f"the CPU refuses: {error}") from error


def expected_failures(*of):
    """{(database, entry): reason}; a line is `database entry [on|off] [dtype] [forms]: reason`, and holds where all that it names is in `of`."""
    expected = {}
    for line in (HERE / "expected_failures.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        head, reason = line.split(": ", 1)
        database, entry, *where = head.split()
        if all(w in of for w in where):
            expected[database, entry] = reason
    return expected


# ---- what the child does

def mapped(f, value, devices=True):
    """`value` with f() of its tensors, and the CPU's name as the device's."""
    import torch

    if isinstance(value, torch.Tensor):
        return f(value)
    if isinstance(value, (list, tuple)):
        parts = [mapped(f, part, devices) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: mapped(f, part, devices) for key, part in value.items()}
    if devices and isinstance(value, torch.device) and value.type == "cpu":
        return torch.device("clutch")
    if devices and isinstance(value, str) and value == "cpu":
        return "clutch"
    return value


def to_device(tensor):
    import torch

    plain = tensor.detach()
    if plain.layout == torch.strided and plain.storage_offset() + plain.numel() < plain.untyped_storage().nbytes() // plain.itemsize < 1 << 20:
        # A view of something larger stays one: ops that look behind it find the same.
        whole = torch.as_strided(plain, (plain.untyped_storage().nbytes() // plain.itemsize,), (1,), 0)
        moved = whole.to("clutch").as_strided(plain.size(), plain.stride(), plain.storage_offset())
    else:
        moved = plain.to("clutch")
    return moved.requires_grad_() if tensor.requires_grad else moved


def to_host(tensor):
    return tensor.detach().cpu()


def bounds(dtype, gradient=False):
    import torch

    narrow = dtype in (torch.half, torch.bfloat16)
    if dtype == torch.float64 or dtype == torch.complex128:
        return {"rtol": 1e-7, "atol": 1e-8}
    rtol, atol = (2e-2, 2e-2) if narrow else (1e-4, 1e-5)
    return {"rtol": rtol * (5 if gradient else 1), "atol": atol * (5 if gradient else 1)}


# Results that are random or not defined: their shapes, dtypes and devices are compared, and the distributions of random ones.
UNDEFINED = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"}
RANDOM = {"bernoulli", "multinomial", "normal", "rand_like", "randn_like", "randint_like", "randint", "randn", "uniform", "cauchy", "exponential", "geometric",
          "log_normal", "randperm", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
          "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "pca_lowrank", "svd_lowrank", "nn.functional.fractional_max_pool2d",
          "nn.functional.fractional_max_pool3d"}


def same_kind(got, wanted):
    import torch

    if isinstance(wanted, torch.Tensor):
        assert isinstance(got, torch.Tensor) and got.shape == wanted.shape and got.dtype == wanted.dtype, f"{got.shape} {got.dtype} for {wanted.shape} {wanted.dtype}"
    elif isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted), f"{len(got)} results for {len(wanted)}"
        for a, b in zip(got, wanted):
            same_kind(a, b)


# They draw a matrix, but what they give is the input's, up to signs.
OF_A_DRAWN_MATRIX = {"pca_lowrank", "svd_lowrank"}
WITHOUT_MOMENTS = {"cauchy"}
INDEPENDENT = {"bernoulli", "normal", "rand_like", "randn_like", "randint_like", "randint", "randn", "uniform", "cauchy", "exponential", "geometric", "log_normal",
               "nn.functional.dropout", "nn.functional.rrelu"}
LEAST_NUMBERS, LEAST_DRAWS = 10_000, 200


def floats_of(result):
    import torch

    flat = [t.detach().cpu() for t in (result if isinstance(result, (list, tuple)) else [result]) if isinstance(t, torch.Tensor)]
    return torch.cat([t.double().flatten() for t in flat if not t.is_complex()] or [torch.zeros(0, dtype=torch.float64)])


def same_distribution(name, got, wanted, draw):
    """`draw`: a function per side that gives another result. Compares at least 10,000 numbers of each, of independent ones up to 40,000: mean and variance of each
    place, and of all numbers together how far their two distributions are apart (Kolmogorov and Smirnov)."""
    import torch

    first = [floats_of(x) for x in (got, wanted)]
    count = first[0].numel()
    if count == 0 or name in OF_A_DRAWN_MATRIX:
        assert all(torch.isfinite(x).all() for x in first), "random numbers are not finite"
        return
    draws = min(LEAST_NUMBERS, max(LEAST_DRAWS, -(-LEAST_NUMBERS * (4 if name in INDEPENDENT else 1) // count)))
    a, b = (torch.stack([floats_of(once()) for _ in range(draws)]) for once in draw)
    assert a.shape == b.shape, f"{a.shape} numbers for {b.shape}"
    assert torch.equal(a.isfinite().all(), b.isfinite().all()), "random numbers are not finite"
    if not b.isfinite().all():
        return
    assert (a[0] != a).any() == (b[0] != b).any(), "the same numbers at each call, or the CPU has them"
    sizes = b.abs().amax(0)
    a, b = (x / torch.where(sizes > 0, sizes, 1.0) for x in (a, b))
    if name not in WITHOUT_MOMENTS:
        off = (a.mean(0) - b.mean(0)).abs() - 6 * ((a.var(0) + b.var(0)) / draws).sqrt() - 1e-4
        assert off.max() <= 0, f"mean {a.mean(0)[off.argmax()].item()} for {b.mean(0)[off.argmax()].item()} of {draws} draws, by the largest"
        # The deviation of a sample's variance, by its fourth moment.
        fourth = [((x - x.mean(0)) ** 4).mean(0) for x in (a, b)]
        off = (a.var(0) - b.var(0)).abs() - 8 * ((fourth[0] + fourth[1]) / draws).sqrt() - 1e-4 * b.var(0)
        assert off.max() <= 1e-12, f"variance {a.var(0)[off.argmax()].item()} for {b.var(0)[off.argmax()].item()} of {draws} draws, by the largest"
        if name in INDEPENDENT:
            off = (a.mean() - b.mean()).abs() - 5 * ((a.var(0) + b.var(0)).mean() / a.numel()).sqrt()
            assert off <= 1e-3, f"mean {a.mean().item()} for {b.mean().item()} of {a.numel()} numbers, by the largest"
    places = torch.cat([a.flatten(), b.flatten()])
    if (b[0] != b).any():
        ours, others = (torch.searchsorted(x.flatten().sort().values, places, right=True) / x.numel() for x in (a, b))
        apart, most = (ours - others).abs().max().item(), 2.3 * (2 / (a.numel() if name in INDEPENDENT else draws)) ** 0.5
        assert apart <= most, f"distributions are {apart:.3f} apart, and may be {most:.3f}, of {draws} draws of {count} numbers"


def unseeded(f, *args, **kwargs):
    """f() without the seed that PyTorch's database sets before each call."""
    from unittest import mock

    from torch.testing._internal import common_methods_invocations

    with mock.patch.object(common_methods_invocations, "wrapper_set_seed", lambda op, *args, **kwargs: op(*args, **kwargs)):
        return f(*args, **kwargs)


def check_op(op, sample, dtype, allowed):
    import torch

    clutch = torch.clutch
    args = (sample.input, sample.args, sample.kwargs)
    torch.manual_seed(0)
    on_device = mapped(to_device, list(args))
    if op.name == "tensor_split":  # its places are asked for on the CPU, on every device
        on_device[1] = args[1]
    wanted = on_the_cpu(op.op, args[0], *args[1], **args[2])
    clutch.reset_fallbacks()
    with clutch.forbid_fallbacks(not allowed):
        got = op.op(on_device[0], *on_device[1], **on_device[2])
        used = set(clutch.fallbacks())
    flat = [t for t in (got if isinstance(got, (tuple, list)) else [got]) if isinstance(t, torch.Tensor)]
    assert all(t.device.type == "clutch" for t in flat) or (not flat) or not any(t.device.type == "cpu" for t in mapped_tensors(wanted)) or op.name in ("item", "to"), \
        "a result is not on the device"
    same_kind(got, wanted)
    if op.name in UNDEFINED:
        return used
    if op.name in RANDOM or (op.name == "nn.functional.scaled_dot_product_attention" and sample.kwargs.get("dropout_p", 0) > 0) or \
            (op.name == "nn.functional.multi_head_attention_forward" and sample.args[9] > 0 and sample.kwargs.get("training", True)):
        with clutch.forbid_fallbacks(not allowed):
            same_distribution(op.name, got, wanted, [lambda: unseeded(op.op, on_device[0], *on_device[1], **on_device[2]),
                                                     lambda: unseeded(op.op, args[0], *args[1], **args[2])])
        return used
    processed = sample.output_process_fn_grad if op.name.startswith("linalg.") or op.name in ("svd", "symeig", "qr") else (lambda x: x)
    torch.testing.assert_close(mapped(to_host, processed(mapped(to_host, got))), mapped(to_host, processed(mapped(to_host, wanted))), equal_nan=True,
                               check_stride=False, **bounds(dtype))
    if not op.supports_autograd or not (dtype.is_floating_point or dtype.is_complex):
        return used
    outs = []
    for result in (wanted, got):
        result = sample.output_process_fn_grad(result)
        outs.append([t for t in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(t, torch.Tensor) and t.requires_grad])
    if not outs[0]:
        return used
    leaves = [[], []]
    for k, side in enumerate((list(args), on_device)):
        mapped(lambda t, k=k: leaves[k].append(t) if t.requires_grad else None, side)
    grads = [torch.ones_like(t) for t in outs[0]]
    of_host = on_the_cpu(torch.autograd.grad, outs[0], leaves[0], grads, allow_unused=True)
    clutch.reset_fallbacks()
    with clutch.forbid_fallbacks(not allowed):
        of_device = torch.autograd.grad(outs[1], leaves[1], [g.to("clutch") for g in grads], allow_unused=True)
        used |= set(clutch.fallbacks())
    for a, b in zip(of_device, of_host):
        if b is not None and b.layout == torch.strided:
            torch.testing.assert_close(a.cpu(), b, equal_nan=True, check_stride=False, **bounds(dtype, gradient=True))
    return used


def with_gaps(tensor):
    """A copy that leaves out every second element of its memory, and all of the memory."""
    import torch

    whole = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)
    whole[..., 0] = tensor
    return whole


def check_out(op, sample, dtype, allowed, kind):
    """The op by out=: the CPU's result or an exception of the CPU's type, in the given tensors and nowhere else."""
    import torch

    clutch = torch.clutch
    host_args = mapped(lambda t: t.detach(), [sample.input, list(sample.args), sample.kwargs], devices=False)
    device_args = mapped(to_device, host_args)
    plain = on_the_cpu(op.op, host_args[0], *host_args[1], **host_args[2])
    results = list(plain) if isinstance(plain, (tuple, list)) else [plain]
    if not results or not all(isinstance(t, torch.Tensor) and t.layout == torch.strided and not t.is_quantized for t in results):
        return set()

    def outs(device):
        fill = [torch.ones_like(t, memory_format=torch.contiguous_format) for t in results]
        if kind == "empty":
            made = [torch.empty(0, dtype=t.dtype, device=device) for t in fill]
            return made, made
        if kind == "fits":
            made = [t.to(device) for t in fill]
            return made, made
        whole = [with_gaps(t).to(device) for t in fill]
        return [t[..., 0] for t in whole], whole

    (of_host, whole_host), (of_device, whole_device) = outs("cpu"), outs("clutch")
    as_given = (lambda made: tuple(made)) if isinstance(plain, (tuple, list)) else (lambda made: made[0])
    error = None
    try:
        op.op(host_args[0], *host_args[1], **host_args[2], out=as_given(of_host))
    except Exception as refused:
        error = refused
    clutch.reset_fallbacks()
    try:
        with clutch.forbid_fallbacks(not allowed):
            returned = op.op(device_args[0], *device_args[1], **device_args[2], out=as_given(of_device))
            used = set(clutch.fallbacks())
    except NotImplementedError:
        raise
    except Exception as refused:
        if error is None:
            raise
        assert type(refused) is type(error), f"out= that {kind}: {type(refused).__name__} for {type(error).__name__}: {refused} for {error}"
        return set()
    assert error is None, f"out= that {kind}: no exception where the CPU has {error}"
    for given, back in zip(of_device, [] if returned is None else returned if isinstance(returned, (tuple, list)) else [returned]):
        assert back.data_ptr() == given.data_ptr(), f"out= that {kind}: another tensor is returned"
    torch.testing.assert_close([t.cpu() for t in whole_device], whole_host, equal_nan=True, check_stride=False, **bounds(dtype), msg=lambda m: f"out= that {kind}: {m}")
    return used


# Their results are of the memory behind the input, or may have other signs.
OF_THE_LAYOUT = {"as_strided", "as_strided_copy", "as_strided_scatter", "as_strided.partial_views"}
OF_ANY_SIGN = {"linalg.eigh", "linalg.svd", "svd", "linalg.eig", "linalg.qr", "qr"}


def check_forms(op, sample, dtype, allowed):
    import torch

    used = set()
    if op.name not in OF_THE_LAYOUT and all(t.layout == torch.strided for t in mapped_tensors([sample.input, list(sample.args), sample.kwargs])):
        used |= check_op(op, sample.noncontiguous(), dtype, allowed)
    if op.supports_out and op.name not in RANDOM | UNDEFINED | OF_ANY_SIGN:
        for kind in ("fits", "has gaps", "empty"):
            used |= check_out(op, sample, dtype, allowed, kind)
    return used


def mapped_tensors(value):
    found = []
    mapped(found.append, value)
    return found


def op_entries(dtype, forms=False):
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")

        def samples(op=op):
            if dtype not in op.supported_dtypes("cpu"):
                return []
            return op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and (dtype.is_floating_point or dtype.is_complex))

        def check(sample, allowed, op=op):
            used = check_op(op, sample, dtype, allowed)
            return used | check_forms(op, sample, dtype, allowed) if forms else used

        yield name, samples, check
    assert torch.clutch.is_available()


RANDOM_MODULES = {"FractionalMaxPool2d", "FractionalMaxPool3d"}


def with_leaves(value, leaves, written):
    """`value` with leaves for its tensors, which are collected in `leaves`. A module that writes to its input is given a copy: a leaf may not be written."""

    def leaf(tensor):
        leaves.append(tensor.detach().requires_grad_(tensor.requires_grad))
        return leaves[-1].clone() if written else leaves[-1]

    return mapped(leaf, value, devices=False)


def check_module(info, given, dtype, allowed, training):
    """Forward, gradients of parameters and inputs, and what a module keeps, such as a batch norm's averages."""
    import copy

    import torch

    clutch = torch.clutch
    torch.manual_seed(0)
    host = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs)
    host = host.to(dtype).train(training)
    plain = [list(given.forward_input.args), given.forward_input.kwargs]
    leaves, written = [[], []], getattr(host, "inplace", False)
    args, kwargs = with_leaves(mapped(lambda t: t.detach().clone().requires_grad_(t.requires_grad), plain, devices=False), leaves[0], written)
    moved = with_leaves(mapped(to_device, plain), leaves[1], written)
    lazy = isinstance(host, torch.nn.modules.lazy.LazyModuleMixin)
    device = None if lazy else copy.deepcopy(host).to("clutch")
    wanted = on_the_cpu(host, *args, **kwargs)
    if lazy:
        device = copy.deepcopy(host).to("clutch")  # the call gave it parameters
    clutch.reset_fallbacks()
    with clutch.forbid_fallbacks(not allowed):
        got = device(*moved[0], **moved[1])
        used = set(clutch.fallbacks())
    same_kind(got, wanted)
    if info.module_cls.__name__ in RANDOM_MODULES:
        with clutch.forbid_fallbacks(not allowed):
            same_distribution(info.name, got, wanted, [lambda: device(*moved[0], **moved[1]), lambda: host(*args, **kwargs)])
        return used
    near = bounds(dtype) | ({"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {})
    torch.testing.assert_close(mapped(to_host, got), mapped(to_host, wanted), equal_nan=True, **near)
    if not lazy:
        for (name, a), b in zip(device.named_buffers(), host.buffers()):
            torch.testing.assert_close(a.cpu(), b, equal_nan=True, msg=lambda m, name=name: f"{name}: {m}", **near)
    outs = [[t for t in mapped_tensors(r) if t.requires_grad] for r in (wanted, got)]
    if not outs[0]:
        return used
    on_the_cpu(sum(t.sum() for t in outs[0]).backward)
    clutch.reset_fallbacks()
    with clutch.forbid_fallbacks(not allowed):
        sum(t.sum() for t in outs[1]).backward()
        used |= set(clutch.fallbacks())
    near = bounds(dtype, gradient=True) | ({"rtol": 5e-4, "atol": 5e-4} if dtype == torch.float32 else {})
    named = [*zip((name for name, _ in device.named_parameters()), device.parameters(), host.parameters()),
             *((f"input {i}", a, b) for i, (a, b) in enumerate(zip(leaves[1], leaves[0], strict=True)))]
    for name, a, b in named:
        assert (a.grad is None) == (b.grad is None), f"gradient of {name}"
        if b.grad is not None and b.grad.layout == torch.strided:
            torch.testing.assert_close(a.grad.cpu(), b.grad, equal_nan=True, msg=lambda m, name=name: f"gradient of {name}: {m}", **near)
    return used


def module_entries(dtype):
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        def samples(info=info):
            if not dtype.is_floating_point and dtype not in info.supported_dtypes("cpu"):
                return []  # of narrow floats PyTorch tests few modules, but most do them
            pairs = []
            for training in (False, True):
                inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
                pairs.append([(given, training) for given in inputs if given.forward_input is not None])
            return [[given for given in pair if given] for pair in itertools.zip_longest(*pairs)]

        def check(sample, allowed, info=info):
            return set().union(*(check_module(info, given, dtype, allowed, training) for given, training in sample))

        yield info.name, samples, check


def check_optimizer(info, given, dtype, allowed, mode):
    import torch

    clutch = torch.clutch
    kwargs = {k: v for k, v in given.kwargs.items() if k not in ("foreach", "fused")}
    kwargs["foreach"] = mode == "foreach"
    if mode == "fused":
        kwargs.pop("foreach")
        kwargs["fused"] = True
    used, results = set(), []
    for device in ("cpu", "clutch"):
        mine = {k: (v.clone().to(device) if isinstance(v, torch.Tensor) and (kwargs.get("fused") or kwargs.get("capturable")) else v) for k, v in kwargs.items()}
        if device == "cpu":
            mine = {k: v for k, v in mine.items() if k not in ("capturable", "fused")} | {"foreach": mode == "foreach" and dtype.is_complex}
            # maximize with weight_decay: PyTorch's foreach form and its loop differ where numbers are complex, on each device.
        torch.manual_seed(0)
        params = [torch.nn.Parameter(torch.randn(shape, dtype=dtype).to(device)) for shape in ((3, 4), (5,), (2, 3))]
        optimizer = info.optim_cls(params, **mine)
        clutch.reset_fallbacks()
        with clutch.forbid_fallbacks(device == "clutch" and not allowed):
            for step in range(3):
                for p in params:
                    p.grad = torch.full_like(p, 0.1 * (step + 1)) * p.detach()
                optimizer.step(*[lambda: sum((p.abs()**2).sum() for p in params)][:info.step_requires_closure])
            if device == "clutch":
                used = set(clutch.fallbacks())
        results.append([p.detach().cpu() for p in params])
    torch.testing.assert_close(results[1], results[0], **bounds(dtype))
    return used


def optimizer_entries(dtype):
    from torch.testing._internal.common_optimizers import optim_db

    for info in optim_db:
        for mode in ("forloop", "foreach", "fused"):
            if mode not in info.supported_impls:
                continue
            for i, given in enumerate(info.optim_inputs_func(device="clutch")):
                if "differentiable" in given.kwargs and mode != "forloop":
                    continue
                name = f"{info.optim_cls.__name__}.{mode}.{i}"
                usable = dtype.is_floating_point or (dtype.is_complex and info.supports_complex and mode != "fused")
                yield name, lambda given=given, usable=usable: [given][:usable], \
                    lambda g, allowed, info=info, mode=mode: check_optimizer(info, g, dtype, allowed, mode)


ENTRIES = {"ops": op_entries, "modules": module_entries, "optimizers": optimizer_entries}


def run_entry(samples, check, allowed, asked):
    outcome, why, used, passed = "skip", "", set(), 0
    signal.alarm(asked.seconds)
    try:
        for i, sample in enumerate(samples()):
            if i >= asked.samples:
                break
            if outcome == "skip":
                outcome, why = "pass", ""
            try:
                used |= check(sample, allowed)
                passed += 1
            except Unusable as error:
                if outcome == "pass" and passed == 0:
                    outcome, why = "skip", str(error)
            except NotImplementedError as error:
                if "would run on the CPU" in str(error):
                    outcome, why = ("missing", str(error)) if outcome == "pass" else (outcome, why)
                else:
                    outcome, why = "error", str(error)
            except AssertionError as error:
                outcome, why = "wrong", str(error)
            except Exception as error:
                if outcome != "wrong":
                    outcome, why = "error", f"{type(error).__name__}: {error}"
    except outcomes.Late:
        outcome, why = "late", f"more than {asked.seconds} s"
    except Exception as error:
        outcome, why = "skip", f"samples: {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return {"outcome": outcome, "passed": passed, "cpu": sorted(used), "why": outcomes.short(why)}


def child(asked, done):
    import torch
    import torch_clutch  # noqa: F401

    warnings.filterwarnings("ignore")
    outcomes.limit_time()
    dtype = getattr(torch, asked.dtype)
    only = set(asked.only.split(",")) if asked.only else None
    first, step = map(int, asked.slice.split("/"))
    with open(asked.out, "a") as out:
        for database in asked.databases:
            for i, (name, samples, check) in enumerate(ENTRIES[database](dtype, **({"forms": True} if asked.forms and database == "ops" else {}))):
                if i % step != first or (only and name not in only and name.split(".")[0] not in only) or (database, name) in done:
                    continue
                head = {"database": database, "entry": name} | results_page.what(asked)
                outcomes.begin(out, head)
                result = head | run_entry(samples, check, asked.fallback == "on", asked)
                outcomes.end(out, result)
                if not asked.quiet:
                    print(f"{database} {name}: {result['outcome']} {result['why'][:110]}", flush=True)


# ---- what the parent does

def main(arguments=None):
    asked = options(arguments)
    if asked.child:
        return child(asked, outcomes.read(asked.out, "database", "entry"))
    own = not asked.out
    if asked.update:
        return results_page.databases(asked.update, asked.out)
    if own:
        import tempfile

        asked.out = tempfile.mkstemp(suffix=".jsonl")[1]
    command = [sys.executable, __file__, *asked.databases, "--child", "--out", asked.out]
    for name in ("fallback", "dtype", "only", "slice", "samples", "seconds"):
        command += [f"--{name}", str(getattr(asked, name))]
    command += [f"--{flag}" for flag in ("quiet", "forms") if getattr(asked, flag)]
    for _ in range(50):
        if subprocess.run(command).returncode == 0:
            break
    results = outcomes.read(asked.out, "database", "entry")
    expected = expected_failures(asked.fallback, asked.dtype, "forms" if asked.forms else "")
    unexpected = 0
    for database in asked.databases:
        mine = {entry: r for (of, entry), r in results.items() if of == database}
        counts = collections.Counter(r["outcome"] for r in mine.values())
        native = sum(r["outcome"] == "pass" and not r["cpu"] for r in mine.values())
        print(f"{database} {asked.dtype} fallback {asked.fallback}: {len(mine)} entries, " + ", ".join(f"{n} {k}" for k, n in counts.most_common()) +
              f"; {native} pass without the CPU")
        for entry, r in mine.items():
            if r["outcome"] in BAD:
                reason = expected.get((database, entry))
                unexpected += reason is None
                print(f"  {r['outcome']} {entry}: {'expected, ' + reason if reason else r['why']}")
    if own:
        os.unlink(asked.out)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())

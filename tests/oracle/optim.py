# SPDX-License-Identifier: Apache-2.0
"""Optimizers, clipping, loss scales, learning rates."""

import math
import os
import tempfile

import numpy as np
import safetensors.torch
import torch

from common import DTYPES, EPS, NAMES, case, compute_name

OPTIM = "clutch/ops/optim.hpp"


def options_of(c, which):
    o = {"lr": c.pick([1e-3, 1e-2, 0.3]), "weight_decay": c.pick([0.0, 0.0, 0.01, 0.1]), "maximize": c.chance(0.25)}
    if which == "SGD":
        o.update(momentum=c.pick([0.0, 0.9, 0.5]), dampening=c.pick([0.0, 0.1]))
        if o["momentum"] and not o["dampening"]:
            o["nesterov"] = c.chance(0.5)
    elif which in ("Adam", "AdamW"):
        o.update(beta1=c.pick([0.9, 0.3]), beta2=c.pick([0.999, 0.95]), eps=c.pick([1e-8, 1e-6]), amsgrad=c.chance(0.3))
        if which == "Adam":
            o["decoupled_weight_decay"] = c.chance(0.3)
    elif which == "Adagrad":
        o.update(lr_decay=c.pick([0.0, 0.01]), initial_accumulator_value=c.pick([0.0, 0.1]), eps=1e-10)
    else:
        o.update(alpha=c.pick([0.99, 0.9]), momentum=c.pick([0.0, 0.9]), centered=c.chance(0.3), eps=1e-8)
    return o


def torch_optimizer(which, params, o, **more):
    kinds = {"SGD": torch.optim.SGD, "Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW, "Adagrad": torch.optim.Adagrad, "RMSprop": torch.optim.RMSprop}
    given = dict(o)
    if "beta1" in given:
        given["betas"] = (given.pop("beta1"), given.pop("beta2"))
    return kinds[which](params, **given, **more)


STATES = {"momentum_buffer", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "sum", "square_avg", "grad_avg"}


def run_torch(which, params, grads, o, dtype, numerics="torch_cpu", second_lr=None, later_lr=None, **more):
    leaves = [p.to(dtype).clone().requires_grad_() for p in params]
    every = leaves
    ascends = which == "SGD" and o["maximize"] and numerics in ("automatic", "source", "f32") if "maximize" in o else False
    optimizer = torch_optimizer(which, every[:-1] if second_lr else every, dict(o, maximize=False) if ascends else o, **more)
    if second_lr:
        optimizer.add_param_group({"params": every[-1:], "lr": second_lr})
    # PyTorch's CUDA kernel does not negate gradients: it adds lr times what weight decay and momentum made of them.
    sign = -1 if ascends else 1
    for group in optimizer.param_groups:
        group["lr"] *= sign
    for step in grads:
        for leaf, g in zip(leaves, step):
            leaf.grad = None if g is None else g.to(dtype).clone()
        optimizer.step()
        if later_lr:
            optimizer.param_groups[0]["lr"] = later_lr * sign
    return leaves, optimizer


def parameters(c, name, kind="normal"):
    return [c.tensor(s, name, kind, strides=False) for s in [c.shape(0, 2, elements=600) for _ in range(c.integer(1, 4))]]


@case(100, covers=["optimizer"])
def steps(c):
    """Several steps against PyTorch's in f64, within the stated distance for each step, summed."""
    which = c.pick(["SGD", "Adam", "AdamW", "Adagrad", "RMSprop"])
    name = c.pick(["f32", "f32"] + (["f64"] if c.traits["fp64"] else []))
    params = parameters(c, name)
    count = c.integer(1, 5)
    grads = [[None if c.chance(0.08) else c.tensor(p.shape, name, "normal", strides=False) for p in params] for _ in range(count)]
    o = options_of(c, which)
    numerics = c.pick([n for n in ("automatic", "source", "torch_cpu", "f32", "composed") if n == "f32" or c.traits["fp64"] or n == "automatic"])
    if numerics == "f32" and name == "f64":
        numerics = "source"
    arguments = {f"grads{i}": g if any(t is not None for t in g) else [torch.zeros_like(p) for p in params] for i, g in enumerate(grads)}
    grads = [arguments[f"grads{i}"] for i in range(count)]
    path = os.path.join(tempfile.gettempdir(), f"oracle_state_{os.getpid()}.safetensors")
    if c.chance(0.3):
        arguments["path"] = path
    elif c.chance(0.3):
        arguments["by_state"] = 1
    rates = {}
    if len(params) > 1 and c.chance(0.3):
        rates["second_lr"] = 0.02
    if c.chance(0.3) and "path" not in arguments and "by_state" not in arguments:
        rates["later_lr"] = 0.05
    got = c.call("optimizer", optimizer=which, params=params, steps=count, numerics=numerics, **arguments, **o, **rates)
    if os.path.exists(path):
        os.remove(path)
    rounded = dict(o)
    leaves, optimizer = run_torch(which, params, grads, rounded, torch.float64, numerics, foreach=False, **rates)
    eps = EPS[name]
    names = got.values["state"]
    states = {n: got[len(params) + i] for i, n in enumerate(names)}
    # Scalars rounded to f32 move a step by their own relative error; 1 - beta2 is the worst of them.
    c1 = 16.0
    if which in ("Adam", "AdamW"):
        c1 = 64 / (1 - o["beta2"]) / 16 + 64
    if which == "RMSprop":
        c1 = 64 / (1 - o["alpha"])
    what = f"{which}, {numerics}, {name}, {o}: "
    for i, (p, leaf) in enumerate(zip(params, leaves)):
        reference = leaf.detach()
        state = optimizer.state.get(leaf, {})
        moved = (p.double() - reference).abs() + max(o["lr"], 0.05 if rates else 0.0) * (1 + reference.abs() * o["weight_decay"])
        extra = 0.0
        if which == "RMSprop" and o["centered"] and "square_avg" in state:
            s, g = state["square_avg"], state["grad_avg"]
            worst = 16 * (s + g * g) / (s - g * g).abs().clamp(min=1e-30)
            extra = eps * worst * 40 * moved
            moved = moved * 4
        # A second moment near 0 (by amsgrad, momentum from tiny gradients) multiplies errors of gradients relative to themselves only.
        tolerance = count * eps * (16 * (p.double().abs() + moved) + c1 * moved) + extra
        c.near(got[i], reference, tolerance, OPTIM + ", Accuracy", f"parameter {i}, " + what)
        for n in STATES & set(state):
            if not torch.is_tensor(state[n]):
                continue
            mine = states.get(f"{i}.{n}")
            c.true(mine is not None, f"the state has no {i}.{n}: {names}", OPTIM + ", State")
            wanted = state[n]
            scale = sum((g[i].double().abs() if g[i] is not None else 0) for g in grads) + p.double().abs() * o["weight_decay"] * 2 + wanted.abs() + 1e-3
            if n in ("exp_avg_sq", "max_exp_avg_sq", "sum", "square_avg"):
                scale = scale * scale
            if which == "RMSprop" and n == "momentum_buffer":
                # It holds what the parameter moves by, without the rate.
                scale = (extra / max(o["lr"], 1e-9) / max(eps, 1e-30) if torch.is_tensor(extra) else 0) + count * 16 * c1 * moved / o["lr"]
            c.near(mine, wanted, eps * (40 * count + (c1 if which != "RMSprop" else 1600)) * scale, OPTIM + ", State", f"{i}.{n}, " + what)
    for n, t in states.items():
        if n.endswith(".step"):
            i = int(n.split(".")[0])
            done = sum(g[i] is not None for g in grads)
            c.true(float(t) == done, f"{n} is {float(t)} after {done} steps", OPTIM + ", State")


def binary_power(base, t):
    power = 1.0
    for bit in bin(t)[2:]:
        power = power * power * (base if bit == "1" else 1.0)
    return power


@case(60, covers=[], sharp=True)
def steps_with_torchs_bits(c):
    """Numerics::torch_cpu: PyTorch's fused CPU kernels, the formulas of their full vectors; elements of whole vectors are compared bit for bit."""
    which = c.pick(["SGD", "Adam", "AdamW", "Adagrad"])
    name = c.pick(["f32"] + (["f64"] if c.traits["fp64"] else []))
    if not c.traits["fp64"]:
        return c.true(True, "", OPTIM)
    if not torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"):
        return c.true(True, "", OPTIM)
    params = [c.tensor([16 * c.integer(1, 20)], name, "normal", strides=False) for _ in range(c.integer(1, 3))]
    count = c.integer(1, 4)
    grads = [[c.tensor(p.shape, name, "normal", strides=False) for p in params] for _ in range(count)]
    o = options_of(c, which)
    got = c.call("optimizer", optimizer=which, params=params, steps=count, numerics="torch_cpu", **{f"grads{i}": g for i, g in enumerate(grads)}, **o)
    leaves, optimizer = run_torch(which, params, grads, o, DTYPES[name], fused=True)
    # Powers of beta are made by binary powering, PyTorch's by pow: where they differ, by an ulp, so may the steps.
    same_powers = which not in ("Adam", "AdamW") or all(binary_power(b, t) == b**t for b in (o.get("beta1", 0.9), o.get("beta2", 0.999)) for t in range(1, count + 1))
    for i, leaf in enumerate(leaves):
        if not same_powers:
            c.near(got[i], leaf.detach().double(), 16 * EPS[name] * (leaf.detach().double().abs() + o["lr"]), OPTIM + ", Numerics: beta^t", f"{which}, {name}, {o}, parameter {i}: ")
            continue
        c.same(got[i], leaf.detach(), OPTIM + ", Numerics::torch_cpu: PyTorch's fused CPU kernels", f"{which}, {name}, {o}, parameter {i}: ")


@case(40, covers=[])
def steps_of_narrow_types(c):
    """f16 and bf16, states in f32, masters, Kahan's compensation: against f64 within the roundings of what is stored."""
    which = c.pick(["SGD", "Adam", "AdamW", "Adagrad", "RMSprop"])
    name = c.pick(["f32", "f16", "bf16"])
    params = [c.tensor([c.integer(1, 300)], name, "normal", strides=False) for _ in range(c.integer(1, 3))]
    o = options_of(c, which)
    o["centered"] = False
    if which != "RMSprop":
        o.pop("centered")
    grads = [[c.tensor(p.shape, name, "normal", strides=False) for p in params]]
    master = c.chance(0.4) and name != "f32"
    rounding = "nearest" if name != "bf16" or master else c.pick(["nearest", "stochastic", "kahan"])
    state_type = c.pick(["same", "f32", "bf16"]) if name != "f32" else "bf16"
    arguments = dict(state_type=state_type, master=master, rounding=rounding, seed=c.integer(0, 1000))
    got = c.call("optimizer", optimizer=which, params=params, steps=1, grads0=grads[0], **arguments, **o)
    leaves, optimizer = run_torch(which, params, grads, o, torch.float64, "automatic", foreach=False)
    names = got.values["state"]
    states = {n: got[len(params) + i] for i, n in enumerate(names)}
    kept = {"same": name, "f32": "f32", "bf16": "bf16"}[state_type]
    for i, leaf in enumerate(leaves):
        for n, wanted in optimizer.state.get(leaf, {}).items():
            if n not in STATES or not torch.is_tensor(wanted):
                continue
            mine = states[f"{i}.{n}"]
            c.alike(mine, wanted.shape, kept, OPTIM + ", StateType", f"{i}.{n} of {which}, {name}: ")
            # What gradients and weight decay give, in f32, rounded once to the state's dtype or, one code further, by chance.
            scale = grads[0][i].double().abs() + params[i].double().abs() * o["weight_decay"]
            scale = scale**2 if n in ("exp_avg_sq", "max_exp_avg_sq", "sum", "square_avg") else scale
            if which == "RMSprop" and n == "momentum_buffer":
                scale = wanted.abs()
            least = 2.0**-24 if kept == "f16" else 0.0
            if n == "sum":
                # The sums' initial value is kept in the state's dtype, too.
                least += abs(float(torch.tensor(o["initial_accumulator_value"], dtype=DTYPES[kept])) - o["initial_accumulator_value"])
            c.within(mine, wanted, 1e-4 * (scale + wanted.abs()) + (2 if rounding == "stochastic" else 1) * EPS[kept] * wanted.abs() * 1.001 + least, OPTIM + ", StateType", f"{i}.{n} of {which}, {name}, {arguments}: ")
    for i, (p, leaf) in enumerate(zip(params, leaves)):
        reference = leaf.detach()
        moved = (p.double() - reference).abs() + o["lr"]
        # Scalars of f16 and bf16 formulas may be rounded to these types (PyTorch's Adagrad), and its first sums to the state's: eps of the type on what moves.
        tolerance = 4e-5 * moved + 64 * EPS["f32"] * reference.abs() + (4 * max(EPS[name], EPS[kept]) * moved if which in ("Adagrad",) else 0)
        what = f"{which}, {name}, {arguments}, {o}: "
        if rounding == "stochastic":
            tolerance = tolerance + 2 * EPS[name] * reference.abs() + 1e-38
        if rounding == "kahan":
            total = got[i].double() + states[f"{i}.compensation"].double()
            c.within(total, reference, tolerance + (2.0**-16) * reference.abs(), OPTIM + ", Rounding::kahan", f"parameter {i} and its compensation, " + what)
        c.near(got[i], reference, tolerance, OPTIM + ", Accuracy", f"parameter {i}, " + what)
        if master:
            m = states[f"{i}.master"]
            c.alike(m, p.shape, torch.float32, OPTIM + ", Precision::master")
            c.within(m, reference, tolerance + EPS["f32"] * reference.abs(), OPTIM + ", Precision::master", f"master {i}, " + what)
            c.same(got[i], m.to(p.dtype), OPTIM + ", Precision::master: the parameter is their rounded copy", what)


@case(40, covers=["sgd_", "adam_", "adamw_", "adagrad_", "rmsprop_"])
def functional_steps(c):
    """The functions over lists of the caller's have the bits of the classes, with steps in one tensor or in one each."""
    which = c.pick(["SGD", "Adam", "AdamW", "Adagrad", "RMSprop"])
    name = c.pick(["f32", "f16", "bf16"] + (["f64"] if c.traits["fp64"] else []))
    params = [c.tensor([c.integer(1, 200)], name, "normal", strides=False) for _ in range(c.integer(1, 3))]
    grads = [c.tensor(p.shape, name, "normal", strides=False) for p in params]
    o = options_of(c, which)
    want = c.call("optimizer", optimizer=which, params=params, steps=1, grads0=grads, **o)
    fill = lambda value: [torch.full_like(p, value) for p in params]
    n = len(params)
    lists = {"SGD": {"momentum_buffers": fill(0.0) if o.get("momentum") else 0},
             "Adam": {"exp_avgs": fill(0.0), "exp_avg_sqs": fill(0.0), "max_exp_avg_sqs": fill(0.0) if o.get("amsgrad") else 0},
             "AdamW": {"exp_avgs": fill(0.0), "exp_avg_sqs": fill(0.0), "max_exp_avg_sqs": fill(0.0) if o.get("amsgrad") else 0},
             "Adagrad": {"sums": fill(o.get("initial_accumulator_value", 0.0))},
             "RMSprop": {"square_avgs": fill(0.0), "momentum_buffers": fill(0.0) if o.get("momentum") else 0, "grad_avgs": fill(0.0) if o.get("centered") else 0}}[which]
    function = {"SGD": "sgd_", "Adam": "adam_", "AdamW": "adamw_", "Adagrad": "adagrad_", "RMSprop": "rmsprop_"}[which]
    got = c.call(function, back=[f"params.{i}" for i in range(n)], params=params, grads=grads, steps=torch.ones(n), listed=c.chance(0.5), **lists, **o)
    for i in range(n):
        c.same(got.back[f"params.{i}"], want[i], OPTIM + f", {function}: all else as Optimizer", f"{which}, {name}, {o}, parameter {i}: ")
    leaves, _ = run_torch(which, params, [grads], o, torch.float64, "automatic", foreach=False)
    for i, leaf in enumerate(leaves):
        reference = leaf.detach()
        moved = (params[i].double() - reference).abs() + o["lr"]
        worst = 1.0 if not o.get("centered") else 1e4
        c.near(got.back[f"params.{i}"], reference, worst * 4e-5 * moved * (1 if name != "f64" else 1e-8) + 64 * EPS[compute_name(name)] * reference.abs()
               + (4 * EPS[name] * moved if name in ("f16", "bf16") else 0), OPTIM + ", Accuracy", f"{which}, {name}, {o}, parameter {i}: ")


@case(40, covers=["grad_norm", "grad_norms", "clip_grad_norm_"])
def clipping(c):
    name = c.floating()
    grads = [c.tensor(c.shape(0, 3, elements=3000), name, c.pick(["normal", "moderate"]), strides=False) for _ in range(c.integer(1, 5))]
    if sum(g.numel() for g in grads) == 0:
        grads.append(c.tensor([5], name, "normal", strides=False))
    special = c.chance(0.15)
    if special:
        target = max(grads, key=lambda g: g.numel())
        target.view(-1)[c.integer(0, target.numel() - 1)] = c.pick([math.inf, math.nan])
    max_norm = c.pick([0.5, 1.0, 1e3, 0.0])
    kind = c.pick(["two", "one", "inf"])
    p = {"two": 2.0, "one": 1.0, "inf": math.inf}[kind]
    flat = torch.cat([g.double().reshape(-1) for g in grads])
    scale = None
    if c.chance(0.3):
        scale = torch.tensor([float(2.0 ** c.integer(-3, 8))])
        flat = flat / scale.double()
    exact = torch.linalg.vector_norm(flat, p).reshape([])
    if kind == "inf" and bool(flat.isnan().any()):
        exact = torch.tensor(math.nan, dtype=torch.float64)
    got = c.call("grad_norm", grads=grads, max_norm=max_norm, norm_type=kind, grad_scale=scale)
    eps = EPS[compute_name(name)]
    tolerance = (256 + flat.numel() / 2**19) * eps * exact.abs() if kind != "inf" else 2 * eps * exact.abs()
    source = OPTIM + ", grad_norm, Accuracy"
    norm = got[0].reshape([])
    c.true(NAMES[norm.dtype] == compute_name(name), f"the norm is {norm.dtype}", source)
    c.within(norm, exact, torch.nan_to_num(tolerance, posinf=0.0), source, f"norm {kind} of {name}: ")
    factor = torch.clamp(max_norm / (exact + 1e-6), max=1.0)
    c.within(got[1].reshape([]), factor, torch.nan_to_num(4 * EPS["f32"] + factor.abs() * (300 + flat.numel() / 2**19) * EPS["f32"]), OPTIM + ": min(1, max_norm / (norm + 1e-6))", f"factor, {kind} of {name}: ")
    each = c.call("grad_norms", grads=grads, norm_type=kind, grad_scale=scale)[0]
    c.true(NAMES[each.dtype] == compute_name(name) and each.shape == (len(grads),), f"norms are {each.dtype} {list(each.shape)}", source)
    for i, g in enumerate(grads):
        wide = g.double() / (1 if scale is None else scale.double())
        mine = torch._foreach_norm([wide], p)[0] if g.numel() else torch.tensor(0.0, dtype=torch.float64)
        bound = ((256 + g.numel() / 2**19) if kind != "inf" else 2) * eps * mine.abs()
        c.within(each[i], mine, torch.nan_to_num(bound, posinf=0.0), OPTIM + ", grad_norms, Accuracy", f"norm {kind} of {name}, gradient {i}: ")
    if scale is not None:
        return
    clipped = c.call("clip_grad_norm_", back=[f"grads.{i}" for i in range(len(grads))], grads=grads, max_norm=max_norm, norm_type=kind)
    c.same(clipped[0].reshape([]), norm, OPTIM + ", clip_grad_norm_ returns the norm before", f"norm {kind} of {name}: ")
    for i, g in enumerate(grads):
        want = (g.to(DTYPES[compute_name(name)]) * got[1].reshape([]).to(DTYPES[compute_name(name)])).to(g.dtype)
        c.same(clipped.back[f"grads.{i}"], want, OPTIM + ", clip_grad_norm_ multiplies by the factor", f"gradient {i} of {name}: ")


@case(20, covers=[])
def clipping_within_steps(c):
    """StepOptions: max_norm, grad_factor, found_inf, grad_scale, lr as a tensor."""
    which = c.pick(["SGD", "AdamW"])
    params = [c.tensor([c.integer(1, 200)], "f32", "normal", strides=False) for _ in range(3)]
    grads = [c.tensor(p.shape, "f32", "normal", strides=False) for p in params]
    max_norm = c.pick([0.1, 1.0, 1e4])
    got = c.call("optimizer", optimizer=which, params=params, steps=1, grads0=grads, max_norm=max_norm, lr=0.1)
    norm = float(torch.linalg.vector_norm(torch.cat([g.double().reshape(-1) for g in grads])))
    factor = min(1.0, max_norm / (norm + 1e-6))
    reference, _ = run_torch(which, params, [[g.double() * factor for g in grads]], {"lr": 0.1} if which == "SGD" else {"lr": 0.1, "weight_decay": 1e-2}, torch.float64, foreach=False)
    for i, leaf in enumerate(reference):
        c.within(got[i], leaf.detach(), 1e-5 * ((leaf.detach() - params[i].double()).abs() + 0.1) + 32 * EPS["f32"] * params[i].double().abs(), OPTIM + ", StepOptions::max_norm", f"{which}, parameter {i}: ")
    c.true(got.values["norms"] == 1 and abs(float(got[len(got.results) - 1]) - norm) < 1e-4 * norm, "the norm is not that of the gradients", OPTIM + ", step()")
    still = c.call("optimizer", optimizer=which, params=params, steps=1, grads0=grads, lr=0.1, found_inf=torch.ones(1))
    for i, p in enumerate(params):
        c.same(still[i], p, OPTIM + ", StepOptions::found_inf: the step changes nothing", f"{which}, parameter {i}: ")
    scaled = c.call("optimizer", optimizer=which, params=params, steps=1, grads0=[g * 8 for g in grads], lr=0.1, grad_scale=torch.tensor([8.0]))
    plain = c.call("optimizer", optimizer=which, params=params, steps=1, grads0=grads, lr=5.0, lr_tensor=torch.tensor([np.float32(0.1)]))
    half = c.call("optimizer", optimizer=which, params=params, steps=1, grads0=[g * 2 for g in grads], lr=0.1, grad_factor=torch.tensor([0.5]))
    reference, _ = run_torch(which, params, [grads], {"lr": 0.1} if which == "SGD" else {"lr": 0.1, "weight_decay": 1e-2}, torch.float64, foreach=False)
    for i, leaf in enumerate(reference):
        tolerance = 1e-5 * ((leaf.detach() - params[i].double()).abs() + 0.1) + 32 * EPS["f32"] * params[i].double().abs()
        c.within(scaled[i], leaf.detach(), tolerance, OPTIM + ", StepOptions::grad_scale", f"{which}, parameter {i}: ")
        c.within(half[i], leaf.detach(), tolerance, OPTIM + ", StepOptions::grad_factor", f"{which}, parameter {i}: ")
        c.within(plain[i], leaf.detach(), tolerance, OPTIM + ", StepOptions::lr", f"{which}, parameter {i}: ")


@case(30, covers=["check_and_unscale_", "update_scale_", "grad_scaler"])
def loss_scales(c):
    name = c.floating()
    grads = [c.tensor(c.shape(0, 2, elements=500), name, "normal", strides=False) for _ in range(c.integer(1, 4))]
    bad = c.chance(0.4) and any(g.numel() for g in grads)
    if bad:
        target = max(grads, key=lambda g: g.numel())
        target.view(-1)[c.integer(0, target.numel() - 1)] = c.pick([math.inf, -math.inf, math.nan])
    scale = torch.tensor([float(c.pick([1.0, 8.0, 65536.0, 3.0]))])
    got = c.call("check_and_unscale_", back=["found_inf", *[f"grads.{i}" for i in range(len(grads))]], grads=grads, found_inf=torch.zeros(1), scale=scale)
    c.same(got.back["found_inf"], torch.tensor([1.0 if bad else 0.0]), OPTIM + ", check_and_unscale_", f"found_inf of {name}: ")
    wide = DTYPES[compute_name(name)]
    inverse = (1.0 / scale).reshape([])  # f32, rounded
    for i, g in enumerate(grads):
        c.same(got.back[f"grads.{i}"], (g.to(wide) * inverse.to(wide)).to(g.dtype), OPTIM + ", check_and_unscale_: multiplied by 1 / scale", f"gradient {i} of {name}: ")
    tracker, found = c.integer(0, 4), c.pick([0.0, 1.0])
    growth, backoff, interval = c.pick([2.0, 1.5]), c.pick([0.5, 0.25]), c.pick([1, 3, 5])
    s = torch.tensor([c.pick([1.0, 65536.0, 3e38, 1e-30])])
    t, f = torch.tensor([min(tracker, interval - 1)], dtype=torch.int32), torch.tensor([found])
    got = c.call("update_scale_", back=["scale", "growth_tracker", "found_inf"], scale=s, growth_tracker=t, found_inf=f, growth_factor=growth, backoff_factor=backoff, growth_interval=interval)
    want_s, want_t = s.clone(), t.clone()
    torch._amp_update_scale_(want_s, want_t, f.clone(), growth, backoff, interval)
    c.same(got.back["scale"], want_s, OPTIM + ", update_scale_ as torch._amp_update_scale_", "scale: ")
    c.same(got.back["growth_tracker"], want_t, OPTIM + ", update_scale_", "tracker: ")
    c.same(got.back["found_inf"], torch.zeros(1), OPTIM + ", update_scale_: found_inf becomes 0", "found_inf: ")
    params = [c.tensor([c.integer(1, 50)], "f32", "normal", strides=False) for _ in range(2)]
    init, interval, count = c.pick([1.0, 1024.0]), c.pick([1, 2]), 4
    steps_, overflow = [], []
    current, tracker = init, 0
    expected = []
    values = [p.double() for p in params]
    for i in range(count):
        real = [c.tensor(p.shape, "f32", "normal", strides=False) for p in params]
        over = c.chance(0.3)
        scaled = [g * current for g in real]
        if over:
            scaled[1].view(-1)[0] = math.inf
        steps_.append(scaled)
        if not over:
            values = [v - 0.5 * g.double() for v, g in zip(values, real)]
            tracker += 1
            if tracker == interval:
                current, tracker = current * 2, 0
        else:
            current, tracker = current * 0.5, 0
        expected.append(([v.clone() for v in values], current))
    loss = c.tensor([3], "f32", "normal", strides=False)
    got = c.call("grad_scaler", params=params, loss=loss, steps=count, lr=0.5, init_scale=init, growth_interval=interval, unscale=c.chance(0.5),
                 **{f"grads{i}": g for i, g in enumerate(steps_)})
    c.same(got[0], loss * init, OPTIM + ", GradScaler::scale", "loss: ")
    off = c.call("grad_scaler", params=params, loss=loss, steps=1, lr=0.5, init_scale=init, enabled=0, unscale=c.chance(0.5), grads0=real)
    c.same(off[0], loss, OPTIM + ", GradScalerOptions::enabled", "loss: ")
    for j, (p, g) in enumerate(zip(params, real)):
        c.within(off[1 + j], p.double() - 0.5 * g.double(), 4 * EPS["f32"] * (p.double().abs() + g.double().abs()), OPTIM + ", GradScalerOptions::enabled: a plain step", f"parameter {j}: ")
    for i, (vs, s) in enumerate(expected):
        for j, v in enumerate(vs):
            c.within(got[1 + i * 3 + j], v, (i + 1) * 8 * EPS["f32"] * (v.abs() + 4), OPTIM + ", GradScaler", f"parameter {j} after step {i}: ")
        c.same(got[1 + i * 3 + 2].reshape([]), torch.tensor(s), OPTIM + ", GradScaler::update", f"scale after step {i}: ")


@case(30, covers=["lr_scheduler", "schedule_"])
def schedules(c):
    rates = [c.pick([1e-3, 0.1, 3.0]) for _ in range(c.integer(1, 3))]
    warmup, start = c.pick([0, 1, 5]), c.pick([0.0, 0.1])
    decay, length, end = c.pick(["constant", "linear", "cosine"]), c.pick([1, 4, 10]), c.pick([0.0, 0.1])
    count = 18
    o = dict(warmup_steps=warmup, warmup_start=start, decay=decay, decay_steps=length, end=end)

    def factor(t):
        if t < warmup:
            return start + (1 - start) * t / warmup
        x = min(1.0, (t - warmup) / length)
        return {"constant": 1.0, "linear": 1 + (end - 1) * x, "cosine": end + (1 - end) * (1 + math.cos(math.pi * x)) / 2}[decay]

    got = c.call("lr_scheduler", rates=[float(r) for r in rates], steps=count, **o)
    for t in range(count + 1):
        want = torch.tensor([r * factor(t) for r in rates], dtype=torch.float64)
        c.within(got[t], want, 6 * EPS["f32"] * torch.tensor(rates, dtype=torch.float64), OPTIM + ", LRScheduler, Accuracy: within 4 eps", f"rates at step {t}, {o}: ")
    t, advance = c.integer(0, 10), c.integer(0, 3)
    back = c.call("schedule_", back=["lr", "step"], lr=torch.zeros(len(rates)), rates=torch.tensor(rates), step=torch.tensor([t]), advance=advance, **o).back
    c.same(back["step"], torch.tensor([t + advance]), OPTIM + ", schedule_", "step: ")
    want = torch.tensor([r * factor(t + advance) for r in rates], dtype=torch.float64)
    c.within(back["lr"], want, 6 * EPS["f32"] * torch.tensor(rates, dtype=torch.float64), OPTIM + ", schedule_", f"rates, {o}: ")
    # PyTorch's own schedulers in closed form, where they are the same.
    if decay == "cosine" and not warmup:
        p = torch.zeros(1, requires_grad=True)
        torchs = torch.optim.lr_scheduler.CosineAnnealingLR(torch.optim.SGD([p], lr=rates[0]), T_max=length, eta_min=end * rates[0])
        for i in range(length):
            c.true(abs(float(got[i][0]) - torchs.get_last_lr()[0]) <= 1e-6 * rates[0] * 4, f"rate {float(got[i][0])}, PyTorch's {torchs.get_last_lr()[0]}", OPTIM + ", LRScheduler, Source")
            p.grad = torch.zeros(1)
            torchs.optimizer.step()
            torchs.step()

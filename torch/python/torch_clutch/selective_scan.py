# SPDX-License-Identifier: Apache-2.0
"""Mamba's selective scan on the device: torch.clutch.selective_scan(), and its place in transformers' models."""
import functools
import importlib
import importlib.util

import torch
import torch.nn.functional as F

# Models of transformers whose mixers call a module's function mamba_selective_scan().
_MODELS = ("mamba", "falcon_mamba", "jamba", "zamba")


def selective_scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False):
    """y of h[t] = exp(step[t] A) h[t - 1] + step[t] B[t] u[t], y[t] = C[t] h[t] + D u[t], times silu(z[t]), with gradients of all that requires them.

    Shapes: u, delta, z (batch, channels, length); A (channels, states); B, C (batch, states, length); D, delta_bias (channels). The last state is
    (batch, channels, states). These are the arguments of mamba_ssm's selective_scan_fn with real A and one group.
    Dtypes: float32, float16 or bfloat16; computed in float32. y has u's dtype, the last state is float32.
    Devices: one launch on clutch; the formula, an element of the sequence after another, on others.
    """
    if u.device.type != "clutch":
        y, state = _formula(u, delta, A, B, C, D, z, delta_bias, delta_softplus)
    else:
        y, state = torch.ops.clutch.selective_scan(u.transpose(1, 2), delta.to(u.dtype).transpose(1, 2), A.float(), B.transpose(1, 2), C.transpose(1, 2),
                                                   None if D is None else D.float(), None if z is None else z.to(u.dtype).transpose(1, 2),
                                                   None if delta_bias is None else delta_bias.float(), delta_softplus, None)
        y = y.transpose(1, 2)
    return (y, state) if return_last_state else y


def _formula(u, delta, A, B, C, D, z, delta_bias, delta_softplus):
    compute = torch.promote_types(u.dtype, torch.float32)
    x, step, a, b, c = (t.to(compute) for t in (u, delta, A, B, C))
    if delta_bias is not None:
        step = step + delta_bias.to(compute)[:, None]
    if delta_softplus:
        step = F.softplus(step)
    h, ys = x.new_zeros(x.shape[0], *a.shape), []
    for t in range(x.shape[2]):
        h = torch.exp(step[:, :, t, None] * a) * h + (step[:, :, t] * x[:, :, t])[:, :, None] * b[:, None, :, t]
        ys.append((h * c[:, None, :, t]).sum(-1))
    y = torch.stack(ys, 2) if ys else torch.zeros_like(x)
    if D is not None:
        y = y + D.to(compute)[:, None] * x
    if z is not None:
        y = y * F.silu(z.to(compute))
    return y.to(u.dtype), h


def use_selective_scan():
    """From here on, models of transformers that have Mamba's mixers call selective_scan() where their tensors are on clutch.

    Without it they run, too: an op for each element of the sequence.
    Errors: ImportError if transformers is not installed.
    """
    if importlib.util.find_spec("transformers") is None:
        raise ImportError("transformers must be installed to change what its models call")
    for name in _MODELS:
        try:
            module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
        except ImportError:
            continue  # another version has not this model
        theirs = getattr(module, "mamba_selective_scan", None)
        if theirs is not None and not hasattr(theirs, "of_clutch"):
            module.mamba_selective_scan = _ours_or(theirs)


def _ours_or(theirs):
    @functools.wraps(theirs)
    def mamba_selective_scan(hidden_states, dt, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False, **kwargs):
        if hidden_states.device.type != "clutch" or B.dim() != 3:
            return theirs(hidden_states, dt, A, B, C, D=D, z=z, delta_bias=delta_bias, delta_softplus=delta_softplus, return_last_state=return_last_state, **kwargs)
        return selective_scan(hidden_states, dt, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)

    mamba_selective_scan.of_clutch = True
    return mamba_selective_scan


def register():
    @torch.library.register_fake("clutch::selective_scan")
    def scan(x, delta, a, b, c, skip, gate, delta_bias, delta_softplus, initial_state):
        return torch.empty(x.shape, dtype=x.dtype, device=x.device), x.new_empty((x.shape[0], *a.shape), dtype=torch.float32)

    @torch.library.register_fake("clutch::selective_scan_backward")
    def scan_backward(grad, grad_state, x, delta, a, b, c, skip, gate, delta_bias, delta_softplus, initial_state):
        given = [x, delta, a, b, c] + [t for t in (skip, gate, delta_bias, initial_state) if t is not None]
        return [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in given]

    def keep(ctx, inputs, output):
        *tensors, ctx.delta_softplus, initial_state = inputs
        tensors.append(initial_state)
        ctx.given = [t is not None for t in tensors]
        ctx.save_for_backward(*(t for t in tensors if t is not None))
        ctx.set_materialize_grads(False)

    def backward(ctx, grad, grad_state):
        saved = iter(ctx.saved_tensors)
        tensors = [next(saved) if is_given else None for is_given in ctx.given]
        if grad is None:
            grad = torch.zeros_like(tensors[0])
        made = iter(torch.ops.clutch.selective_scan_backward(grad, grad_state, *tensors[:-1], ctx.delta_softplus, tensors[-1]))
        gradients = [next(made) if is_given else None for is_given in ctx.given]
        return *gradients[:-1], None, gradients[-1]

    torch.library.register_autograd("clutch::selective_scan", backward, setup_context=keep)

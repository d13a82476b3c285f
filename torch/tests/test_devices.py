# SPDX-License-Identifier: Apache-2.0
"""Two devices in one process: PoCL shows its CPU twice if it is asked to."""
import pytest

PROGRAM = """
import torch
assert torch.clutch.device_count() == 2, torch.clutch.device_count()
a = torch.arange(4.0, device='clutch:0')
b = a.to('clutch:1')
assert b.device == torch.device('clutch', 1) and b.tolist() == [0, 1, 2, 3]
assert (b * 2).device == b.device and torch.clutch.current_device() == 0
with torch.clutch.device(1):
    assert torch.ones(2, device='clutch').device.index == 1
    assert torch.clutch.current_stream().device.index == 1
for mixed in (lambda: a + b, lambda: torch.mm(a[None], b[:, None]), lambda: torch.cat([a, b]), lambda: torch.where(a > 1, a, b)):
    try:
        mixed()
    except RuntimeError as error:
        assert 'device' in str(error), error
    else:
        raise SystemExit('devices were mixed')
model = torch.nn.Linear(4, 2).to('clutch:1')
loss = model(b).square().sum()
loss.backward()
assert model.weight.grad.device.index == 1
torch.manual_seed(3)
x = [torch.rand(5, device=f'clutch:{i}').tolist() for i in (0, 1)]
assert x[0] == x[1]
b.copy_(a + 1)
assert b.tolist() == [1, 2, 3, 4]
a.copy_(b.view(2, 2).t().reshape(4))
assert a.tolist() == [1, 3, 2, 4]
torch.accelerator.synchronize('clutch:1')
assert torch.accelerator.memory_allocated(1) > 0
print('right')
"""


def test_two_devices(run_python):
    ended = run_python(PROGRAM, POCL_DEVICES="pthread basic", CLUTCH_DEVICE="0:0")
    if "AssertionError: 1" in ended.stderr:
        pytest.skip("the driver shows one device")
    assert ended.stdout.strip() == "right", ended.stderr[-2000:]


def test_the_default_device_is_clutchs(run_python):
    ended = run_python("import torch; print(torch.ones(1, device='clutch').device)", POCL_DEVICES="pthread basic", CLUTCH_DEVICE="0:1")
    assert ended.stdout.strip() in ("clutch:1", "clutch:0"), ended.stderr[-2000:]

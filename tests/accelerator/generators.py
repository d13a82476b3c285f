# SPDX-License-Identifier: Apache-2.0
"""Generators: seeds, states, scopes."""
import torch
from halves import kind, last, module, row

acc = torch.accelerator


def draw(generator=None):
    return torch.rand(8, device=kind(), generator=generator).tolist()


def default_state():
    return module().get_rng_state(torch.device(kind()))


@row()
def manual_seed(line):
    module().manual_seed(5)
    line("the seed", module().initial_seed())
    first, second = draw(), draw()
    line("numbers go on", first != second)
    torch.manual_seed(5)
    line("the same seed, the same numbers", draw() == first)
    module().manual_seed(6)
    line("another seed, other numbers", draw() != first)
    module().manual_seed_all(7)
    with acc.device_index(last()):
        of_last = module().initial_seed()
    line("seeds of all devices", [module().initial_seed(), of_last])


@row()
def random_seed(line):
    g = torch.Generator(kind())
    seed = g.seed()
    line("it is the one that is told", g.initial_seed() == seed)
    line("it begins anew", g.get_offset())


@row()
def rng_state(line):
    module().manual_seed(1)
    draw()
    state = default_state()
    first, second = draw(), draw()
    module().set_rng_state(state, torch.device(kind()))
    line("numbers from a state on", draw() == first and draw() == second)
    line("the state has moved", not torch.equal(default_state(), state))


@row()
def generator(line):
    g = torch.Generator(kind())
    line("the seed at first", g.initial_seed())
    line("its device is the current one", g.device.index == acc.current_device_index())
    g.manual_seed(3)
    line("seed and offset behind manual_seed", [g.initial_seed(), g.get_offset()])
    first = draw(g)
    offset = g.get_offset()
    line("a draw moves the offset", offset > 0)
    second = draw(g)
    g.manual_seed(3).set_offset(offset)
    line("numbers from an offset on", draw(g) == second)
    other = torch.Generator(kind()).manual_seed(3)
    line("another generator of the seed has the numbers, too", draw(other) == first)
    module().manual_seed(3)
    line("so has the default one", draw() == first)


@row()
def generator_state_of_its_own(line):
    g = torch.Generator(kind()).manual_seed(9)
    draw(g)
    clone = g.clone_state()
    of_clone = draw(clone)
    line("a clone has the numbers that come next", draw(g) == of_clone)
    draw(clone)
    line("and goes on alone", g.get_offset() < clone.get_offset())
    shared = torch.Generator(kind())
    shared.graphsafe_set_state(g.graphsafe_get_state())
    draw(shared)
    line("a handle of one state goes on with it", torch.equal(g.get_state(), shared.get_state()))


@row()
def fork_rng(line):
    module().manual_seed(4)
    draw()
    state = default_state()
    following = draw()
    module().set_rng_state(state, torch.device(kind()))
    with torch.random.fork_rng(devices=[acc.current_device_index()], device_type=kind()):
        draw()
        with torch.random.fork_rng(devices=[acc.current_device_index()], device_type=kind()):
            module().manual_seed(77)
            draw()
        line("within: the seed is the outer one again", module().initial_seed())
    line("behind it numbers go on as if it had not been", draw() == following)

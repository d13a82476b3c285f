# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-cost --self-test: faults that its reader and its comparison must find, without a simulator."""
import contextlib
import functools
import io
import os
import sys
import tempfile

import ahead
import calls
import cost
import cost_model
import listing
import planted
import published

COUNTS = ('width=32 items=64 groups=2 barriers=6 sub_groups=2 issues_f32=10 issues_f64=0 issues_special=0 issues_integer=6 issues_control=0 issues_memory=4 busy=320 longest=12 '
          'load_pieces=4 load_ideal=16 load_sectors=32 load_lines=8 load_bytes=512 load_touched=20 store_pieces=2 store_ideal=8 store_sectors=8 store_lines=2 store_bytes=256 '
          'store_touched=8 local_pieces=4 local_ideal=4 local_passes=10 local_worst=4 atomics=64 atomic_pieces=2 atomic_passes=64 constant_pieces=0 constant_passes=0 scratch_pieces=2 '
          'scratch_bytes=256 waits=2 local_waits=2')
FIGURES = ['50.0', '100.0', '8.00', '1.50', '50.0', '3.00', '1.00', '32.00', '4.00', '10.00']


fails = functools.partial(planted.fails, 'gpu-cost')


def reads_counts(folder):
    bad = 0
    path = os.path.join(folder, 'counts')
    with open(path, 'w') as file:
        file.write(f'op/planted/f32\tplanted\t32\t64\t{COUNTS}\n')
        file.write(f'op/planted/f32\tfill_contiguous\t32\t64\t{COUNTS}\n')  # another entry's, beside it
        file.write(f'\tplanted\t32\t64\t{COUNTS}\n')  # of no problem
    sums = cost.sum_up(cost.read_counts(path))
    rows = cost.table_of('h100', sums)
    bad += fails('the table', [['h100', 'planted', '32', '1'] + FIGURES], rows)
    with open(path, 'a') as file:
        file.write('op/planted/f32\tplanted\t32\t64\terror: Invalid write\n')
    try:
        cost.read_counts(path)
        bad += fails('a launch with an error', 'the end of the program', 'its counts')
    except SystemExit as ended:
        bad += fails('the words of a launch with an error', True, 'planted of op/planted/f32 was not counted: Invalid write' in str(ended))
    return bad


def compares(folder):
    bad = 0
    path = os.path.join(folder, 'cost.tsv')
    row = ['h100', 'planted', '32', '1'] + FIGURES
    cost.write_table(path, [row])
    bad += fails('the table that was written', [row], cost.read_table(path))
    bad += fails('what is the same', ([], [], []), cost.compare([row], [row]))
    for at, (heading, _, more_is_better) in enumerate(cost.FIGURES, len(cost.KEYS)):
        for change in (-1.0, 1.0):
            now = list(row)
            now[at] = f'{float(row[at]) + change:.2f}'
            worse, better, new = cost.compare([row], [now])
            got_better = None if more_is_better is None else (change > 0) == more_is_better
            said = f'{heading} {row[at]} -> {now[at]}'
            bad += fails(f'{said}: worse', [f'WORSE  h100 planted 32: {said}'] if got_better is False else [], worse)
            bad += fails(f'{said}: better', [f'better h100 planted 32: {said}'] if got_better else [], better)
            bad += fails(f'{said}: new', [], new)
    bad += fails('an entry without figures', ([], [], ['new    mi300x planted 32']), cost.compare([row], [['mi300x'] + row[1:]]))
    bad += fails('a figure that was not there', ([], [], []), cost.compare([row[:7] + ['-'] + row[8:]], [row]))
    with open(path, 'w') as file:
        file.write('profile\tentry\n')
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        bad += fails('a table of other figures', [], cost.read_table(path))
    bad += fails('the words of a table of other figures', True, 'scripts/gpu-cost --update writes it anew' in said.getvalue())
    return bad


def models():
    bad = 0
    counts = {name: int(n) for name, n in (word.split('=') for word in COUNTS.split(' '))}
    machine = cost_model.MACHINES['h100']
    # Ten groups of 7 + 3 n: counts of two runs give those of a third.
    runs = [(1, n, {**counts, 'issues_f32': 7 + 3 * n, 'sub_groups': 2, 'groups': 1}) for n in (4, 8)]
    bad += fails('two runs, extrapolated', 10 * 7 + 3 * 1000, round(cost_model.extrapolate(runs, 10, 1000)['issues_f32'], 6))
    bad += fails('one run of the same work a group', 50 * 19, round(cost_model.extrapolate(runs[:1], 50, 200)['issues_f32'], 6))
    shared = cost_model.extrapolate([(1, 4, counts), (2, 8, counts)], 10, 1000)
    bad += fails('groups that share more work', (10.0, 250.0 * counts['issues_f32']), (shared['groups'] / counts['groups'], shared['issues_f32']))
    # Each bound by itself: 132 groups fill the units, and a clock is 1 / 1.98 ns.
    nothing = {name: 0 for name in counts}
    nothing.update(width=32, groups=132, sub_groups=132)
    clock = 1e-9 / 1.98
    for name, number, bound, clocks in [('issues_f32', 132 * 4000, 'f32', 1000), ('issues_f32', 132 * 4000, 'issue', 1000), ('issues_integer', 132 * 4000, 'integer', 2000),
                                        ('issues_f64', 132 * 4000, 'f64', 2000), ('issues_special', 132 * 4000, 'special', 8000), ('local_passes', 132 * 1000, 'local memory', 1000),
                                        ('load_lines', 132 * 1000, 'L1', 1000), ('store_sectors', 132 * 4000, 'L1', 1000), ('constant_passes', 132 * 1000, 'L1', 1000),
                                        ('scratch_bytes', 132 * 128000, 'L1', 1000), ('atomic_passes', 132 * 1000, 'atomics', 2000)]:
        of_bounds = cost_model.bounds({**nothing, name: number}, machine)
        bad += fails(f'{bound} of {name}', round(clocks * clock * 1e9, 3), round(of_bounds[bound] * 1e9, 3))
    of_bounds = cost_model.bounds({**nothing, 'load_touched': 3350000, 'load_sectors': 9600000}, machine)
    bad += fails('DRAM', round(32e-6 / 0.75 * 1e3, 6), round(of_bounds['DRAM'] * 1e3, 6))
    bad += fails('L2', 32e-3, round(of_bounds['L2'] * 1e3, 6))
    bad += fails('the largest bound', 'DRAM', cost_model.binding(of_bounds))
    bad += fails('the time is the largest bound or more', True, max(of_bounds.values()) <= cost_model.seconds(of_bounds) < 1.2 * max(of_bounds.values()))
    # 1000 instructions one after another, in two rounds.
    one = {**nothing, 'issues_f32': 1000 * 132, 'longest': 1000}
    bad += fails('latency', round(2 * 2000 * clock * 1e9, 3), round(cost_model.bounds(one, machine, resident=0.5)['latency'] * 1e9, 3))
    # The longest takes twice as long as the mean: alone, and while others follow in the places of short ones.
    for resident, times in ((1, 2), (0.5, 2), (0.25, 4)):
        uneven = cost_model.bounds({**one, 'longest': 2000}, machine, resident=resident)
        bad += fails(f'latency of uneven sub-groups, {resident} resident', round(times * 2000 * clock * 1e9, 3), round(uneven['latency'] * 1e9, 3))
    paired = {**nothing, 'issues_f32': 132 * 4000}
    bad += fails('instructions in pairs', (750, 1000), tuple(round(cost_model.bounds(paired, machine, pairs=0.5)[b] / clock) for b in ('issue', 'f32')))
    # And one whose 132 sub-groups wait ten times each for global memory and as often for local memory.
    waits = {**nothing, 'issues_memory': 132, 'longest': 1, 'waits': 132 * 10, 'local_waits': 132 * 10}
    bad += fails('waits', round(10 * (700 + 30) * clock * 1e9, 3), round(cost_model.bounds(waits, machine)['latency'] * 1e9, 3))
    bad += fails('the roofline of flops', 1.0, round(cost_model.ideal_seconds(132 * 128 * 2 * 1.98e9, 1, machine), 6))
    bad += fails('the roofline of bytes', 1.0, round(cost_model.ideal_seconds(1, 3350e9, machine), 6))
    estimate = [cost_model.Estimate('a', 'h200', 'L2', s, 0.5, m) for s, m in ((1.1e-6, 1.0), (2e-6, 1.0), (3e-6, None), (0.7e-6, 1.0))]
    bad += fails("the model's error", (0.3, 1.0), tuple(round(e, 6) for e in cost_model.error_of(estimate)))
    bad += fails("the model's error where nothing was measured", None, cost_model.error_of(estimate[2:3]))
    return bad


# Loops of compiled kernels by vendor: what loads before the 100 instructions of a turn, {compute}, uses it behind them, in the turn itself or in the next one; its twin loads and waits at
# once. The last ones only look ahead: a count that is too small, a way around the instructions, what is loaded last of a queue.
COMPUTE = {'amd': '\tv_fma_f32 v9, v8, v8, v9\n', 'nvidia': '        /*0000*/ FFMA R9, R8, R8, R9 ;\n', 'intel': 'mad (16|M0) r9.0<1>:f r8.0<0;0>:f r8.0<1;0>:f r8.0<0>:f\n'}
HEAD = {'amd': 'k:                      ; @k\n', 'nvidia': '.text.k:\n', 'intel': ''}
TAIL = {'amd': '\ts_cbranch_scc1 .LBB0_1\n\ts_endpgm\n.Lfunc_end0:\n', 'nvidia': '        /*0000*/ @P0 BRA `(.L_x_1) ;\n        /*0000*/ EXIT ;\n', 'intel': '(W&f0.0) jmpi _L_1\n'}
LABEL = {'amd': '.LBB0_1:\n', 'nvidia': '.L_x_1:\n', 'intel': '_L_1:\n'}
LOOPS = [  # (what, vendor, kind, whether it loads ahead, body)
    ('waits at once', 'amd', 'global', False, '\tglobal_load_dwordx4 v[0:3], v4, s[0:1]\n\ts_waitcnt vmcnt(0)\n{compute}'),
    ('in the turn', 'amd', 'global', True, '\tglobal_load_dwordx4 v[0:3], v4, s[0:1]\n{compute}\ts_waitcnt vmcnt(0)\n'),
    ('in the next turn', 'amd', 'global', True, '\ts_waitcnt vmcnt(0)\n\tglobal_load_dwordx4 v[0:3], v4, s[0:1]\n{compute}'),
    ('a count with room for it', 'amd', 'global', True, '\tglobal_load_dword v0, v4, s[0:1]\n\ts_waitcnt vmcnt(1)\n{compute}\ts_waitcnt vmcnt(0)\n'),
    ('a count without room for the first', 'amd', 'local', False, '\tds_read_b32 v0, v4\n\tds_read_b32 v1, v4\n\ts_waitcnt lgkmcnt(0)\n{compute}'),
    ('another queue', 'amd', 'local', True, '\tds_read_b32 v0, v4\n\ts_waitcnt vmcnt(0)\n{compute}\ts_waitcnt lgkmcnt(0)\n'),
    ('a way around', 'amd', 'global', False, '\tglobal_load_dword v0, v4, s[0:1]\n\ts_cbranch_scc0 .LBB0_2\n{compute}.LBB0_2:\n\ts_waitcnt vmcnt(0)\n'),
    ('waits at once', 'nvidia', 'local', False, '        /*0000*/ LDS.128 R4, [R0] ;\n        /*0000*/ FADD R10, R7, R7 ;\n{compute}'),
    ('in the turn', 'nvidia', 'local', True, '        /*0000*/ LDS.128 R4, [R0] ;\n{compute}        /*0000*/ FADD R10, R7, R7 ;\n'),
    ('a fragment of four registers', 'nvidia', 'local', False, '        /*0000*/ LDSM.16.M88.4 R4, [R0] ;\n        /*0000*/ HMMA.16816.F32.BF16 R20, R4, R12, R20 ;\n{compute}'),
    ('in the next turn', 'nvidia', 'global', True, '        /*0000*/ STS.128 [R0], R4 ;\n        /*0000*/ LDG.E.128 R4, desc[UR4][R2.64] ;\n{compute}'),
    ('copies, one group ahead', 'nvidia', 'global', True,
     '        /*0000*/ LDGSTS.E.128 [R0], desc[UR4][R2.64] ;\n        /*0000*/ LDGDEPBAR ;\n        /*0000*/ DEPBAR.LE SB0, 0x1 ;\n{compute}'),
    ('copies, none ahead', 'nvidia', 'global', False,
     '        /*0000*/ LDGSTS.E.128 [R0], desc[UR4][R2.64] ;\n        /*0000*/ LDGDEPBAR ;\n        /*0000*/ DEPBAR.LE SB0, 0x0 ;\n{compute}'),
    ('waits at once', 'intel', 'global', False, 'load.ugm.d32x4.a64 (16|M0) r1:4 [r2:1] {$3}\nadd (16|M0) r5.0<1>:f r1.0<1;1,0>:f r1.0<1;1,0>:f {$3.dst}\n{compute}'),
    ('in the turn', 'intel', 'global', True, 'load.ugm.d32x4.a64 (16|M0) r1:4 [r2:1] {$3}\n{compute}add (16|M0) r5.0<1>:f r1.0<1;1,0>:f r1.0<1;1,0>:f {$3.dst}\n'),
]


def listing_of(vendor, body):
    text = HEAD[vendor] + LABEL[vendor] + body.replace('{compute}', 100 * COMPUTE[vendor]) + TAIL[vendor]
    return {'amd': lambda: listing.amd_functions(text)['k'][0], 'nvidia': lambda: listing.nvidia_functions(text)['k'], 'intel': lambda: listing.intel_code(text)}[vendor]()


def knows_loads_ahead():
    """Of a loop that loads ahead and its twin that does not, which execute the same, the first must be faster, and no faster than its instructions or than what units can do."""
    bad = 0
    machines = {'amd': 'mi300x', 'nvidia': 'h100', 'intel': 'a770'}
    counts = {name: int(n) for name, n in (word.split('=') for word in COUNTS.split(' '))}
    # A sub-group of ten turns: 100 fma, a load and a jump.
    counts = {**{name: 0 for name in counts}, 'width': 32, 'groups': 1, 'sub_groups': 1, 'issues_f32': 1000, 'issues_control': 10, 'issues_memory': 10, 'longest': 1020}
    for what, vendor, kind, is_ahead, body in LOOPS:
        machine = cost_model.MACHINES[machines[vendor]]
        shares = ahead.hidden(vendor, machine['target'], listing_of(vendor, body), **cost_model.waits_of(machine['target']))
        latency = machine['latency' if kind == 'global' else 'local_latency']
        share = min(1.0, 100 * cost_model.CLOCKS_BETWEEN / latency) if is_ahead else 0.0
        bad += fails(f'{what}, {vendor}: the share that is hidden', True, abs(shares[kind][0] - share) < 0.01)
        waits = {**counts, 'waits' if kind == 'global' else 'local_waits': 10}
        told = [shares[k] or cost_model.NONE_AHEAD for k in ('global', 'local')]
        plain, mine = cost_model.bounds(waits, machine), cost_model.bounds(waits, machine, ahead=told)
        bad += fails(f'{what}, {vendor}: faster than without', is_ahead, cost_model.seconds(mine) < 0.99 * cost_model.seconds(plain))
        own = 1010 * cost_model.CLOCKS_BETWEEN
        clocks = own + 10 * latency - min(own, 10 * latency * shares[kind][0])
        bad += fails(f'{what}, {vendor}: clocks', round(clocks), round(mine['latency'] * machine['clock_ghz'] * 1e9))
        bad += fails(f'{what}, {vendor}: all other bounds stay', {k: v for k, v in plain.items() if k != 'latency'}, {k: v for k, v in mine.items() if k != 'latency'})
    # A share that no instructions stand for hides their time alone: ten waits of 700 clocks beside 20 instructions.
    few = cost_model.bounds({**counts, 'issues_f32': 10, 'longest': 30, 'waits': 10}, cost_model.MACHINES['h100'], ahead=((1.0, 1), (1.0, 1)))
    bad += fails('more hidden than instructions take', 7000, round(few['latency'] * 1.98e9))
    # Eight loads on their way together, of which the counts have four, wait half as often; two, as often as the counts say.
    for together, clocks in ((8, 5 * 700), (4, 10 * 700), (2, 10 * 700)):
        many = cost_model.bounds({**counts, 'issues_f32': 10, 'longest': 30, 'waits': 10}, cost_model.MACHINES['h100'], ahead=((0.0, together), cost_model.NONE_AHEAD))
        bad += fails(f'{together} loads together', 40 + clocks, round(many['latency'] * 1.98e9))
    batch = '\tglobal_load_dword v0, v4, s[0:1]\n' * 6 + '{compute}\ts_waitcnt vmcnt(0)\n\tglobal_load_dword v1, v4, s[0:1]\n\ts_waitcnt vmcnt(0)\n'
    found = ahead.hidden('amd', 'gfx942', listing_of('amd', batch), **cost_model.waits_of('gfx942'))['global']
    bad += fails('six loads together, and one by itself', (round(6 * 0.25 / 7, 3), round(37 / 7, 2)), found)
    # Loops that are for the ends of tensors alone count for nothing, and those of turns of others for more than those around them.
    ends = '\tglobal_load_dword v0, v4, s[0:1]\n{compute}\ts_cbranch_scc0 .LBB0_3\n.LBB0_2:\n\tglobal_load_dword v1, v4, s[0:1]\n\ts_waitcnt vmcnt(0)\n\ts_cbranch_scc0 .LBB0_2\n.LBB0_3:\n\ts_waitcnt vmcnt(0)\n'
    mi300x = cost_model.waits_of('gfx942')
    bad += fails('a loop for the ends of tensors', 0.253, ahead.hidden('amd', 'gfx942', listing_of('amd', ends), **mi300x)['global'][0])
    within = '\tglobal_load_dword v0, v4, s[0:1]\n\ts_waitcnt vmcnt(0)\n.LBB0_2:\n\tglobal_load_dword v1, v4, s[0:1]\n{compute}\ts_waitcnt vmcnt(0)\n\ts_cbranch_scc0 .LBB0_2\n'
    bad += fails('a load of a loop within another', round(0.25 * 32 / 33, 3), ahead.hidden('amd', 'gfx942', listing_of('amd', within), **mi300x)['global'][0])
    return bad


def keeps_estimates(folder):
    bad = 0
    path = os.path.join(folder, 'estimates.tsv')
    rest = ['-'] * 5
    cost_model.write_estimates([['softmax, 16384 x 1024', m, k, 'L2', f'{s:.1f}', *rest] for m, k, s in (('h200', 'all', 50), ('h200', 'rowwise_groups', 49), ('mi300x', 'all', 40))], path)
    row = 'softmax/f32/16384x1024'
    for device, estimated in (('NVIDIA H200', 50.0), ('gfx942:sramecc+:xnack-', 40.0)):
        said = cost_model.beside_measured(device, {row: 80.0, 'another row': 1.0}, path)
        bad += fails(f'estimates of {device}', [(row, estimated, 80.0, round(estimated / 80 - 1, 3))], [(s['row'], s['estimated_us'], s['measured_us'], s['error']) for s in said])
    bad += fails('estimates of a device that the table has not', [], cost_model.beside_measured('NVIDIA A100', {row: 80.0}, path))
    return bad


def estimates_calls():
    """Estimates of planted calls: kernels launched once, several times and in turns; programs that no budget knows."""
    bad = 0
    counts = {name: int(n) for name, n in (word.split('=') for word in COUNTS.split(' '))}
    once = [(1, 4.0, counts), (2, 8.0, counts)]
    bad += fails('a launch of its own', [(once, 7, 1)], cost_model.by_launch(once, [7], 100))
    twice = [(1, 4.0, 'a'), (2, 4.0, 'b'), (2, 8.0, 'c'), (4, 8.0, 'd')]
    pairs = [[(1, 4.0, 'a'), (2, 8.0, 'c')], [(2, 4.0, 'b'), (4, 8.0, 'd')]]
    bad += fails('two launches', [(pairs[0], 50, 1), (pairs[1], 60, 1)], cost_model.by_launch(twice, [50, 60], 100))
    bad += fails('two equal launches, of which one is planned', [(pairs[0], 50, 1), (pairs[1], 50, 1)], cost_model.by_launch(twice, [50], 100))
    bad += fails('two turns', [(once, 5, 5.0)], cost_model.by_launch(once, [5, 5], 100))
    bad += fails('what a kernel accesses', ['50.0', '100.0', '2.50', '4'], calls.access([(1, 4.0, {}), (2, 8.0, counts)]))
    bad += fails('a kernel without local memory', ['50.0', '100.0', '-', '-'], calls.access([(2, 8.0, {**counts, 'local_ideal': 0, 'local_passes': 0, 'local_worst': 0})]))
    try:
        cost_model.occupancy('sm_90', 'planted', 'a call')
        bad += fails('a program that the budget has not', 'the end of the program', 'an occupancy')
    except SystemExit as ended:
        bad += fails('the words of a program that the budget has not', True, 'must have the row sm_90 planted (a call)' in str(ended))
    return bad


def holds_estimates(folder):
    """Figures of estimates may not get worse, and must reach their targets or be known not to."""
    bad = 0
    path = os.path.join(folder, 'estimates.tsv')
    row = ['planted 2^24', 'h100', 'planted', 'DRAM', '50.0', '80.0', '90.0', '95.0', '1.50', '2']
    cost_model.write_estimates([row], path)
    bad += fails('estimates that were written and read', [row], cost_model.read_estimates(path))
    bad += fails('the same estimates', ([], [], []), cost.compare([row], [row], calls.HELD))
    for at, heading, more_is_better in calls.HELD:
        for change in (-1.0, 1.0):
            now = list(row)
            now[at] = f'{float(row[at]) + change:g}'
            worse, better, new = cost.compare([row], [now], calls.HELD)
            bad += fails(f'{heading} {row[at]} -> {now[at]}', ((change > 0) != more_is_better, (change > 0) == more_is_better, 0), (len(worse) == 1, len(better) == 1, len(new)))
    bad += fails('an estimate that is new', (0, 0, 1), tuple(map(len, cost.compare([], [row], calls.HELD))))
    bad += fails('a figure that was not there', ([], [], []), cost.compare([row[:6] + ['-'] * 4], [row], calls.HELD))
    target = dict(call='planted*; other', machine='h100', kernel='*', figure='loads %', target='90', known='')
    for what, change, said in (('a target that is met', {}, (0, 1, 0)), ('one that is not', dict(target='91'), (1, 0, 1)), ('one that is known not to be', dict(target='91', known='reason'), (0, 0, 1)),
                               ('one that is met and known not to be', dict(known='reason'), (1, 1, 0)), ('a target of another call', dict(call='plant', target='91'), (0, 0, 0)),
                               ('a target of another machine', dict(machine='h200', target='91'), (0, 0, 0)), ('a most that is met', dict(figure='worst', target='2'), (0, 1, 0)),
                               ('a most that is not', dict(figure='worst', target='1'), (1, 0, 1))):
        wrong, met, missed = calls.short_of([row, [*row[:6], '-', '-', '-', '-']], [{**target, **change}])
        bad += fails(what, said, (len(wrong), met, missed))
    with open(path, 'w') as file:
        file.write('call\tmachine\n')
    try:
        cost_model.read_estimates(path)
        bad += fails('estimates of other columns', 'an error', 'none')
    except ValueError as problem:
        bad += fails('the words of estimates of other columns', True, 'the columns must be call machine' in str(problem))
    # The tables themselves can be read, and targets name calls and figures that there are.
    held, targets = cost_model.read_estimates(), cost_model.read_table(calls.TARGETS)
    for t in targets:
        bad += fails(f"the target of {t['call']}", True, t['figure'] in calls.MORE_IS_BETTER and float(t['target']) > 0)
    bad += fails('targets beside the estimates that are held', [], calls.short_of(held, targets)[0])
    return bad


def judges_published():
    bad = 0
    counts = {name: int(n) for name, n in (word.split('=') for word in COUNTS.split(' '))}
    # Two runs of 2 groups: at the published shape 1000 groups of the same work, of 3.35e9 bytes, which take the roofline 1 ms.
    runs = [('planted', [words, 1000, 1000 * words / 2, 0, 3.35e9], {**counts, 'groups': 2}) for words in (64.0, 64.0)]
    row = dict(kernel='planted', machine='h100', speed='1675', unit='GB/s', known='')
    ((kernel, machine, bound, estimated, said, known),) = published.compare([row], runs, {('planted', 'sm_90'): (1.0, 0.0, (cost_model.NONE_AHEAD, cost_model.NONE_AHEAD))})
    bad += fails('an estimate beside what was published', ('planted', 'h100', 'DRAM', 75.0, 50.0, ''), (kernel, machine, bound, round(estimated, 1), round(said, 1), known))
    for estimated, known, wrong in ((64, '', 0), (66, '', 1), (34, '', 1), (66, 'reason', 0), (64, 'reason', 1)):
        bad += fails(f'the verdict of {estimated} % instead of 50 %, known: {known!r}', wrong, len(published.verdict([('planted', 'h100', 'DRAM', estimated, 50, known)])))
    try:
        published.compare([{**row, 'kernel': 'another'}], runs, {})
        bad += fails('a kernel that was not counted', 'the end of the program', 'an estimate')
    except SystemExit as ended:
        bad += fails('the words of a kernel that was not counted', True, 'another must be one of' in str(ended))
    return bad


def main():
    with tempfile.TemporaryDirectory() as folder:
        bad = reads_counts(folder) + compares(folder) + models() + knows_loads_ahead() + keeps_estimates(folder) + estimates_calls() + holds_estimates(folder) + judges_published()
    print('gpu-cost --self-test: all planted faults were found' if not bad else f'gpu-cost --self-test: {bad} were not')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())

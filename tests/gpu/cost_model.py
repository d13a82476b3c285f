# SPDX-License-Identifier: Apache-2.0
"""Estimates of time from counts of sub-groups (count/model.hpp) and a table of machines. They are estimates: none is to be quoted without the model's error."""
import collections
import csv
import math
import os

import budget

HERE = os.path.dirname(__file__)

# What a machine does, from these sources:
#   units, clock_ghz, dram_gbs   the maker's data sheets: H100 SXM 3.35 TB/s, H200 SXM 4.8 TB/s, both 132 units and 67 TFLOP/s of f32 at 1.98 GHz;
#                                MI300X 304 units, 2.1 GHz, 163.4 TFLOP/s of f32, 5.3 TB/s; RTX A6000 84 units, 1.8 GHz, 38.7 TFLOP/s, 768 GB/s; RX 7900 XTX
#                                96 units, 2.5 GHz, 61 TFLOP/s by pairs of instructions (dual issue), 960 GB/s; Arc A770
#                                32 units (Xe cores of 16 vector engines), 2.4 GHz, 19.7 TFLOP/s, 560 GB/s
#   f32, f64, integer, special   results a clock of a unit: CUDA C++ Programming Guide, table of arithmetic throughput, compute capability 9.0;
#                                AMD's CDNA 3 white paper, with packed f32, and quarter rate for special functions
#   issues                       sub-groups' instructions a clock of a unit: four schedulers; four SIMDs; two on RDNA 3, where two fma are
#                                issued together if the compiler made one instruction of them (AMD's "RDNA3 Instruction Set Architecture", VOPD): pairs.tsv
#                                says of which share of a kernel's it did
#   lds, lines                   passes of local memory, and lines of 128 bytes of global memory, a clock of a unit: 128 bytes a clock of both;
#                                CDNA 3: 128 of local memory, 64 of global memory
#   l2_gbs                       H200, whose chip is H100 SXM's: gpu-l2-cache/h200.txt of github.com/te42kyfo/gpu-benches, data of 20 to 40 MB, rounded down;
#                                MI300X measured by Chips and Cheese, "Testing AMD's Giant MI300X", rounded
#   stream                       share of dram_gbs that a triad reaches: 3.6 TB/s were measured on an H200 (docs/benchmarks.md); MI300X as Chips and Cheese
#   matrix, matrix_tflops        clocks of a unit for one matrix instruction of f16 or bf16 (16 x 8 x 16 numbers on Hopper, 16 x 16 x 16 on AMD's, 8 x 8 x 16 on
#                                Intel's), and the peak with f32 sums, from the makers' data sheets; the instructions of single sub-groups that OpenCL can reach
#                                on Hopper gave 62 % of it to Luo et al. 2024
#   latency                      clocks from a load to its use from global memory, and from local memory: Luo et al. 2024, "Benchmarking and Dissecting the Nvidia
#                                Hopper GPU Architecture via Microbenchmarking", rounded up for HBM under load; MI300X as Chips and Cheese
#   resident                     sub-groups that a unit holds at most
# Assumed, not measured: l2_gbs, stream and latency of RTX A6000, RX 7900 XTX and Arc A770; an instruction of a sub-group follows the one before after 2 clocks on average, four of its loads are on their way together (count/model.hpp), and a
# barrier takes what local memory's latency is.
MACHINES = {
    'h100': dict(profile='h100', target='sm_90', width=32, units=132, clock_ghz=1.98, f32=128, f64=64, integer=64, special=16, issues=4, lds=1, lines=1, l2_gbs=9600, matrix=1 / 0.62, matrix_tflops=989,
                 dram_gbs=3350, stream=0.75, latency=700, local_latency=30, resident=64),
    'h200': dict(profile='h100', target='sm_90', width=32, units=132, clock_ghz=1.98, f32=128, f64=64, integer=64, special=16, issues=4, lds=1, lines=1, l2_gbs=9600, matrix=1 / 0.62, matrix_tflops=989,
                 dram_gbs=4800, stream=0.75, latency=700, local_latency=30, resident=64),
    'mi300x': dict(profile='mi300x', target='gfx942', width=64, units=304, clock_ghz=2.1, f32=128, f64=64, integer=64, special=16, issues=4, lds=1, lines=0.5, l2_gbs=11900, matrix=4, matrix_tflops=1307,
                   dram_gbs=5300, stream=0.76, latency=800, local_latency=64, resident=32),
    'a6000': dict(profile=None, target='sm_86', width=32, units=84, clock_ghz=1.8, f32=128, f64=2, integer=64, special=16, issues=4, lds=1, lines=1, l2_gbs=2500,
                  dram_gbs=768, stream=0.85, latency=600, local_latency=30, resident=48),
    'a770': dict(profile='a770', target='dg2', width=32, units=32, clock_ghz=2.4, f32=128, f64=0.1, integer=128, special=32, issues=4, lds=1, lines=0.5, l2_gbs=2000, matrix=1, matrix_tflops=138,
                 dram_gbs=560, stream=0.85, latency=700, local_latency=40, resident=64),
    'rx_7900': dict(profile='rx_7900', target='gfx1100', width=32, units=96, clock_ghz=2.5, f32=128, f64=2, integer=64, special=16, issues=2, lds=1, lines=0.5, l2_gbs=4500, matrix=16, matrix_tflops=123,
                    dram_gbs=960, stream=0.85, latency=600, local_latency=64, resident=32),
}
CLOCKS_BETWEEN = 2
TOGETHER = 4  # kTogether of count/model.hpp
SHARPNESS = 4  # bounds add up as the 4th root of the sum of their 4th powers: the largest binds, and what is near it is not hidden whole


NONE_AHEAD = (0.0, 1.0)


def waits_of(target):
    """What ahead.hidden() must know of the machine of a target; None if there is none."""
    m = next((m for m in MACHINES.values() if m['target'] == target), None)
    return m and dict(latencies={'global': m['latency'], 'local': m['local_latency']}, matrix=m.get('matrix', 0) * m['issues'], between=CLOCKS_BETWEEN)


def bounds(counts, machine, resident=None, bytes_of_dram=None, pairs=0.0, ahead=(NONE_AHEAD, NONE_AHEAD)):
    """Seconds by bound. `resident`: sub-groups that a unit holds of this kernel; `bytes_of_dram`: what must be read and written at least, else the sectors touched;
    `pairs`: share of the f32 instructions that are issued two at a time; `ahead`: of global and of local loads the share of
    their latency that a sub-group's own instructions between a load and its first use hide, and how many are on their way together. Other sub-groups that run
    meanwhile are in the bounds of what they take, and the largest bound stays."""
    m = machine
    issued = sum(n for name, n in counts.items() if name.startswith('issues_')) - pairs / 2 * counts['issues_f32']
    units = max(1, min(m['units'], counts['groups']))
    a_clock = 1e-9 / m['clock_ghz']

    def by_unit(clocks):
        return clocks / units * a_clock

    sectors = counts['load_sectors'] + counts['store_sectors']
    lines = counts['load_lines'] + counts['store_lines']
    result = {
        'issue': by_unit(issued / m['issues']),
        'f32': by_unit(counts['issues_f32'] * m['width'] / m['f32']),
        'f64': by_unit(counts['issues_f64'] * m['width'] / m['f64']),
        'integer': by_unit(counts['issues_integer'] * m['width'] / m['integer']),
        'special': by_unit(counts['issues_special'] * m['width'] / m['special']),
        'local memory': by_unit(counts['local_passes'] / m['lds']),
        'L1': by_unit((max(lines, sectors / 4) + counts['constant_passes'] + counts['scratch_bytes'] / 128) / m['lines']),
        'L2': sectors * 32 / (m['l2_gbs'] * 1e9),
        'DRAM': (bytes_of_dram or 32 * (counts['load_touched'] + counts['store_touched'])) / (m['dram_gbs'] * 1e9 * m['stream']),
        'matrix': by_unit(counts.get('issues_matrix', 0) * m.get('matrix', 0)),
        'atomics': by_unit(2 * counts['atomic_passes']),
    }
    # A sub-group by itself; as many as are held at a time run beside it. All take as long as the longest one, or, where more sub-groups follow in its place, as
    # their mean as often as a unit is filled.
    sub_groups = max(1, counts['sub_groups'])
    share = counts['longest'] / max(1, issued / sub_groups)
    # A sub-group's matrix instructions all run on the scheduler that it is on.
    matrix = counts.get('issues_matrix', 0) * max(0, m.get('matrix', 0) * m['issues'] - CLOCKS_BETWEEN)
    own = matrix + CLOCKS_BETWEEN * (issued - counts['issues_memory'])
    waits = 0.0
    for latency, times, (share_ahead, together) in ((m['latency'], counts['waits'], ahead[0]), (m['local_latency'], counts['local_waits'], ahead[1])):
        # The counts have TOGETHER on their way together. Nothing hides more than the time that a sub-group's own instructions take.
        all_of = latency * times * min(1.0, TOGETHER / max(1.0, together))
        waits += all_of - min(all_of * share_ahead, own)
    serial = (own + waits) / sub_groups + m['local_latency'] * counts['barriers'] / max(1, counts['groups'])
    rounds = sub_groups / (units * (resident or m['resident']))
    result['latency'] = max(1.0, share, rounds) * serial * a_clock
    return result


def seconds(of_bounds):
    return sum(b**SHARPNESS for b in of_bounds.values())**(1 / SHARPNESS)


def binding(of_bounds):
    return max(of_bounds, key=lambda name: of_bounds[name])


def ideal_seconds(flops, size, machine, by_matrix=False):
    """The roofline: what the device's peaks allow, without a share of them lost; by_matrix: the peak of matrix instructions."""
    peak = machine['matrix_tflops'] * 1e12 if by_matrix else machine['units'] * machine['f32'] * 2 * machine['clock_ghz'] * 1e9
    return max(flops / peak, size / (machine['dram_gbs'] * 1e9))


def extrapolate(runs, groups, work):
    """Counts of a launch of `groups` groups and an amount of work, from runs (groups, work, counts). If all have the same work for each group, work takes the same
    there, however groups share it; else two runs give a number for each group and one for each unit of work."""
    (g, w, first) = runs[0]
    if all(math.isclose(other_w / other_g, w / g, rel_tol=0.01) for other_g, other_w, _ in runs):
        result = {name: n * (groups / g if name in ('groups', 'sub_groups', 'items') else work / w) for name, n in first.items()}
    else:
        (h, x, second) = runs[-1]
        determinant = g * x - h * w
        result = {}
        for name, n in first.items():
            of_group, of_work = (n * x - second[name] * w) / determinant, (second[name] * g - n * h) / determinant
            result[name] = max(0.0, of_group * groups + of_work * work)
    # The longest sub-group stays as much longer than the mean as it is.
    issued = {'first': 0, 'result': 0}
    for name, n in first.items():
        if name.startswith('issues_'):
            issued['first'] += n
            issued['result'] += result[name]
    mean = issued['first'] / first['sub_groups']
    result['longest'] = first['longest'] / mean * issued['result'] / result['sub_groups'] if mean else 0
    result['width'] = first['width']
    return result


def of_unit(target):
    """What the compiler of a target says as occupancy when a unit is full: per cent, waves of a SIMD, or lanes (of Intel's, whose units always hold as many threads)."""
    return 100.0 if target.startswith('sm_') else {'gfx942': 8.0, 'gfx1100': 16.0, 'dg2': 32.0}[target]


def occupancy(target, kernel, call):
    """Share of a unit's sub-groups that tests/gpu/budget.tsv says of a kernel in a call of the budget's. A kernel that it does not know ends the program: any share would be a guess."""
    row = budget.read(os.path.join(HERE, 'budget.tsv')).get((target, kernel, call))
    if not row or not float(row['occupancy'] or 0) > 0:
        raise SystemExit(f'gpu-cost: tests/gpu/budget.tsv must have the row {target} {kernel} ({call}): scripts/gpu-check --targets {target} --op {kernel.split("_")[0]} --update writes it')
    return float(row['occupancy']) / of_unit(target)


def sub_groups_of(share, machine):
    """Whole sub-groups that a unit holds; compilers round the share down."""
    return math.ceil(round(share * machine['resident'], 6))


def pairs_of(target, kernel, call):
    """Share of the f32 instructions of a kernel in a call of the budget's that are issued in pairs, as tests/gpu/pairs.tsv says; 0 where none are."""
    return budget.read_shares(os.path.join(HERE, 'pairs.tsv')).get((target, kernel, call), [0.0])[0]


def ahead_of(target, kernel, call):
    """What tests/gpu/ahead.tsv says of the loads of a kernel in a call of the budget's, for bounds(); none where none is ahead."""
    row = budget.read_shares(os.path.join(HERE, 'ahead.tsv')).get((target, kernel, call))
    return (row[:2], row[2:]) if row else (NONE_AHEAD, NONE_AHEAD)


def read_table(path):
    """Rows of a file of tab-separated columns, each {column: text}. Lines that start with # are comments."""
    with open(path) as file:
        return list(csv.DictReader((line for line in file if not line.startswith('#')), delimiter='\t'))


def measured(path=os.path.join(HERE, 'measured.tsv')):
    """Microseconds by (call, machine)."""
    return {(row['call'], row['machine']): float(row['microseconds']) for row in read_table(path)}


Part = collections.namedtuple('Part', 'kernel binding seconds')  # what a kernel takes of a call
Estimate = collections.namedtuple('Estimate', 'call machine binding seconds roofline measured parts', defaults=((),))


def by_launch(runs, launched, work):
    """[(runs, groups of the launch at the call's own shape, turns)] of the launches of a kernel: runs of small sizes (groups, work, counts) in the order in which they were made."""
    of_size = collections.defaultdict(list)
    for run in runs:
        of_size[run[1]].append(run)
    times = {len(all_of) for all_of in of_size.values()}
    # Several launches at each size are each extrapolated for themselves. Of equal launches at the call's own shape one is planned.
    if len(times) == 1 and (many := times.pop()) > 1 and len(launched) in (1, many):
        return [([all_of[i] for all_of in of_size.values()], launched[i % len(launched)], 1) for i in range(many)]
    # A call that launches a kernel once at the small sizes, and often at its own, takes its work in so many turns.
    turns = max(1.0, runs[-1][0] / runs[-1][1] * work / launched[0]) if len(launched) > 1 and len(runs) <= 2 else 1
    return [(runs, launched[0 if turns > 1 else -1], turns)]


def estimate_calls(counted, planned, costs, budget_calls, machine_name, times):
    """Estimates of calls: counted[call][kernel] are runs, planned[call][kernel] groups of each launch at the stated shape, costs[call] (work, flops, bytes), budget_calls[call, kernel] the
    call of tests/gpu/budget.tsv with the same program."""
    machine = MACHINES[machine_name]
    target, result = machine['target'], []
    for call, kernels in counted.items():
        work, flops, size = costs[call]
        parts, by_bound, by_matrix = [], collections.Counter(), False
        # A call's bytes are its main kernel's: the one with most groups.
        main = max(kernels, key=lambda k: planned[call].get(k, [0])[-1])
        for kernel, runs in kernels.items():
            if kernel not in planned[call]:
                raise SystemExit(f'gpu-cost: {call} launches {", ".join(planned[call])} at its shape, and {kernel} at the small ones')
            compiled = budget_calls[call, kernel]
            resident = sub_groups_of(occupancy(target, kernel, compiled), machine)
            of_kernel, launches = collections.Counter(), by_launch(runs, planned[call][kernel], work)
            for of_launch, groups, turns in launches:
                counts = extrapolate(of_launch, groups, work / turns)
                of_bounds = bounds(counts, machine, resident, size / turns if kernel == main and len(launches) == 1 else None, pairs_of(target, kernel, compiled), ahead_of(target, kernel, compiled))
                by_matrix = by_matrix or of_bounds['matrix'] > 0
                of_kernel[binding(of_bounds)] += turns * seconds(of_bounds)
            by_bound.update(of_kernel)
            parts.append(Part(kernel, of_kernel.most_common(1)[0][0], sum(of_kernel.values())))
        total = sum(part.seconds for part in parts)
        result.append(Estimate(call, machine_name, by_bound.most_common(1)[0][0], total, ideal_seconds(flops, size, machine, by_matrix) / total, times.get((call, machine_name)), tuple(parts)))
    return result


def error_of(estimates):
    """(median, largest) relative error over the calls that were measured; None if none was."""
    errors = sorted(abs(e.seconds * 1e6 / e.measured - 1) for e in estimates if e.measured)
    return (errors[len(errors) // 2], errors[-1]) if errors else None


# Rows of the bench that make the same calls.
BENCH_ROWS = {
    'addcdiv 2^24': 'addcdiv/f32/16777216',
    'randn 2^24': 'randn/f32/16777216',
    'AdamW 2^24': 'adamw/f32/one_16M',
    'sum, 16384 rows of 1024': 'sum/f32/rows_16384x1024',
    'softmax, 16384 x 1024': 'softmax/f32/16384x1024',
    'matmul 1024': 'matmul/f32/1024_1024_1024',
}
ESTIMATES = os.path.join(HERE, 'estimates.tsv')
ALL_KERNELS = 'all'
ESTIMATE_COLUMNS = ['call', 'machine', 'kernel', 'bound by', 'microseconds', 'roofline %', 'loads %', 'stores %', 'passes', 'worst']
ESTIMATES_HEAD = f'''# SPDX-License-Identifier: Apache-2.0
# What scripts/gpu-cost --calls all --update estimated of calls (count/stated_calls.cpp) and their kernels; no figure may get worse. No GPU was measured.
# roofline: of the data sheet's peaks; loads, stores: sectors of global memory that must be touched, in per cent of those that are; passes: of local memory, for each
# that is needed, and the most of one: 2 is a conflict of two.
'''


def write_estimates(rows, path=ESTIMATES):
    with open(path, 'w') as file:
        file.write(ESTIMATES_HEAD + ''.join('\t'.join(row) + '\n' for row in [ESTIMATE_COLUMNS] + rows))


def read_estimates(path=ESTIMATES):
    """Rows of a table that write_estimates() wrote."""
    rows = [line.rstrip('\n').split('\t') for line in open(path) if not line.startswith('#')]
    if not rows or any(len(row) != len(ESTIMATE_COLUMNS) for row in rows) or rows[0] != ESTIMATE_COLUMNS:
        raise ValueError(f'{path}: the columns must be {" ".join(ESTIMATE_COLUMNS)}')
    return rows[1:]


PROFILED = [name for name, m in MACHINES.items() if m['profile']]  # machines whose launches can be planned


def machine_of(device):
    """The machine of a device's name, as its driver tells it; None if the table of machines has none of this kind."""
    return next((name for name in PROFILED if name.upper() in device.upper() or MACHINES[name]['target'] in device), None)


def beside_measured(device, rows, path=ESTIMATES):
    """What was estimated beside what the bench measured: {row: microseconds} -> [{row, bound by, estimated, measured, error}], the error relative to what was measured."""
    machine = machine_of(device)
    result = []
    for call, of, kernel, bound, microseconds, *_ in read_estimates(path):
        row = BENCH_ROWS.get(call)
        if of != machine or kernel != ALL_KERNELS or row not in rows:
            continue
        estimated, took = float(microseconds), rows[row]
        result.append({'row': row, 'bound by': bound, 'estimated_us': estimated, 'measured_us': round(took, 1), 'error': round(estimated / took - 1, 3)})
    return result

# SPDX-License-Identifier: Apache-2.0
"""What scripts/gpu-cost --published runs: estimates of well-known kernels (count/public.cl) beside speeds that others have published (published.tsv)."""
import os
import subprocess

import ahead
import check
import compilers
import cost
import cost_model
import listing

POINTS = 15  # within which an estimate must be, in per cent of the machine's roofline
PATH = os.path.join(cost_model.HERE, 'published.tsv')


def occupancies(targets):
    """{(kernel, target): (share of a unit's sub-groups, share of fma in pairs, shares of latency that are hidden)}, as the compilers say; None if they cannot be had."""
    vendors = sorted({compilers.vendor_of(target)[0] for target in targets.values()})
    if subprocess.run([os.path.join(cost_model.HERE, 'fetch'), *vendors]).returncode != 0:
        return None
    folder = os.path.join(cost.BUILD, 'published')
    os.makedirs(folder, exist_ok=True)
    run = subprocess.run([os.path.join(cost.TESTS, 'test_gpu_count'), '--gtest_filter=CountPublic.*'], env={**os.environ, 'PUBLISHED_PROGRAMS': folder}, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f'gpu-cost: the programs could not be written:\n{run.stdout[-6000:]}')
    result = {}
    for kernel, target in targets.items():
        vendor, of_vendor = compilers.vendor_of(target)
        compiler = of_vendor(os.path.join(cost.BUILD, 'compilers', vendor, 'root'), 120)
        source = open(os.path.join(folder, kernel + '.cl')).read()
        _, entry, items = source.split('\n', 1)[0].split()
        outputs = check.Cache().get(compilers.digest('published', compiler.version, target, source), lambda: compilers.compile_program(compiler, source, ['-cl-std=CL1.2'], target, entry))
        if 'error' in outputs:
            raise SystemExit(f"gpu-cost: {kernel} did not compile for {target}: {outputs['error']}")
        said, code, _ = compiler.read(outputs, entry, target, int(items), 0)
        shares = ahead.hidden(compiler.vendor, target, code, **cost_model.waits_of(target))
        result[kernel, target] = said['occupancy'] / cost_model.of_unit(target), listing.pairs(listing.numbers(compiler.vendor, code)[1]), [shares[kind] or cost_model.NONE_AHEAD for kind in ('global', 'local')]
    return result


def compare(rows, runs, occupancy):
    """Of each row (kernel, machine, bound, estimated and published per cent of the roofline, why it is known to be off)."""
    result = []
    for row in rows:
        machine = cost_model.MACHINES[row['machine']]
        launches = [(counts, [float(n) for n in words]) for (name, words, counts) in runs if name == row['kernel'] and counts['width'] == machine['width']]
        if not launches:
            raise SystemExit(f"gpu-cost: {row['kernel']} must be one of count/public_test.cpp")
        _, groups, work, flops, size = launches[0][1]
        counts = cost_model.extrapolate([(c['groups'], words[0], c) for c, words in launches], groups, work)
        share, pairs, hidden = occupancy[row['kernel'], machine['target']]
        of_bounds = cost_model.bounds(counts, machine, cost_model.sub_groups_of(share, machine), size, pairs, hidden)
        ideal = cost_model.ideal_seconds(flops, size, machine)
        amount = flops if row['unit'] == 'GFLOP/s' else size
        result.append((row['kernel'], row['machine'], cost_model.binding(of_bounds), 100 * ideal / cost_model.seconds(of_bounds), 100 * ideal * float(row['speed']) * 1e9 / amount,
                       row['known']))
    return result


def verdict(compared):
    """Lines of what is wrong: a row that is off without being known to be, and one that is known to be off and is not."""
    wrong = []
    for kernel, machine, _, estimated, published, known in compared:
        off = abs(estimated - published) > POINTS
        if off and not known:
            wrong.append(f'{kernel} on {machine}: estimated {estimated:.0f} %, published {published:.0f} %, must be within {POINTS} points')
        if known and not off:
            wrong.append(f'{kernel} on {machine}: is within {POINTS} points, and {os.path.basename(PATH)} says why it is not: "{known}"')
    return wrong


def main():
    rows = cost_model.read_table(PATH)
    counted = cost.run_counted('h100', 'published.counts', 'CountPublic.*', {})
    if counted is None:
        return cost.SKIPPED
    runs = []
    for label, _, counts in cost.read_counts_of(counted, lambda label: label.startswith('public/')):
        _, name, *words = label.split('/')
        runs.append((name, words, counts))
    occupancy = occupancies({row['kernel']: cost_model.MACHINES[row['machine']]['target'] for row in rows})
    if occupancy is None:
        print('gpu-cost: skipped, since compilers of GPUs could not be fetched')
        return cost.SKIPPED
    compared = compare(rows, runs, occupancy)
    print(cost.aligned([['kernel', 'machine', 'bound by', 'estimated %', 'published %', 'points off', 'known']] +
                       [[kernel, machine, bound, f'{e:.1f}', f'{p:.1f}', f'{e - p:+.1f}', known] for kernel, machine, bound, e, p, known in compared]))
    wrong = verdict(compared)
    for line in wrong:
        print(f'WRONG  {line}')
    within = sum(abs(e - p) <= POINTS for _, _, _, e, p, _ in compared)
    print(f'gpu-cost: {within} of {len(compared)} kernels are estimated within {POINTS} points of the roofline of what was published')
    return 1 if wrong else 0

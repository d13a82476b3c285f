# SPDX-License-Identifier: Apache-2.0
"""What scripts/gpu-cost --calls runs: estimates of calls of stated shapes (count/stated_calls.cpp), beside estimates.tsv, from which no figure may get worse, and targets.tsv."""
import collections
import concurrent.futures
import fnmatch
import math
import os
import subprocess

import check
import cost
import cost_model
import exceptions

TARGETS = os.path.join(cost_model.HERE, 'targets.tsv')
# Whether more is better, by column: of figures that may not get worse.
MORE_IS_BETTER = {'microseconds': False, 'roofline %': True, 'loads %': True, 'stores %': True, 'passes': False, 'worst': False}
HELD = [(cost_model.ESTIMATE_COLUMNS.index(heading), heading, more) for heading, more in MORE_IS_BETTER.items()]


def only():
    """A part of the names of calls, by GPU_COUNT_ONLY; empty: all."""
    return os.environ.get('GPU_COUNT_ONLY', '')


def plan_calls(profile):
    """On the stub driver, which runs nothing: (groups of each launch by call and kernel, its program likewise, (work, flops, bytes) by call)."""
    folder = os.path.join(cost.BUILD, 'plans')
    os.makedirs(folder, exist_ok=True)
    environment = {**os.environ, 'OCL_ICD_VENDORS': os.path.join(cost.TESTS, 'libclutch_stub_driver.so'), 'CLUTCH_SELF_TEST': 'off', 'CLUTCH_MATRIX_INSTRUCTIONS': 'on', 'CLUTCH_POISON_SCRATCH': '0', 'CLUTCH_CACHE': 'off',
                   'STUB_PROFILE': os.path.join(cost.ROOT, 'tests/stub/profiles', profile), 'STUB_PLANS': folder, 'STUB_COMPILER': 'c++'}
    run = subprocess.run([os.path.join(cost.TESTS, 'test_gpu_count'), '--gtest_filter=CountCalls.*'], env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f'gpu-cost: the calls could not be planned as on {profile}:\n{run.stdout[-6000:]}')
    planned, programs, costs = collections.defaultdict(lambda: collections.defaultdict(list)), {}, {}
    for line in open(os.path.join(folder, profile + '.launches')):
        program, kernel, local, size, _, label = line.rstrip('\n').split('\t')
        if label.startswith('call/'):
            call = label.split('/')[1]
            groups = math.prod(int(n) for n in size.split('x')) // math.prod(int(n) for n in local.split('x'))
            planned[call][kernel].append(groups)
            programs[call, kernel] = program
    for line in run.stdout.split('\n'):
        if line.startswith('cost\tcall/'):
            _, name, work, flops, size = line.split('\t')[1].split('/')
            costs[name] = (float(work), float(flops), float(size))
    return planned, programs, costs


def count_calls(profile, width):
    """Runs of small sizes, by call and kernel: (groups, work, counts). On a GPU with one unit, so that small sizes are cut as large ones are on all units."""
    one = os.path.join(cost.BUILD, f'{profile}.one_unit')
    os.makedirs(cost.BUILD, exist_ok=True)
    with open(one, 'w') as file:
        file.writelines('units 1\n' if line.startswith('units ') else line for line in open(os.path.join(cost.ROOT, 'tests/stub/profiles', profile)))
    counted = cost.run_counted(one, profile + '.calls', 'CountCalls.*', {})
    if counted is None:
        return None
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for label, kernel, counts in cost.read_counts(counted):
        if label.startswith('call/') and counts['width'] == width:
            _, name, work, _, _ = label.split('/')
            runs[name][kernel].append((counts['groups'], float(work), counts))
    return runs


def budget_calls(target, profile, programs):
    """The call of tests/gpu/budget.tsv that has the same program, by call and kernel. One that has none ends the program: nothing would be known of what its compiler made."""
    plans = check.make_plans(profile)
    same = {(task.kernel, task.program): task.call for task in check.tasks_of(target, plans, profile, None, False)}
    missing = [f'{kernel} of {call}' for (call, kernel), program in sorted(programs.items()) if (kernel, program) not in same]
    if missing:
        raise SystemExit(f"gpu-cost: the calls of tests/stub/gpu_plans_test.cpp must launch the same programs for {target}, they lack {'; '.join(missing)}")
    return {of: same[of[1], program] for of, program in programs.items()}


def access(runs):
    """[loads %, stores %, passes of local memory for each that is needed, the most of one] of a kernel at its largest counted size."""
    most = max(work for _, work, _ in runs)
    all_of = [counts for _, work, counts in runs if work == most]
    total = lambda name: sum(counts[name] for counts in all_of)
    return [cost.share(total('load_ideal'), total('load_sectors')), cost.share(total('store_ideal'), total('store_sectors')), cost.ratio(total('local_passes'), total('local_ideal')),
            str(max(counts['local_worst'] for counts in all_of)) if total('local_ideal') else '-']


def rows_of(estimates, accesses):
    """Rows of estimates.tsv: of each call and machine one of all its kernels, then each kernel's. `accesses`: access() by (call, machine, kernel)."""
    rows = []
    for e in estimates:
        rows.append([e.call, e.machine, cost_model.ALL_KERNELS, e.binding, f'{e.seconds * 1e6:.1f}', f'{100 * e.roofline:.1f}', '-', '-', '-', '-'])
        rows += [[e.call, e.machine, part.kernel, part.binding, f'{part.seconds * 1e6:.1f}', '-'] + accesses[e.call, e.machine, part.kernel] for part in e.parts]
    return sorted(rows)


def short_of(rows, targets):
    """(lines of what falls short of its target and is not known to, and of what is known to and does not; how many targets are met, and how many are not). Rows without a figure have
    no say."""
    wrong, met, missed = [], 0, 0
    for target in targets:
        matches = lambda text, name: any(fnmatch.fnmatchcase(text, pattern) for pattern in target[name].split('; '))
        at, more, limit = cost_model.ESTIMATE_COLUMNS.index(target['figure']), MORE_IS_BETTER[target['figure']], float(target['target'])
        mine = [row for row in rows if row[at] != '-' and all(matches(row[i], name) for i, name in enumerate(('call', 'machine', 'kernel')))]
        short = [row for row in mine if (float(row[at]) < limit if more else float(row[at]) > limit)]
        met, missed = met + bool(mine and not short), missed + bool(short)
        if short and not target['known']:
            wrong += [f"{' '.join(cost.key(row))}: {target['figure']} must be at {'least' if more else 'most'} {target['target']}, got {row[at]}" for row in short]
        if mine and not short and target['known']:
            wrong.append(f"{target['figure']} of {target['call']} on {target['machine']} is as it should be, and {os.path.basename(TARGETS)} says why it is not: \"{target['known']}\"")
    return wrong, met, missed


def count_all(machines):
    """({profile: what count_calls() gives}, {profile: what plan_calls() gives, with the budget's calls for the programs}); None if Oclgrind is missing. Profiles run side by side."""
    of_profile = {}
    for name in machines:
        of_profile.setdefault(cost_model.MACHINES[name]['profile'], cost_model.MACHINES[name])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = dict(zip(of_profile, pool.map(lambda p: count_calls(p, of_profile[p]['width']), of_profile)))
    if None in counted.values():
        return None
    plans = {}
    for profile, machine in of_profile.items():
        planned, programs, costs = plan_calls(profile)
        plans[profile] = (planned, costs, budget_calls(machine['target'], profile, programs))
    return counted, plans


def estimate(machines):
    """(estimates, rows of estimates.tsv) of the machines; None if Oclgrind is missing."""
    of_all = count_all(machines)
    if of_all is None:
        return None
    counted, plans = of_all
    times, estimates, accesses = cost_model.measured(), [], {}
    for name in machines:
        profile = cost_model.MACHINES[name]['profile']
        estimates += cost_model.estimate_calls(counted[profile], *plans[profile], name, times)
        accesses.update({(call, name, kernel): access(runs) for call, kernels in counted[profile].items() for kernel, runs in kernels.items()})
    return estimates, rows_of(estimates, accesses)


def show(estimates, rows):
    times = {(e.call, e.machine): e.measured for e in estimates if e.measured}
    shown = [cost_model.ESTIMATE_COLUMNS + ['measured us', 'error %']]
    for row in rows:
        measured = times.get((row[0], row[1])) if row[2] == cost_model.ALL_KERNELS else None
        shown.append(row + ([f'{measured:g}', f'{100 * (float(row[4]) / measured - 1):+.0f}'] if measured else ['-', '-']))
    print(cost.aligned(shown))
    error = cost_model.error_of(estimates)
    said = f'where a time was measured they are off by {100 * error[0]:.0f} % in the median and {100 * error[1]:.0f} % at most' if error else 'none of these was measured'
    print(f'gpu-cost: estimates of a model, not measurements; {said}')


def main(machines, update):
    made = estimate(machines)
    if made is None:
        return cost.SKIPPED
    estimates, rows = made
    show(estimates, rows)
    held = cost_model.read_estimates()
    worse, better, new = cost.compare(held, rows, HELD)
    if update:
        # All calls of a machine take the place of those that it had.
        gone = set() if only() else set(machines)
        kept = {cost.key(row): row for row in held if row[1] not in gone}
        cost_model.write_estimates([row for _, row in sorted({**kept, **{cost.key(row): row for row in rows}}.items())])
        exceptions.main(['--write'])  # the table of docs/devices.md
        print(f'gpu-cost: {len(rows)} rows of {os.path.relpath(cost_model.ESTIMATES, cost.ROOT)} written')
    wrong, met, missed = short_of(rows, cost_model.read_table(TARGETS))
    for line in worse + better + new + [f'SHORT  {line}' for line in wrong]:
        print(line)
    print(f'gpu-cost: {len(worse)} rows worse than tests/gpu/estimates.tsv, {len(better)} better, {len(new)} new; of tests/gpu/targets.tsv {met} targets are met and {missed} are not, '
          f'{len(wrong)} of both otherwise than it says')
    return 1 if wrong or (worse and not update) else 0

# SPDX-License-Identifier: Apache-2.0
"""What scripts/gpu-check runs: plans of the stub driver, compiled for GPUs, beside their budget."""
import argparse
import collections
import concurrent.futures
import gzip
import inspect
import json
import math
import os
import subprocess
import sys
import time

import ahead
import budget
import compilers
import cost_model
import exceptions
import listing
import page

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
BUILD = os.path.join(ROOT, 'build/gpu')
PROFILES = os.path.join(ROOT, 'tests/stub/profiles')
QUICK = ['gfx942', 'sm_90', 'dg2']
ALL = ['gfx942', 'gfx1100', 'gfx1201', 'sm_80', 'sm_90', 'sm_120', 'dg2', 'pvc']
PAIRS = os.path.join(ROOT, 'tests/gpu/pairs.tsv')
AHEAD = os.path.join(ROOT, 'tests/gpu/ahead.tsv')
SKIPPED = 77

# One program of a kernel, for a target: launches are (local size, arguments) of all its launches.
Task = collections.namedtuple('Task', 'target kernel call program launches')


def profile_of(target):
    for name in sorted(os.listdir(PROFILES)):
        for line in open(os.path.join(PROFILES, name)):
            if line.split()[:1] == ['targets'] and target in line.split()[1:]:
                return name
    raise SystemExit(f'gpu-check: a target must be one that a file of tests/stub/profiles names, got {target!r}')


def make_plans(profile):
    """Runs the library as on that GPU, by the profile's test; returns the folder with programs and launches. What is newer than the test stays."""
    release = os.path.join(ROOT, 'build/release/tests')
    plans = os.path.join(release, 'gpu_plans')
    # Of a run that did not end there are launches, too, but not all.
    complete = os.path.join(plans, profile + '.complete')
    made_of = [os.path.join(release, 'test_gpu_plans'), os.path.join(release, 'libclutch_stub_driver.so'), os.path.join(PROFILES, profile)]
    if os.path.exists(complete) and all(os.path.getmtime(f) < os.path.getmtime(complete) for f in made_of):
        return plans
    if os.path.exists(complete):
        os.remove(complete)
    log = os.path.join(plans, profile + '.log')
    with open(log, 'w') as file:
        test = subprocess.run(['ctest', '--test-dir', os.path.dirname(release), '-R', f'^gpu_plans_{profile}$', '--no-tests=error', '--output-on-failure'], stdout=file,
                              stderr=subprocess.STDOUT)
        if test.returncode != 0:
            raise SystemExit(f'gpu-check: the plans of {profile} could not be made, see {log}')
    with open(complete, 'w'):
        pass
    return plans


def has_instructions(target, path):
    """False of a program for instructions that the profile's device has and the target has not: mma of f8, from compute capability 8.9 on."""
    if not target.startswith('sm_') or int(target[3:]) >= 89:
        return True
    with open(path) as file:
        return '#define CLUTCH_NUMBERS 5\n' not in file.read()  # MATMUL_NUMBERS_F8


def is_of(kernel, ops):
    """True of kernels of one of the ops, or that are named; without any, of all."""
    return not ops or any(kernel == op or kernel.startswith(op + '_') for op in ops)


def tasks_of(target, folder, profile, ops, quick):
    """The programs that the profile's launches name and the target has instructions for, those of real calls first; in a quick run the first of each kernel."""
    found = {}
    for line in open(os.path.join(folder, profile + '.launches')):
        program, kernel, local, _, arguments, call = line.rstrip('\n').split('\t')
        if not call or not is_of(kernel, ops) or not has_instructions(target, os.path.join(folder, program + '.cl')):
            continue
        found.setdefault((kernel, program), (call, []))[1].append((local, arguments))
    tasks, names, kernels = [], collections.Counter(), set()
    for (kernel, program), (call, launches) in sorted(found.items(), key=lambda item: item[1][0].startswith('problem ')):
        names[kernel, call] += 1
        if quick and kernel in kernels:
            continue
        kernels.add(kernel)
        tasks.append(Task(target, kernel, call if names[kernel, call] == 1 else f'{call} #{names[kernel, call]}', program, launches))
    return tasks


class Cache:
    """What compilers gave, below build/gpu/cache by the digest of what they were given."""

    def __init__(self):
        self.folder = os.path.join(BUILD, 'cache')
        os.makedirs(self.folder, exist_ok=True)

    def get(self, name, make):
        path = os.path.join(self.folder, name + '.json.gz')
        if os.path.exists(path):
            with gzip.open(path, 'rt') as file:
                return json.load(file)
        made = make()
        part = f'{path}.{os.getpid()}'
        with gzip.open(part, 'wt', compresslevel=3) as file:
            json.dump(made, file)
        os.replace(part, path)
        return made


def text_of(*names):
    return ''.join(open(os.path.join(os.path.dirname(__file__), name)).read() for name in names)


def wrong_arguments(parameters, launches):
    """The first launch whose arguments are not the compiled kernel's, as a line; None if there is none."""
    for _, arguments in launches:
        # Sizes of local memory are the launch's own.
        given = ['l' if a.startswith('l') else a for a in arguments.split(',') if a]
        if given != parameters:
            return f"the launch binds {','.join(given)}, the compiled kernel takes {','.join(parameters)}"
    return None


def measure(task, compiler, folder, cache, reader):
    """The row of a task, with `lines` of the hot loop and of the source beside it."""
    source = open(os.path.join(folder, task.program + '.cl')).read()
    options = source.split('\n', 1)[0].removeprefix('// options: ').split()
    version = compiler.version
    commands = inspect.getsource(type(compiler).compile) + inspect.getsource(compilers.Compiler.clang)
    made = compilers.digest(version, task.target, task.kernel, source, commands)
    local = max((math.prod(map(int, sizes.split('x'))) for sizes, _ in task.launches), default=1) or 64
    dynamic = max(sum(int(a[1:]) for a in arguments.split(',') if a.startswith('l')) for _, arguments in task.launches)

    machine = cost_model.waits_of(task.target)

    def read():
        outputs = cache.get(made, lambda: compilers.compile_program(compiler, source, options, task.target, task.kernel))
        row = {'target': task.target, 'kernel': task.kernel, 'call': task.call, 'compiler': version, 'error': ''}
        if 'error' in outputs:
            return dict(row, error=outputs['error'])
        numbers, code, parameters = compiler.read(outputs, task.kernel, task.target, local, dynamic)
        counted, hot = listing.numbers(compiler.vendor, code)
        lines = source.split('\n')
        shown = [(i.text, i.line, lines[i.line - 1].strip() if 0 < i.line <= len(lines) else '') for i in hot[:400]]
        shares = {}
        for kind, of in ahead.hidden(compiler.vendor, task.target, code, **machine).items() if machine else ():
            shares.update(zip((f'ahead_{kind}', f'together_{kind}'), of or ()))
        return dict(row, **numbers, **counted, **shares, pairs=listing.pairs(hot), shown=shown, parameters=parameters)

    row = cache.get(compilers.digest(made, reader, str(local), str(dynamic), task.call, str(machine)), read)
    if not row['error'] and (wrong := wrong_arguments(row['parameters'], task.launches)):
        row['arguments'] = wrong
    row['program'] = task.program
    return row


def parse(arguments):
    parser = argparse.ArgumentParser(prog='scripts/gpu-check', description='Compiles the programs that clutch would run on GPUs and holds what they take to tests/gpu/budget.tsv.')
    parser.add_argument('--quick', action='store_true', help=f'a program of each kernel, for {",".join(QUICK)}')
    parser.add_argument('--targets', help=f'by commas; {",".join(ALL)} by default')
    parser.add_argument('--op', help='kernels of ops of CLUTCH_OPS, or kernels, by commas')
    parser.add_argument('--update', action='store_true', help='writes the budget anew')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='compilers that run at a time')
    parser.add_argument('--self-test', action='store_true', help='plants faults that the check must find')
    return parser.parse_args(arguments)


def main(arguments):
    o = parse(arguments)
    if o.self_test:
        import self_test
        return self_test.main()
    begun = time.monotonic()
    targets = o.targets.split(',') if o.targets else QUICK if o.quick else ALL
    profiles = {target: profile_of(target) for target in targets}
    subprocess.run([os.path.join(ROOT, 'tests/gpu/fetch'), *sorted({compilers.vendor_of(t)[0] for t in targets})], check=False)
    tools = {}
    for target in targets:
        vendor, make = compilers.vendor_of(target)
        if os.path.exists(os.path.join(BUILD, 'compilers', vendor, 'versions')):
            tools[target] = make(os.path.join(BUILD, 'compilers', vendor, 'root'), seconds=60)
    if left_out := [t for t in targets if t not in tools]:
        print(f"gpu-check: left out, without a compiler: {' '.join(left_out)}")
    if not tools:
        print('gpu-check: skipped, since no compiler could be fetched')
        return SKIPPED

    subprocess.run([os.path.join(ROOT, 'scripts/bootstrap')], check=True)
    subprocess.run([os.path.join(ROOT, 'scripts/build'), 'release', 'test_gpu_plans', 'clutch_stub_driver'], check=True)
    ops = o.op.split(',') if o.op else []
    folders = {profile: make_plans(profile) for profile in sorted({profiles[t] for t in tools})}
    planned = time.monotonic()
    tasks = [task for target in tools for task in tasks_of(target, folders[profiles[target]], profiles[target], ops, o.quick)]
    if not tasks:
        raise SystemExit(f'gpu-check: --op must name ops with kernels, or kernels, got {o.op!r}')
    cache, reader = Cache(), text_of('compilers.py', 'listing.py', 'ahead.py') + inspect.getsource(measure)
    with concurrent.futures.ThreadPoolExecutor(max(1, o.jobs)) as pool:
        rows = list(pool.map(lambda t: measure(t, tools[t.target], folders[profiles[t.target]], cache, reader), tasks))
    compiled = time.monotonic()

    path = os.path.join(ROOT, 'tests/gpu/budget.tsv')
    held = budget.read(path) if os.path.exists(path) else {}
    listed, wrong = exceptions.read(), []
    report = judge(rows, held, listed)
    stale = set() if o.quick else stale_keys(rows, held, set(tools), ops)
    page.write(os.path.join(BUILD, 'index.html'), rows, held)
    if o.update:
        kept = {of: row for of, row in {**held, **{budget.key(row): row for row in rows}}.items() if of not in stale}
        budget.write(path, kept)
        budget.write_shares(PAIRS, budget.PAIRS, rows, stale)
        budget.write_shares(AHEAD, budget.AHEAD, rows, stale)
        exceptions.write_document(exceptions.document(kept.values(), listed, cost_model.read_estimates(), cost_model.measured()))
        print(f'gpu-check: {len(rows)} rows of tests/gpu/budget.tsv written, {len(stale)} taken out that no launch has any more')
        wrong = exceptions.faults(kept.values(), listed)
    for line in report['lines'] + wrong:
        print(line)
    if stale and not o.update:
        print(f'gpu-check: {len(stale)} rows of tests/gpu/budget.tsv are of launches that are no more, --update takes them out')
    print(f"gpu-check: {len(rows)} kernels for {len(tools)} targets: {report['worse']} worse than their budget, {report['better']} better, {report['new']} without one, "
          f"{report['other']} by another compiler, {report['errors']} that do not compile, {report['unlisted']} with numbers in memory that are not in tests/gpu/exceptions.tsv; "
          f"plans {planned - begun:.0f} s, compilers {compiled - planned:.0f} s; page: build/gpu/index.html")
    return 1 if report['arguments'] or report['unlisted'] or wrong or (report['worse'] and not o.update) else 0


def stale_keys(rows, held, targets, ops):
    """Keys of the budget that a run over all programs of an op, or of all ops, for some targets has not met: launches that are no more."""
    met = {budget.key(row) for row in rows}
    return {key for key in held if key not in met and key[0] in targets and is_of(key[1], ops)}


def judge(rows, held, listed):
    """Counts and lines: what got worse fails, and so do spills, scratch memory and errors that no exception allows, with a budget and without one; what got better is said, rows of
    another compiler than the budget's are said and do not fail."""
    report = collections.Counter()
    lines = []
    known = {(row['target'], row['compiler']) for row in held.values()}
    targets = {target for target, _ in known}
    for row in sorted(rows, key=budget.key):
        name = f"{row['target']} {row['kernel']} ({row['call']})"
        report['errors'] += bool(row['error'])
        if row.get('arguments'):
            report['arguments'] += 1
            lines.append(f"WRONG ARGUMENTS {name}: {row['arguments']}")
        for line in exceptions.unlisted([row], listed):
            is_other = row['target'] in targets and (row['target'], row['compiler']) not in known
            report['unlisted'] += not is_other
            lines.append(f"other  {line}, by {row['compiler']}" if is_other else f'UNLISTED {line}')
        old = held.get(budget.key(row))
        if old is None:
            report['new'] += 1
            lines.append(f"new    {name}")
            continue
        worse, better = budget.compare(old, row)
        if old['compiler'] != row['compiler']:
            report['other'] += 1
            if worse or better:
                lines.append(f"other  {name}, {row['compiler']} for {old['compiler']}: {', '.join(worse + better)}")
            continue
        report['worse'] += bool(worse)
        report['better'] += bool(better and not worse)
        if worse:
            lines.append(f"WORSE  {name}: {', '.join(worse)}")
        if better:
            lines.append(f"better {name}: {', '.join(better)}")
    return {**{k: report[k] for k in ('errors', 'arguments', 'unlisted', 'new', 'other', 'worse', 'better')}, 'lines': lines}


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

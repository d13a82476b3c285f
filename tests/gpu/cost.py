# SPDX-License-Identifier: Apache-2.0
"""What scripts/gpu-cost runs: every op's small problems on Oclgrind as GPUs, and a table of what its plugin counted (tests/gpu/count/model.hpp)."""
import argparse
import collections
import os
import subprocess
import sys

import cost_model

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
BUILD = os.path.join(ROOT, 'build/gpu')
TESTS = os.path.join(ROOT, 'build/release/tests')
PROFILES = ['h100', 'mi300x']
SKIPPED = 77

# (heading, text of the figure from the sums of an entry's launches, and whether more is better; None: neither)
FIGURES = [
    ('loads %', lambda c: share(c['load_ideal'], c['load_sectors']), True),
    ('stores %', lambda c: share(c['store_ideal'], c['store_sectors']), True),
    ('sectors a load', lambda c: ratio(c['load_sectors'], c['load_pieces']), None),
    ('conflicts a local access', lambda c: ratio(c['local_passes'] - c['local_ideal'], c['local_pieces']), False),
    ('lanes busy %', lambda c: share(c['busy'], issued(c) * c['width']), True),
    ('barriers a group', lambda c: ratio(c['barriers'], c['groups']), False),
    ('atomics an item', lambda c: ratio(c['atomics'], c['items']), False),
    ('passes an atomic', lambda c: ratio(c['atomic_passes'], c['atomic_pieces']), False),
    ('scratch bytes an item', lambda c: ratio(c['scratch_bytes'], c['items']), False),
    ('issues an item', lambda c: ratio(issued(c) * c['width'], c['items']), False),
]


def issued(counts):
    return sum(n for name, n in counts.items() if name.startswith('issues_'))


def ratio(part, whole):
    """With two places; '-' of nothing."""
    return f'{part / whole:.2f}' if whole else '-'


def share(part, whole):
    return f'{100 * part / whole:.1f}' if whole else '-'


def read_counts_of(path, wanted):
    """Of each launch whose label is wanted (label, kernel, counts). Ends the program where Oclgrind found an error."""
    launches = []
    for line in open(path):
        label, kernel, _, _, text = line.rstrip('\n').split('\t')
        if not wanted(label):
            continue
        if text.startswith('error: '):
            raise SystemExit(f'gpu-cost: {kernel} of {label} was not counted: {text[7:]}')
        launches.append((label, kernel, {name: int(n) for name, n in (word.split('=') for word in text.split(' '))}))
    return launches


def read_counts(path):
    return read_counts_of(path, lambda label: True)


def sum_up(launches):
    """Sums by entry and sub-group, over the entry's own problems: what other entries' problems launch beside is left out."""
    sums = collections.defaultdict(collections.Counter)
    for label, kernel, counts in launches:
        parts = label.split('/')
        if len(parts) < 2 or parts[1] != kernel:
            continue
        width = counts.pop('width')
        longest = counts.pop('longest')
        row = sums[kernel, width]
        row.update(counts)
        row['launches'] += 1
        row['longest'] = max(row['longest'], longest)
        row['width'] = width
    return sums


KEYS = ['profile', 'entry', 'sub-group', 'launches']
HEADINGS = KEYS + [heading for heading, _, _ in FIGURES]
LICENCE = '# SPDX-License-Identifier: Apache-2.0'


def table_of(profile, sums):
    rows = []
    for (kernel, width), counts in sorted(sums.items()):
        rows.append([profile, kernel, str(width), str(counts['launches'])] + [figure(counts) for _, figure, _ in FIGURES])
    return rows


def write_table(path, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as file:
        file.write(LICENCE + '\n')
        for row in [HEADINGS] + rows:
            file.write('\t'.join(row) + '\n')


def read_table(path):
    """Rows of a table that write_table() wrote; none if there is no such file or its figures are others."""
    if not os.path.exists(path):
        return []
    rows = [line.rstrip('\n').split('\t') for line in open(path) if not line.startswith('#')]
    if not rows or rows[0] != HEADINGS:
        print(f'gpu-cost: the figures of {os.path.relpath(path, ROOT)} are others than those that are counted now: scripts/gpu-cost --update writes it anew')
        return []
    return rows[1:]


def key(row):
    return tuple(row[:3])


# (column, heading, whether more is better) of the figures that are held.
HELD = [(at, heading, more_is_better) for at, (heading, _, more_is_better) in enumerate(FIGURES, len(KEYS)) if more_is_better is not None]


def compare(held, rows, columns=HELD):
    """Lines of what got worse, what got better and what is new, by key. A figure that is there only on one side is new, not worse."""
    worse, better, new = [], [], []
    of_key = {key(row): row for row in held}
    for row in rows:
        old = of_key.get(key(row))
        name = ' '.join(key(row))
        if old is None:
            new.append(f'new    {name}')
            continue
        said = {True: [], False: []}
        for at, heading, more_is_better in columns:
            if old[at] == row[at] or '-' in (old[at], row[at]):
                continue
            got_better = (float(row[at]) > float(old[at])) == more_is_better
            said[got_better].append(f'{heading} {old[at]} -> {row[at]}')
        if said[False]:
            worse.append(f"WORSE  {name}: {', '.join(said[False])}")
        if said[True]:
            better.append(f"better {name}: {', '.join(said[True])}")
    return worse, better, new


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return '\n'.join('  '.join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip() for row in rows)


def run_counted(profile, name, tests, environment):
    """Runs tests of test_gpu_count as on a profile's GPU and returns the path of what was counted; None if Oclgrind or its plugin is missing."""
    path = os.path.join(BUILD, 'counts', name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    run = subprocess.run([os.path.join(ROOT, 'tests/gpu/count/run'), os.path.join(ROOT, 'build/drivers/oclgrind'), TESTS, profile, path, os.path.join(TESTS, 'test_gpu_count'),
                          f'--gtest_filter={tests}'], env={**os.environ, **environment}, capture_output=True, text=True)
    if run.returncode == SKIPPED:
        print(f'gpu-cost: {run.stdout.strip()}')
        return None
    if run.returncode != 0:
        raise SystemExit(f'gpu-cost: {tests} did not run right as on {profile}:\n{run.stdout[-6000:]}{run.stderr[-2000:]}')
    return path


def count_problems(profile, op, quick):
    name = profile + (f'.{op}' if op else '') + ('.quick' if quick else '')
    return run_counted(profile, name, 'CountProblems.*', {'GPU_COUNT_OP': op or '', 'GPU_COUNT_QUICK': '1' if quick else ''})


def parse(arguments):
    parser = argparse.ArgumentParser(prog='scripts/gpu-cost', description='Counts what kernels would cost GPUs, on a simulator, over the small problems of tests/cases.')
    parser.add_argument('--op', metavar='STEM', help='problems of one op of CLUTCH_OPS')
    parser.add_argument('--profiles', default=','.join(PROFILES), help=f'by commas, files of tests/stub/profiles; {",".join(PROFILES)} by default')
    parser.add_argument('--update', action='store_true', help='writes tests/gpu/cost.tsv anew, whose figures may not get worse; with --calls tests/gpu/estimates.tsv')
    parser.add_argument('--calls', nargs='?', const='h200', metavar='MACHINES',
                        help=f'estimates calls of stated shapes instead, beside what was measured and tests/gpu/estimates.tsv; by commas of {", ".join(cost_model.PROFILED)}, or all; h200 by default')
    parser.add_argument('--published', action='store_true', help='estimates well-known kernels instead, beside speeds that others have published')
    parser.add_argument('--self-test', action='store_true', help='plants faults that the reader and the comparison must find')
    parser.add_argument('--all', action='store_true', help='all problems, where else one of each entry is counted')
    return parser.parse_args(arguments)


def main(arguments):
    o = parse(arguments)
    if o.self_test:
        import cost_self_test
        return cost_self_test.main()
    known = sorted(os.listdir(os.path.join(ROOT, 'tests/stub/profiles')))
    profiles = o.profiles.split(',')
    for profile in profiles:
        if profile not in known:
            raise SystemExit(f'gpu-cost: a profile must be one of {", ".join(known)}, got {profile!r}')
    machines = cost_model.PROFILED if o.calls == 'all' else o.calls.split(',') if o.calls else []
    for machine in machines:
        if machine not in cost_model.PROFILED:
            raise SystemExit(f'gpu-cost: a machine must be one of {", ".join(cost_model.PROFILED)}, got {machine!r}')
    subprocess.run([os.path.join(ROOT, 'scripts/bootstrap')], check=True)
    if subprocess.run([os.path.join(ROOT, 'scripts/drivers'), 'oclgrind']).returncode != 0:
        print('gpu-cost: skipped, since Oclgrind could not be fetched')
        return SKIPPED
    subprocess.run([os.path.join(ROOT, 'scripts/build'), 'release', 'test_gpu_count', 'test_gpu_plans', 'clutch_stub_driver'], check=True)
    if o.published:
        import published
        return published.main()
    if o.calls:
        import calls
        return calls.main(machines, o.update)
    rows = []
    for profile in profiles:
        counted = count_problems(profile, o.op, not o.all)
        if counted is None:
            return SKIPPED
        rows += table_of(profile, sum_up(read_counts(counted)))
    path = os.path.join(BUILD, 'cost.tsv')
    write_table(path, rows)
    print(aligned([HEADINGS] + rows))
    print(f'gpu-cost: {len(rows)} rows, in {os.path.relpath(path, ROOT)}, too. They are counts of small problems on a simulator; no GPU was measured.')
    if o.all:  # the table that is held is of one problem each
        return 0
    held_path = os.path.join(ROOT, 'tests/gpu/cost.tsv')
    held = read_table(held_path)
    worse, better, new = compare(held, rows)
    for line in worse + better + new:
        print(line)
    if o.update:
        write_table(held_path, [row for _, row in sorted({**{key(r): r for r in held}, **{key(r): r for r in rows}}.items())])
        print(f'gpu-cost: {len(rows)} rows of tests/gpu/cost.tsv written')
    print(f'gpu-cost: {len(worse)} rows worse than tests/gpu/cost.tsv, {len(better)} better, {len(new)} new')
    return 1 if worse and not o.update else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

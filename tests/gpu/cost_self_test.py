# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-cost --self-test: faults that its reader and its comparison must find, without a simulator."""
import contextlib
import io
import os
import sys
import tempfile

import cost

COUNTS = ('width=32 items=64 groups=2 barriers=6 sub_groups=2 issues_f32=10 issues_f64=0 issues_special=0 issues_integer=6 issues_control=0 issues_memory=4 busy=320 longest=12 '
          'load_pieces=4 load_ideal=16 load_sectors=32 load_lines=8 load_bytes=512 load_touched=20 store_pieces=2 store_ideal=8 store_sectors=8 store_lines=2 store_bytes=256 '
          'store_touched=8 local_pieces=4 local_ideal=4 local_passes=10 atomics=64 atomic_pieces=2 atomic_passes=64 constant_pieces=0 constant_passes=0 scratch_pieces=2 '
          'scratch_bytes=256')
FIGURES = ['50.0', '100.0', '8.00', '1.50', '50.0', '3.00', '1.00', '32.00', '4.00', '10.00']


def fails(what, wanted, got):
    if wanted == got:
        return 0
    print(f'gpu-cost --self-test: {what} must be {wanted}, got {got}')
    return 1


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


def main():
    with tempfile.TemporaryDirectory() as folder:
        bad = reads_counts(folder) + compares(folder)
    print('gpu-cost --self-test: all planted faults were found' if not bad else f'gpu-cost --self-test: {bad} were not')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())

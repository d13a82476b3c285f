# SPDX-License-Identifier: Apache-2.0
"""Kernels that are bad on purpose must be slower than their good twins by cost_model.py. Use: rank.py <file of counts that CountPairs wrote>"""
import sys

import cost
import cost_model

# Tests of count/pairs_test.cpp, and the machines on which the bad one is bad. OneWordForAll is none: its conflict of two hides behind the global accesses.
PAIRS = {
    'RowsAndColumns': ['h100', 'mi300x'],
    'FirstElementBesideASector': ['h100', 'mi300x'],
    'ArraysOfStructures': ['h100', 'mi300x'],
    'BytesOneByOne': ['h100', 'mi300x'],
    'VectorsAreReadAtOnce': ['h100', 'mi300x'],
    'VectorsThatAreTakenApart': ['h100', 'mi300x'],
    'ColumnsOfLocalMemory': ['h100', 'mi300x'],
    'VectorsOfLocalMemory': ['h100', 'mi300x'],
    'BranchesWithinASubGroup': ['h100'],  # a sub-group of 64 has both branches of the good one, too
    'LoopsThatEndAtDifferentTurns': ['h100', 'mi300x'],
    'GroupsThatFillHalfASubGroup': ['mi300x'],
    'ArraysThatStayInMemory': ['h100', 'mi300x'],
    'FewGroupsForManyRows': ['h100', 'mi300x'],
    'AtomicsAtOneAddress': ['h100', 'mi300x'],
    'BarriersInALoop': ['h100', 'mi300x'],
    'TablesOfConstants': ['h100', 'mi300x'],
    'GroupsOfTwoDimensions': ['h100', 'mi300x'],
}
STARVED = ['FewGroupsForManyRows']  # as it is; the others as launches of so many groups that units are full
GROUPS = 10000


def main(path):
    of_pair = {}
    for label, _, counts in cost.read_counts_of(path, lambda label: label.startswith('pair/') and label.split('/')[1] in PAIRS):
        _, test, which = label.split('/')
        of_pair[test, which, counts['width']] = counts
    bad = 0
    for test, machines in PAIRS.items():
        for name in machines:
            machine = cost_model.MACHINES[name]
            times = []
            for which in '01':
                counts = of_pair.get((test, which, machine['width']))
                if counts is None:
                    raise SystemExit(f'rank: {path} must have counts of pair/{test}/{which}')
                scale = 1 if test in STARVED else GROUPS
                times.append(cost_model.bounds({k: n if k in ('width', 'longest') else n * scale for k, n in counts.items()}, machine))
            good, worse = (cost_model.seconds(t) for t in times)
            if not worse > good:
                print(f'rank: {test} on {name}: the bad kernel must be slower than the good one, got {worse * 1e6:.3f} us and {good * 1e6:.3f} us')
                bad += 1
            else:
                print(f'{test} on {name}: {worse / good:.2f} times as long, bound by {cost_model.binding(times[1])} instead of {cost_model.binding(times[0])}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))

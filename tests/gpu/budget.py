# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/budget.tsv: what each kernel may take on each target, by the compiler that said so."""

import os

KEY = ['target', 'kernel', 'call']
NUMBERS = ['registers', 'spills', 'scratch', 'local', 'occupancy', 'hot', 'wide', 'narrow', 'lds_fma', 'calls', 'matrix', 'int64']
# Those that may not fall; all others may not grow.
MAY_NOT_FALL = ['occupancy', 'wide', 'matrix']
COLUMNS = KEY + ['compiler'] + NUMBERS + ['error']

HEADER = '''# SPDX-License-Identifier: Apache-2.0
# What compiled kernels take, written by scripts/gpu-check --update, which fails where a number gets worse: all may not grow but occupancy, wide and matrix, which may not fall.
# registers: of an item (Intel: of a thread); spills: registers (NVIDIA, Intel: bytes); scratch: bytes of an item in memory; local: bytes of a group;
# occupancy: waves of a SIMD unit (AMD), percent of an SM's warps (NVIDIA), SIMD lanes (Intel); hot: instructions of the hot loop; wide, narrow: loads of 16 bytes, and of less;
# lds_fma: words read from local memory for an fma of the hot loop; calls, matrix: calls of functions and matrix instructions; int64: 64-bit integer instructions in loops.
'''


# What cost_model.py goes by, in files of their own that scripts/gpu-check --update writes: (columns, what they are).
PAIRS = (['pairs'], 'Share of the fma of hot loops of which the compiler made one instruction for two.')
AHEAD = (['ahead_global', 'together_global', 'ahead_local', 'together_local'],
         'Of loads in loops, from global and from local memory: the share of their latency that instructions between a load and its first use hide, and how many are on their way together.')


def key(row):
    return tuple(row[name] for name in KEY)


def value(row, name):
    return float(row[name]) if row.get(name) not in (None, '') else 0.0


def read(path):
    """Rows by key. A line that has other columns is an error with its number."""
    rows = {}
    with open(path) as file:
        lines = [(n, line.rstrip('\n')) for n, line in enumerate(file, 1) if not line.startswith('#')]
    if not lines:
        return rows
    if lines[0][1].split('\t') != COLUMNS:
        raise ValueError(f'{path}:{lines[0][0]}: the columns must be {" ".join(COLUMNS)}, got {lines[0][1]!r}')
    for n, line in lines[1:]:
        fields = line.split('\t')
        if len(fields) != len(COLUMNS):
            raise ValueError(f'{path}:{n}: a row must have {len(COLUMNS)} columns, got {len(fields)}')
        row = dict(zip(COLUMNS, fields))
        rows[key(row)] = row
    return rows


def say(number):
    return f'{float(number):g}' if number not in (None, '') else ''


def write(path, rows):
    with open(path, 'w') as file:
        file.write(HEADER)
        file.write('\t'.join(COLUMNS) + '\n')
        for _, row in sorted(rows.items()):
            file.write('\t'.join(say(row.get(c)) if c in NUMBERS else str(row.get(c, '')) for c in COLUMNS) + '\n')


def read_shares(path):
    """Lists of shares by key; none if there is no such file."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        rows = [line.rstrip('\n').split('\t') for line in file if not line.startswith('#')][1:]
    return {tuple(row[:3]): [float(share) for share in row[3:]] for row in rows}


def write_shares(path, what, rows, stale=()):
    """Writes the shares of a file anew where rows, each {column: share}, have them; those that are 0 have no line, nor those of stale keys."""
    columns, said = what
    shares = {**read_shares(path), **{key(row): [row.get(c) or 0.0 for c in columns] for row in rows if not row['error']}}
    with open(path, 'w') as file:
        file.write(f'# SPDX-License-Identifier: Apache-2.0\n# {said} Written by scripts/gpu-check --update; cost_model.py goes by it.\n')
        file.write('\t'.join(KEY + columns) + '\n')
        for of, all_of in sorted(shares.items()):
            if any(all_of) and of not in stale:
                file.write('\t'.join([*of, *map(say, all_of)]) + '\n')


def compare(old, new):
    """(what got worse, what got better), each as lines; `old` is the budget's row."""
    if new['error']:
        return ([] if old['error'] else [f"does not compile: {new['error']}"]), []
    if old['error']:
        return [], ['compiles now']
    worse, better = [], []
    for name in NUMBERS:
        before, now = value(old, name), value(new, name)
        if before == now:
            continue
        line = f'{name} {before:g} -> {now:g}'
        (better if (now > before) == (name in MAY_NOT_FALL) else worse).append(line)
    return worse, better

# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/exceptions.tsv: kernels that may keep numbers of an item in memory, or that may not compile, each with its reason. What is not listed there fails scripts/gpu-check.
The tables of docs/devices.md are made of it, of the budget and of estimates.tsv. Use: exceptions.py [--write]: checks the tables and the document, or writes the document's anew."""
import collections
import fnmatch
import os
import sys

import budget
import cost_model

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(HERE, 'exceptions.tsv')
DOCUMENT = os.path.join(HERE, '../../docs/devices.md')
BEGIN, END = '<!-- {}: written by tests/gpu/exceptions.py --write -->\n', '<!-- the end of {} -->\n'
COLUMNS = ['kernel', 'calls', 'targets', 'kind', 'spills', 'scratch', 'reason']
# default: calls choose the kernel on GPUs; opt-in: calls that ask for matrix instructions do; other: only who asks for it by name, or devices that lack what the
# default one needs.
KINDS = {'default': 'Kernels that calls choose on GPUs', 'opt-in': 'Kernels of matrix instructions, which calls must ask for',
         'other': 'Kernels that are only forced, or for devices that lack what the others need'}
OPT_IN = '*_matrix*'  # names of kernels of matrix instructions
MOST_DEFAULT = 6  # rows of the kind default: a number that may only fall
NO_CODE = '-'  # instead of numbers: does not compile

Listed = collections.namedtuple('Listed', COLUMNS)


def read(path=PATH):
    """The rows of the table. A line of other columns, kinds or numbers is an error with its number."""
    rows = []
    with open(path) as file:
        lines = [(n, line.rstrip('\n')) for n, line in enumerate(file, 1) if not line.startswith('#')]
    if not lines or lines[0][1].split('\t') != COLUMNS:
        raise ValueError(f'{path}: the columns must be {" ".join(COLUMNS)}')
    for n, line in lines[1:]:
        fields = line.split('\t')
        if len(fields) != len(COLUMNS) or not all(fields):
            raise ValueError(f'{path}:{n}: a row must have {len(COLUMNS)} columns, none of them empty, got {line!r}')
        row = Listed(*fields)
        numbers = (row.spills, row.scratch)
        if row.kind not in KINDS or not (numbers == (NO_CODE, NO_CODE) or all(text.isdigit() for text in numbers)):
            raise ValueError(f'{path}:{n}: kind must be one of {", ".join(KINDS)}, spills and scratch numbers or both {NO_CODE}, got {line!r}')
        rows.append(row)
    return rows


def is_real(call):
    """Whether a call is one of real shapes, which chooses its kernels itself, and no test's problem."""
    return not call.startswith('problem ')


def takes(row):
    """What must be listed of a row of the budget, as words; '' if nothing."""
    if row['error']:
        return f"does not compile: {row['error']}"
    return ', '.join(f'{name} {budget.value(row, name):g}' for name in ('spills', 'scratch') if budget.value(row, name))


def names(exception, row):
    """Whether an exception is for a row's kernel, call and target."""
    return (exception.kernel == row['kernel'] and row['target'] in exception.targets.split(',') and
            any(fnmatch.fnmatchcase(row['call'], pattern) for pattern in exception.calls.split('; ')))


def covers(exception, row):
    """Whether an exception allows what a row takes."""
    if not names(exception, row):
        return False
    if row['error'] or exception.spills == NO_CODE:
        return bool(row['error']) and exception.spills == NO_CODE
    return budget.value(row, 'spills') <= int(exception.spills) and budget.value(row, 'scratch') <= int(exception.scratch)


def is_listed(row, exceptions):
    return not takes(row) or any(covers(e, row) for e in exceptions)


def unlisted(rows, exceptions):
    """Lines of what rows take that no exception allows."""
    return [f"{row['target']} {row['kernel']} ({row['call']}): {takes(row)}, and tests/gpu/exceptions.tsv does not allow it" for row in rows if not is_listed(row, exceptions)]


def faults(rows, exceptions):
    """Lines of what is wrong with the table beside the rows of a whole budget: exceptions that allow more than rows take, of the wrong kind, or for too many reasons."""
    lines = []
    for e in exceptions:
        mine = [row for row in rows if takes(row) and names(e, row)]
        name = f'{e.kernel} ({e.calls}) on {e.targets}'
        for target in e.targets.split(','):
            if not any(row['target'] == target for row in mine):
                lines.append(f'tests/gpu/exceptions.tsv: {name} holds for no row of {target}')
        if mine and e.spills != NO_CODE:
            for column in ('spills', 'scratch'):
                most = max(budget.value(row, column) for row in mine)
                if int(getattr(e, column)) > most:
                    lines.append(f'tests/gpu/exceptions.tsv: {name} allows {getattr(e, column)} {column}, the most is {most:g}')
        if e.kind == 'other' and (real := [row['call'] for row in mine if is_real(row['call'])]):
            lines.append(f'tests/gpu/exceptions.tsv: {name} must be of the kind default, since calls choose it: {real[0]}')
        if e.kind == 'opt-in' and not fnmatch.fnmatchcase(e.kernel, OPT_IN):
            lines.append(f'tests/gpu/exceptions.tsv: {name} must not be of the kind opt-in, which is that of kernels called {OPT_IN}')
    if (default := sum(e.kind == 'default' for e in exceptions)) > MOST_DEFAULT:
        lines.append(f'tests/gpu/exceptions.tsv: rows of the kind default must be at most {MOST_DEFAULT}, got {default}')
    return lines


def say(calls):
    """The calls of an exception, as the document names them."""
    words = [p.removeprefix('problem ').strip('*').strip() for p in calls.split('; ')]
    return ', '.join(word for word in words if word) or 'all'


def lists(exceptions):
    """What may stay in memory, as tables by kind and reason."""
    parts = []
    for kind, title in KINDS.items():
        parts += [f'{title}:', '', '| kernel | calls | on | spilled | bytes of an item |', '|---|---|---|---|---|']
        mine = [e for e in exceptions if e.kind == kind]
        for reason in sorted({e.reason for e in mine}):
            parts.append(f'| *{reason}* | | | | |')
            for e in sorted(e for e in mine if e.reason == reason):
                numbers = '| does not compile | ' if e.spills == NO_CODE else f'| {e.spills} | {e.scratch} '
                parts.append(f"| `{e.kernel}` | {say(e.calls)} | {', '.join(f'`{t}`' for t in e.targets.split(','))} {numbers}|")
        parts.append('')
    return '\n'.join(parts)


def compiled(rows):
    """What was compiled for each target, as a table."""
    every = {row['kernel'] for row in rows}
    lines = ['| target | compiler | kernels | programs | of these with numbers in memory |', '|---|---|---|---|---|']
    for target in sorted({row['target'] for row in rows}):
        mine = [row for row in rows if row['target'] == target]
        kernels = len({row['kernel'] for row in mine})
        lines.append(f"| `{target}` | {', '.join(sorted({row['compiler'] for row in mine}))} | {f'all {kernels}' if kernels == len(every) else f'{kernels} of {len(every)}'} | {len(mine)} | "
                     f"{sum(bool(takes(row)) for row in mine)} |")
    return '\n'.join(lines + [''])


MACHINES = {'h100': 'H100', 'mi300x': 'MI300X', 'rx_7900': 'RX 7900', 'a770': 'A770'}


def estimated(estimates, times):
    """Estimates of calls, rows as cost_model.read_estimates() gives them, as a table, and how far off they are where cost_model.measured() has a time."""
    of_call = collections.defaultdict(dict)
    for call, machine, kernel, _, microseconds, roofline, *_ in estimates:
        if kernel == cost_model.ALL_KERNELS:
            of_call[call][machine] = f'{float(microseconds):.0f} us, {float(roofline):.0f} %'
    lines = ['| call | ' + ' | '.join(MACHINES.values()) + ' |', '|---' * (1 + len(MACHINES)) + '|']
    lines += [f"| {call} | {' | '.join(of.get(machine, '') for machine in MACHINES)} |" for call, of in sorted(of_call.items())]
    errors = sorted((abs(error), f'{call} on {machine.upper()} {error:+.0f} %') for call, machine, kernel, _, microseconds, *_ in estimates
                    if kernel == cost_model.ALL_KERNELS and (call, machine) in times for error in [100 * (float(microseconds) / times[call, machine] - 1)])
    if errors:
        lines += ['', f"Where a time was measured, these estimates are off by {errors[len(errors) // 2][0]:.0f} % in the median and {errors[-1][0]:.0f} % at most: {', '.join(text for _, text in errors)}."]
    return '\n'.join(lines + [''])


def document(rows, exceptions, estimates, times):
    """The written parts of docs/devices.md by name."""
    return {'compiled programs': compiled(rows), 'lists': lists(exceptions), 'estimates': estimated(estimates, times)}


def split_document(text, name):
    """(before, written, after) of a part of the document."""
    before, begin, rest = text.partition(BEGIN.format(name))
    written, end, after = rest.partition(END.format(name))
    if not begin or not end:
        raise ValueError(f'docs/devices.md must have the lines {BEGIN.format(name)!r} and {END.format(name)!r}')
    return before, written, after


def write_document(parts, path=DOCUMENT):
    with open(path) as file:
        text = file.read()
    for name, part in parts.items():
        before, _, after = split_document(text, name)
        text = before + BEGIN.format(name) + part + END.format(name) + after
    with open(path, 'w') as file:
        file.write(text)


def is_documented(parts, path=DOCUMENT):
    with open(path) as file:
        text = file.read()
    return all(split_document(text, name)[1] == part for name, part in parts.items())


def main(arguments):
    exceptions, rows = read(), budget.read(os.path.join(HERE, 'budget.tsv')).values()
    parts = document(rows, exceptions, cost_model.read_estimates(), cost_model.measured())
    if arguments == ['--write']:
        write_document(parts)
    lines = unlisted(rows, exceptions) + faults(rows, exceptions)
    if not is_documented(parts):
        lines.append('docs/devices.md: its tables must be what budget.tsv, exceptions.tsv and estimates.tsv of tests/gpu say: tests/gpu/exceptions.py --write writes them')
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

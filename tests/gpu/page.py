# SPDX-License-Identifier: Apache-2.0
"""The page of scripts/gpu-check: kernels by targets, worst first, each with its hot loop beside the source."""
import collections
import html
import math

import budget
import cost_model

# Listings make the page long: the worst kernels have theirs, up to so many instructions.
MOST_LISTINGS, MOST_LINES = 400, 160

STYLE = '''
:root { --ink: #1c2330; --soft: #667085; --line: #e3e7ee; --back: #fff; --head: #f6f8fb; --bad: #fbd5d0; --poor: #fdeccd; --fair: #fbf8dc; --good: #dcf3e2; --mark: #b42318 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #2d3442; --back: #14181f; --head: #1c222c; --bad: #5c231d; --poor: #5a4316; --fair: #43401c; --good: #1d4029; --mark: #ff8a7a } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 2rem auto; padding: 0 1.5rem; max-width: 90rem }
h1 { font-size: 1.5rem; margin: 0 0 .3rem } h2 { font-size: 1.1rem; margin: 2.2rem 0 .5rem } p, li { color: var(--soft); max-width: 60rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid var(--line) }
thead th { position: sticky; top: 0; background: var(--head) } td small, th small { color: var(--soft); font-weight: normal }
.bad { background: var(--bad) } .poor { background: var(--poor) } .fair { background: var(--fair) } .good { background: var(--good) }
.worse { color: var(--mark); font-weight: 600 } a { color: inherit } td a { text-decoration: none } td a:hover { text-decoration: underline }
details { border-bottom: 1px solid var(--line); padding: .3rem 0 } summary { cursor: pointer } summary b { font-weight: 600 }
.facts { color: var(--soft); margin: .3rem 0 } .scroll { overflow: auto; max-height: 34rem; border: 1px solid var(--line); margin: .4rem 0 1rem }
.loop td { font: 12px/1.35 ui-monospace, monospace; border: 0; padding: 0 .7rem; white-space: pre } .loop tr.next td { border-top: 1px solid var(--line) } .loop td:first-child { color: var(--soft) }
.key span { padding: .1rem .5rem; margin-right: .4rem; border-radius: .2rem }
'''


def badness(row):
    """Bytes that an item keeps in memory for want of registers, and a lot for what does not compile."""
    return 1e6 if row['error'] else 4 * budget.value(row, 'spills') + budget.value(row, 'scratch')


def grade(row):
    if row['error'] or budget.value(row, 'spills') > 0:
        return 'bad'
    if budget.value(row, 'scratch') > 0 or budget.value(row, 'calls') > 0:
        return 'poor'
    return 'fair' if budget.value(row, 'int64') > 8 or (row['narrow'] and not row['wide']) else 'good'


def occupancy(row):
    unit = {'gfx': 'waves', 'sm_': '% of warps'}.get(row['target'][:3], 'SIMD lanes')
    return f"{row['occupancy']:g} {unit}"


def anchor(row):
    return ''.join(c if c.isalnum() else '-' for c in '-'.join(budget.key(row)))


def cell(row, held):
    if row is None:
        return '<td><small>not run</small></td>'
    if row['error']:
        return f'<td class=bad><a href="#{anchor(row)}">does not compile</a></td>'
    parts = [f"{row['registers']} registers"]
    parts += [f"{row[name]} {word}" for name, word in (('spills', 'spilled'), ('scratch', 'B scratch'), ('calls', 'calls'), ('matrix', 'matrix')) if row[name]]
    old = held.get(budget.key(row))
    worse = ''
    if old and old['compiler'] == row['compiler'] and (lines := budget.compare(old, row)[0]):
        worse = f'<br><span class=worse>worse: {html.escape(", ".join(lines))}</span>'
    return f'<td class={grade(row)}><a href="#{anchor(row)}">{", ".join(parts)}</a><br><small>{occupancy(row)}, hot loop of {row["hot"]}</small>{worse}</td>'


def listing(row):
    """The hot loop; a source line stands beside the first of the instructions that it gave."""
    lines, last = [], None
    for text, number, source in row['shown'][:MOST_LINES]:
        new = number != last and number
        shown = f'{html.escape(source[:110])}' if new else ''
        lines.append(f'<tr{" class=next" if new else ""}><td>{shown}</td><td>{html.escape(text)}</td></tr>')
        last = number or last
    left = row['hot'] - min(len(row['shown']), MOST_LINES)
    if left > 0:
        lines.append(f'<tr class=next><td></td><td>and {left} instructions more</td></tr>')
    return f'<div class=scroll><table class=loop>{"".join(lines)}</table></div>' if lines else '<p>It has no loop.</p>'


def detail(row, with_listing):
    title = f"<b>{html.escape(row['kernel'])}</b> on {row['target']}, {html.escape(row['call'])}"
    if row['error']:
        return f'<details id="{anchor(row)}"><summary>{title}</summary><p class=worse>{html.escape(row["error"])}</p></details>'
    facts = ', '.join(f'{name} {row[name]:g}' for name in budget.NUMBERS if row[name])
    wrong = f'<p class=worse>{html.escape(row["arguments"])}</p>' if row.get('arguments') else ''
    body = listing(row) if with_listing else ''
    return (f'<details id="{anchor(row)}"><summary>{title} <small>{occupancy(row)}</small></summary>{wrong}<div class=facts>{facts}; {row["code"]} instructions in all; '
            f'program build/release/tests/gpu_plans/{row["program"]}.cl, {html.escape(row["compiler"])}</div>{body}</details>')


def measured_beside(call, machine, microseconds, times):
    """What was measured of a call, and the model's error; nothing if it was not."""
    if (call, machine) not in times:
        return ''
    took = times[call, machine]
    return f'<br>measured {took:g} us, <b>off by {100 * (microseconds / took - 1):+.0f} %</b>'


def estimated(rows, times):
    """The table of estimates by call and machine; `rows` as cost_model.read_estimates() gives them, `times` as measured()."""
    of_call = collections.defaultdict(dict)
    for call, machine, kernel, binding, microseconds, roofline, *_ in rows:
        if kernel == cost_model.ALL_KERNELS:
            of_call[call][machine] = (binding, float(microseconds), roofline)
    machines = [m for m in cost_model.PROFILED if any(m in of for of in of_call.values())]
    errors = sorted(abs(of[m][1] / times[call, m] - 1) for call, of in of_call.items() for m in of if (call, m) in times)
    said = (f'Where a time was measured, the model is off by {100 * errors[len(errors) // 2]:.0f} % in the median and {100 * errors[-1]:.0f} % at most.' if errors else 'No time was measured.')
    parts = [f'<h2>Estimated times of calls</h2><p>By a model of these machines (scripts/gpu-cost --calls), with the per cent of their roofline and what binds. They are estimates. {said}</p>',
             '<table><thead><tr><th>call' + ''.join(f'<th>{m}' for m in machines) + '</thead><tbody>']
    for call, of in sorted(of_call.items()):
        parts.append(f'<tr><td>{html.escape(call)}</td>')
        for m in machines:
            if m not in of:
                parts.append('<td><small>not estimated</small></td>')
                continue
            binding, microseconds, roofline = of[m]
            share = '' if roofline == '-' else f', {float(roofline):.0f} %'
            parts.append(f'<td>{microseconds:g} us{share}<br><small>{html.escape(binding)}</small>{measured_beside(call, m, microseconds, times)}</td>')
        parts.append('</tr>')
    return parts + ['</tbody></table>']


def write(path, rows, held):
    targets = sorted({row['target'] for row in rows})
    kernels = collections.defaultdict(dict)
    for row in rows:
        kernels[row['kernel'], row['call']][row['target']] = row
    order = sorted(kernels, key=lambda k: (-sum(math.log2(1 + badness(r)) for r in kernels[k].values()), k))
    worst = sorted(rows, key=badness, reverse=True)
    listed = {budget.key(row) for row in worst[:MOST_LISTINGS]}
    grades = collections.Counter((row['target'], grade(row)) for row in rows)
    compiled_by = ', '.join(f'{t} by {next(r["compiler"] for r in rows if r["target"] == t)}' for t in targets)

    parts = ['<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width"><title>clutch on GPUs</title>', f'<style>{STYLE}</style>',
             '<h1>What clutch’s kernels take on GPUs</h1>',
             f'<p>Compiled and read, not run: {html.escape(compiled_by)}. The worst come first: those that keep most in memory for want of registers. A cell leads to its hot loop.</p>',
             '<p class=key><span class=bad>spills, or does not compile</span><span class=poor>scratch memory or calls</span><span class=fair>64-bit integers in loops, or no load of 16 bytes</span>'
             '<span class=good>none of these</span></p>', '<table><thead><tr><th>kernel']
    for target in targets:
        counts = ', '.join(f'{grades[target, g]} {word}' for g, word in (('bad', 'spill'), ('poor', 'scratch'), ('fair', 'slow'), ('good', 'good')) if grades[target, g])
        parts.append(f'<th>{target}<br><small>{counts}</small>')
    parts.append('</thead><tbody>')
    for name, call in order:
        parts.append(f'<tr><td>{html.escape(name)}<br><small>{html.escape(call)}</small></td>')
        parts += [cell(kernels[name, call].get(target), held) for target in targets]
        parts.append('</tr>')
    parts.append('</tbody></table>')
    parts += estimated(cost_model.read_estimates(), cost_model.measured())
    parts.append('<h2>Hot loops</h2><p>The innermost loop with most multiply-adds, else the longest. On the left the line of the program that the instructions came from, which Intel’s compiler does not tell.</p>')
    for key in order:
        parts += [detail(row, budget.key(row) in listed) for _, row in sorted(kernels[key].items())]
    # A link opens what it leads to.
    parts.append('<script>addEventListener("hashchange", () => { const d = document.getElementById(location.hash.slice(1)); if (d) { d.open = true; d.scrollIntoView() } })</script></html>')
    with open(path, 'w') as file:
        file.write('\n'.join(parts))

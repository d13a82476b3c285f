# SPDX-License-Identifier: Apache-2.0
"""How far ahead of their first use a compiled kernel's loops load, from its instructions: what lies between a load and the instruction that waits for it."""
import collections
import heapq
import re

import listing

# What an instruction is to those that wait: kind 'global' or 'local' for a load, queue the counter in which it and later accesses stand in line, or None;
# registers: NVIDIA's that a load writes; token: Intel's number of a message.
Load = collections.namedtuple('Load', 'kind queue registers token', defaults=(None, frozenset(), None))
TURNS = 32  # of a loop
LITTLE, MATRIX_FMA = 16, 64  # a loop computes next to nothing if it has this much less; fma that a matrix instruction counts for
FREE = re.compile(r'(?:@!?U?P\d+\s+)?(?:s_waitcnt|s_wait_|s_nop|s_delay|s_clause|s_barrier|NOP|BAR|DEPBAR|LDGDEPBAR|BSSY|BSYNC|WARPSYNC)|.*\bsync\.')


def successors(vendor, code):
    """Of each instruction the ones that may follow it. A jump under a condition has two."""
    result = []
    for at, (text, target, _) in enumerate(code):
        ends = re.match(r's_endpgm|s_setpc|EXIT|RET', text)
        goes = target is not None and re.match(r's_branch|BRA\b|\(W\)\s+jmpi', text)
        following = [] if ends or goes or at + 1 == len(code) else [at + 1]
        result.append(following + ([target] if target is not None and target < len(code) else []))
    return result


def _circles(nodes, follow):
    """Sets of nodes of which each leads to all others of its set: strongly connected parts, by Tarjan's algorithm, of more than one node or of one that follows itself."""
    number, low, on, stack, found = {}, {}, set(), [], []
    for root in sorted(nodes):
        if root in number:
            continue
        work = [(root, iter(follow[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in nodes:
                    continue
                if to not in number:
                    number[to] = low[to] = len(number)
                    stack.append(to)
                    on.add(to)
                    work.append((to, iter(follow[to])))
                    break
                if to in on:
                    low[node] = min(low[node], number[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    part = set(stack[stack.index(node):])
                    del stack[-len(part):]
                    on -= part
                    if len(part) > 1 or node in follow[node]:
                        found.append(part)
    return found


# body: all instructions of a loop; first: those at which it is entered; around: the loop around it, or None.
Loop = collections.namedtuple('Loop', 'body first around')


def loops(follow):
    """All loops, outer ones before those within them."""
    result, open_ends = [], [(set(range(len(follow))), None)]
    while open_ends:
        nodes, around = open_ends.pop()
        for body in _circles(nodes, follow):
            entered = {to for at, all_of in enumerate(follow) if at not in body for to in all_of if to in body} or {min(body)}
            loop = Loop(body, entered, around)
            result.append(loop)
            open_ends.append((body - entered, loop))
    return result


def _may_pass_without(nodes, loop, follow):
    """Whether a turn of a loop may pass without some of its instructions; any kernel without its loops."""
    if not loop:
        return True
    seen, open_ends = set(), list(loop.first - nodes)
    while open_ends:
        for to in follow[open_ends.pop()]:
            if to in loop.first:
                return True
            if to in loop.body and to not in nodes and to not in seen:
                seen.add(to)
                open_ends.append(to)
    return False


def counted_loads(vendor, target, code, follow):
    """(load, the instruction at which it is, instructions of the innermost loop around it, times that it runs) of loads in loops. Each loop is taken to have TURNS turns. Of loops that
    compute next to nothing beside the one that computes most, which are for the ends of tensors or for results, loads that a turn around them may pass without are left out, and none
    counts for more than those of the others."""
    all_loops = loops(follow)
    computes, times, innermost = {}, {}, {}
    for loop in all_loops:
        kinds = listing.count(vendor, [code[i] for i in loop.body])
        computes[id(loop)] = kinds['fma'] + MATRIX_FMA * kinds['matrix']
        times[id(loop)] = TURNS * (times[id(loop.around)] if loop.around else 1)
        innermost.update((i, loop) for i in loop.body)
    most = max(computes.values(), default=0)
    little = {id(loop) for loop in all_loops if LITTLE * computes[id(loop)] < most}
    limit = max((times[of] for of in times if of not in little), default=0)
    result = []
    for at, loop in sorted(innermost.items()):
        load = LOADS[vendor](code[at].text, target)
        if not load:
            continue
        inner, around, left_out = {at}, loop, False
        while around and id(around) in little and not left_out:
            left_out = _may_pass_without(inner, around, follow)
            inner, around = around.body, around.around
        if loop is not around and not left_out:
            left_out = _may_pass_without(inner, around, follow)
        if not left_out:
            result.append((load, at, loop.body, min(limit, times[id(loop)])))
    return result


# ---- what loads, and what waits for it ----

def _amd_load(text, target):
    if re.match(r'(global|flat|buffer)_load', text):
        return Load('global', 'memory')
    return Load('local', 'local') if re.match(r'ds_(read|load)', text) else None


def _amd_queue(text, target):
    """The queue in which an instruction stands: memory instructions end in the order in which they began. Stores have one of their own on later targets."""
    if re.match(r'(global|flat|buffer|scratch)_(load|atomic)', text) or (target.startswith('gfx9') and re.match(r'(global|flat|buffer|scratch)_store', text)):
        return 'memory'
    return 'local' if re.match(r'ds_|s_load|s_buffer_load', text) else None


def _amd_left(text, queue):
    """How many of a queue may still be on their way behind an instruction that waits; None if it does not wait for them."""
    if found := re.match(r's_wait_loadcnt_dscnt 0x(\w+)', text):
        return int(found[1], 16) >> 8 if queue == 'memory' else int(found[1], 16) & 255
    if found := re.match(r's_wait_(load|ds)cnt 0x(\w+)', text):
        return int(found[2], 16) if (found[1] == 'load') == (queue == 'memory') else None
    if not text.startswith('s_waitcnt '):
        return None
    found = re.search((r'vmcnt' if queue == 'memory' else r'lgkmcnt') + r'\((\d+)\)', text)
    return int(found[1]) if found else 0 if text == 's_waitcnt 0' else None


def _span(text):
    """How many registers NVIDIA's operands outside of brackets stand for."""
    if re.match(r'(HMMA|IMMA|QMMA|DMMA)', text):
        return 4
    if re.match(r'LDSM', text):
        return int((re.search(r'M\w*88\.(\d)', text) or [0, 1])[1])
    if '.128' in text.split(' ')[0]:
        return 4
    return 2 if '.64' in text.split(' ')[0] or re.match(r'D[A-Z]+\b|IMAD\.WIDE|F2F\.F64|I2F\.F64', text) else 1


def _nvidia_registers(text):
    text = re.sub(r'^@!?U?P\d+\s+', '', text)
    span, registers, depth = _span(text), set(), 0
    for token in re.finditer(r'\[|\]|\bR(\d+)(\.64)?', text):
        if token[0] in '[]':
            depth += 1 if token[0] == '[' else -1
        else:
            registers.update(range(int(token[1]), int(token[1]) + (2 if token[2] else 1 if depth else span)))
    return frozenset(registers)


def _nvidia_load(text, target):
    text = re.sub(r'^@!?U?P\d+\s+', '', text)
    if text.startswith('LDGSTS'):
        return Load('global', 'copies')
    if found := re.match(r'(LDG|LD|LDS|LDSM)\b\S*\s+R(\d+)', text):
        return Load('global' if found[1] in ('LDG', 'LD') else 'local', None, frozenset(range(int(found[2]), int(found[2]) + _span(text))))
    return None


def _intel_tokens(text):
    """Tokens that an instruction waits for, and the one that it sets."""
    annotations = ','.join(re.findall(r'\{([^}]*)\}', text.partition('//')[0]))
    waited = set(re.findall(r'\$(\d+)\.dst', annotations))
    own = re.search(r'\$(\d+)(?![\d.])', annotations)
    return waited, own and own[1]


def _intel_load(text, target):
    kind = listing.KINDS['intel'](text)[0]
    token = _intel_tokens(text)[1]
    return Load('local' if kind == 'lds' else 'global', None, frozenset(), token) if kind in ('wide', 'narrow', 'lds') and token else None


LOADS = {'amd': _amd_load, 'nvidia': _nvidia_load, 'intel': _intel_load}


def _waits(vendor, load, text, later):
    """Whether an instruction waits for a load, behind which `later` others stand in its queue."""
    if vendor == 'amd':
        left = _amd_left(text, load.queue)
        return left is not None and later >= left
    if vendor == 'intel':
        waited, own = _intel_tokens(text)
        return load.token in waited or load.token == own or 'sync.allwr' in text
    if load.queue:
        found = re.match(r'DEPBAR\.LE SB0, 0x(\w+)', text)
        return found is not None and later > int(found[1], 16)
    return bool(load.registers & _nvidia_registers(text))


def distance(vendor, target, code, follow, body, at, clocks, most):
    """(clocks, loads): of a sub-group's own instructions, by clocks(text), from the load `at` on the shortest way within a loop to what waits for it, at most `most`; and the loads of
    its kind that begin on the way."""
    load = LOADS[vendor](code[at].text, target)
    best, heap = {}, [(0, to, 0, ()) for to in follow[at] if to in body]
    while heap:
        spent, node, later, begun = heapq.heappop(heap)
        if spent >= most:
            return most, begun
        if best.get((node, later), most) <= spent:
            continue
        best[node, later] = spent
        text = code[node].text
        if _waits(vendor, load, text, later) or node == at:
            return spent, begun
        if vendor == 'amd':
            later += _amd_queue(text, target) == load.queue
        elif load.queue:
            later += text.startswith('LDGDEPBAR')
        other = LOADS[vendor](text, target)
        if other and other.kind == load.kind:
            begun += (node,)
        for to in follow[node]:
            if to in body:
                heapq.heappush(heap, (spent + clocks(text), to, min(later, 64), begun))
    return most, ()


def hidden(vendor, target, code, latencies, matrix, between):
    """Of global and of local loads in loops by {kind: (share, together)}: the share of their latency, of {kind: clocks}, that lies between them and their first use, and how many are on
    their way together; `matrix`: clocks of a matrix instruction, `between`: of another that is no access to memory. None of a kind without loads in loops."""
    kind_of = listing.KINDS[vendor]

    def clocks(text):
        kind = kind_of(text)[0]
        if kind == 'matrix':
            return matrix
        access = kind in ('wide', 'narrow', 'lds') or re.match(r'(?:@!?U?P\d+\s+)?(global|flat|buffer|scratch|ds|s_load|s_buffer)_|(?:@!?U?P\d+\s+)?(LD|ST|ATOM|RED)', text)
        return 0 if access or FREE.match(text) or re.search(r'\b(send|sends|load|store)\b', text) else between

    follow = successors(vendor, code)
    found = {'global': [], 'local': []}
    for load, at, body, times in counted_loads(vendor, target, code, follow):
        found[load.kind].append((times, at, *distance(vendor, target, code, follow, body, at, clocks, latencies[load.kind])))
    result = {}
    for kind, all_of in found.items():
        # A load is on its way with all that begin before the first of them is waited for.
        together = collections.Counter()
        for _, at, _, begun in all_of:
            for one in (at, *begun):
                together[one] = max(together[one], 1 + len(begun))
        mean = lambda values: sum(times * value for (times, *_), value in zip(all_of, values)) / sum(times for times, *_ in all_of)
        result[kind] = (round(mean([spent for _, _, spent, _ in all_of]) / latencies[kind], 3), round(mean([together[at] for _, at, _, _ in all_of]), 2)) if all_of else None
    return result

# SPDX-License-Identifier: Apache-2.0
"""Instructions of a compiled kernel, by vendor: what they are, and where they loop."""
import collections
import re

# text: the instruction; target: index of the instruction that it may jump to, or None; line: of the compiled source, or 0.
Instruction = collections.namedtuple('Instruction', 'text target line')


def innermost(code):
    """Loops that hold no other, as (first, last): from a jump's target back to the jump."""
    ends = {}
    for i, instruction in enumerate(code):
        if instruction.target is not None and instruction.target <= i:
            ends[instruction.target] = max(ends.get(instruction.target, i), i)
    loops = list(ends.items())
    return [(b, e) for b, e in loops if not any(b <= other_b and other_e <= e and (b, e) != (other_b, other_e) for other_b, other_e in loops)]


def resolve(lines):
    """Instructions of (text, name of the label that it jumps to or None, line), and labels' places, as Instruction."""
    texts, places = lines
    return [Instruction(text, places.get(label), line) for text, label, line in texts]


# ---- AMD: assembly text of LLVM ----

def amd_functions(text):
    """Instructions of each function, and what the compiler says behind it. Constants have labels, too, without the @."""
    functions = {}
    for found in re.finditer(r'^([A-Za-z_]\w*): +; @\1\n(.*?)^\.Lfunc_end\d+:(.*?)(?=^\.Lfunc_begin|^[A-Za-z_]\w*: +; @|\Z)', text, re.S | re.M):
        name, body, tail = found.groups()
        code, places, line = [], {}, 0
        for row in body.split('\n'):
            if label := re.match(r'(\.LBB\w+):', row):
                places[label[1]] = len(code)
            elif place := re.match(r'\s+\.loc\s+\d+ (\d+)', row):
                line = int(place[1])
            elif re.match(r'\t[a-z]', row):
                instruction = row.split(';')[0].strip()
                jump = instruction.split()[-1] if re.match(r's_c?branch', instruction) else None
                # The rest of the row says whether a register is spilled here.
                code.append((instruction + ('  ; Folded Spill' if 'Folded Spill' in row else ''), jump, line))
        functions[name] = (resolve((code, places)), tail)
    return functions


def amd_calls(code, functions):
    """Names of the functions that are called: their addresses are taken just before."""
    names = {name for i in code for name in re.findall(r'([A-Za-z_]\w*)@(?:gotpc)?rel32', i.text)}
    return sorted(names & functions.keys())


# ---- NVIDIA: nvdisasm -c -g ----

def nvidia_functions(text):
    functions = {}
    for found in re.finditer(r'^\.text\.(\w+):(.*?)(?=^\.text\.|^\t?\.section|^//-+|\Z)', text, re.S | re.M):
        name, body = found.groups()
        code, places, line = [], {}, 0
        for row in body.split('\n'):
            if label := re.match(r'(\.L_?\w+|\$?[\w$]+):', row):
                places[label[1]] = len(code)
            elif place := re.search(r'//## File "[^"]*", line (\d+)', row):
                line = int(place[1])
            elif instruction := re.match(r'\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;', row):
                jump = re.search(r'\bBRA\b.*`\((\.L\w+)\)', instruction[1])
                code.append((instruction[1], jump and jump[1], line))
        code = resolve((code, places))
        # The end is padded: a jump to itself and NOPs.
        while code and (code[-1].text.startswith('NOP') or code[-1].target == len(code) - 1):
            code.pop()
        functions[name] = code
    return functions


# ---- Intel: assembly text of IGC ----

def intel_code(text):
    code, places = [], {}
    for row in text.split('\n'):
        if label := re.match(r'([\w.$]+):\s*(//.*)?$', row):
            places[label[1]] = len(code)
        elif re.match(r'\s*(\([^)]*\)\s*)?[a-z]\w*[\w.|&~()]*\s', row) and ('|M' in row or re.search(r'\b(jmpi|goto|while|join|else|endif|sync)\b', row)):
            instruction = row.strip()
            jump = None
            if re.search(r'\b(jmpi|goto|while|brc)\b', instruction):
                jump = tuple(re.findall(r'[A-Za-z_][\w.$]*', instruction.split('//')[0]))
            code.append((instruction, jump, 0))
    result = []
    for instruction, words, line in code:
        targets = [places[w] for w in words or () if w in places]
        result.append(Instruction(instruction, min(targets) if targets else None, line))
    return result


# ---- what instructions are ----

def _amd_fmas(text, _):
    return len(re.findall(r'\bv_(?:dual_)?(?:fma_f|fmac_f|fma_mix|fmamk|fmaak|mad_f|mac_f|dot2)', text)) + 2 * len(re.findall(r'\bv_pk_fma', text))


def pairs(code):
    """Share of the fma of AMD's instructions of which two are one instruction, which is issued once (v_dual_fmac_f32 ... :: v_dual_fmac_f32 ...)."""
    counted = [(_amd_fmas(i.text, None), 'v_dual_' in i.text) for i in code]
    fmas = sum(n for n, _ in counted)
    return round(sum(n for n, dual in counted if dual and n == 2) / fmas, 3) if fmas else 0.0


# Kinds by the first pattern that an instruction begins with, and how many it counts for: a number, or a function of the text and the match, whose 0 is no match.
AMD = [(r'v_(mfma|wmma|smfmac|swmmac)', 'matrix', 1),
       (r'', 'fma', _amd_fmas),  # a dual instruction may have it behind another
       (r'ds_(?:read|load)(_?2(?:st64)?)?(?:addr)?\w*?_(b|u|i)(\d+)', 'lds', lambda text, found: max(1, int(found[3]) // 32) * (2 if found[1] else 1)),
       (r'(global|flat|buffer)_load_(dwordx4|b128)', 'wide', 1),
       (r'(global|flat|buffer)_load', 'narrow', 1),
       (r's_swappc', 'call', 1),
       (r'v_(mad_[ui]64|lshlrev_b64|lshrrev_b64|ashrrev_i64|lshl_add_u64|addc_co|add_co_ci|subb_co|sub_co_ci|mul_hi_[ui]32|cmpx?_\w+_[ui]64)', 'int64', 1)]
NVIDIA = [(r'(HMMA|IMMA|DMMA|QMMA|OMMA|HGMMA|IGMMA|QGMMA|UTC\w*MMA)', 'matrix', 1),
          (r'(FFMA2|HFMA2)', 'fma', 2),
          (r'(FFMA|DFMA)', 'fma', 1),
          (r'LDS\b', 'lds', lambda text, found: 4 if '.128' in text else 2 if '.64' in text else 1),
          (r'(LDG|LD)\b.*\.128', 'wide', 1),
          (r'(LDG|LD)\.', 'narrow', 1),
          (r'CALL', 'call', 1),
          (r'(IMAD\.WIDE|IMAD\.HI|IMAD\.X|IADD3\.X|IADD\.64|LEA\.HI|SHF\.\w\.\w?64|ISETP\S*\.EX)', 'int64', 1)]


def _kind_by(table, text):
    """(kind, amount)"""
    for pattern, kind, amount in table:
        found = re.match(pattern, text)
        if found and (times := amount(text, found) if callable(amount) else amount):
            return kind, times
    return 'other', 1


def _intel_kind(text):
    instruction, _, comment = text.partition('//')
    if re.search(r'\bdpasw?\b', instruction):
        return 'matrix', 1
    if re.search(r'\bmadm?\b.*:(f|df|hf)\b', instruction):
        return 'fma', 1
    # Xe-HPC's loads are instructions, load.slm.d32x4.a32; bti[255] holds the kernel's arguments, ss[...] is scratch memory.
    if load := re.match(r'(?:\([^)]*\)\s*)?load(?:_block2d)?\.(slm|ugm|ugml)\.d(\d+)\w*?(?:x(\d+))?t?\.', instruction):
        if 'bti[255]' in instruction or ' ss[' in instruction:
            return 'other', 1
        bits = int(load[2]) * int(load[3] or 1)
        if load[1] == 'slm':
            return 'lds', max(1, bits // 32)
        return ('wide' if bits >= 128 else 'narrow'), 1
    # Older ones send messages, said in words; local memory is surface 254.
    if re.search(r'\bsends?\b|\bsends?\.', instruction):
        if re.search(r'scratch', comment):
            return 'other', 1
        if re.search(r'\bread\b', comment):
            if re.search(r'0x[0-9A-Fa-f]*FD\s', instruction):
                return 'other', 1  # the kernel's arguments
            local = re.search(r'0x[0-9A-Fa-f]*FE\s', instruction) is not None
            lanes = re.search(r'read with (x?y?z?w?)\b', comment)
            words = len(lanes[1]) if lanes else 1
            if local:
                return 'lds', words
            return ('wide' if words == 4 or 'block read' in comment else 'narrow'), 1
        return 'other', 1
    if re.search(r'\bcall\b', instruction):
        return 'call', 1
    if re.search(r':u?q\b|\baddc\b|\bsubb\b|\bmach\b', instruction):
        return 'int64', 1
    return 'other', 1


KINDS = {
    'amd': lambda text: _kind_by(AMD, text),
    # Behind a predicate.
    'nvidia': lambda text: _kind_by(NVIDIA, re.sub(r'^@!?U?P\d+\s+', '', text)),
    'intel': _intel_kind,
}


def count(vendor, code):
    counts = collections.Counter()
    for instruction in code:
        kind, amount = KINDS[vendor](instruction.text)
        counts[kind] += amount
    return counts


def numbers(vendor, code):
    """What the budget holds of a kernel's instructions (functions that it calls behind it), and the hot loop: the innermost one with most fma, else the longest."""
    loops = innermost(code)
    counts = [count(vendor, code[b:e + 1]) for b, e in loops]
    whole = count(vendor, code)
    result = {'wide': whole['wide'], 'narrow': whole['narrow'], 'calls': whole['call'], 'matrix': whole['matrix'], 'code': len(code), 'int64': sum(c['int64'] for c in counts),
              'hot': 0, 'lds_fma': 0.0}
    hot = []
    if loops:
        best = max(range(len(loops)), key=lambda i: (counts[i]['fma'] + 64 * counts[i]['matrix'], loops[i][1] - loops[i][0]))
        hot = code[loops[best][0]:loops[best][1] + 1]
        result['hot'] = len(hot)
        if counts[best]['fma']:
            result['lds_fma'] = round(counts[best]['lds'] / counts[best]['fma'], 3)
    return result, hot

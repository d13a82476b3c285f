# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-check --self-test: faults that its readers and its comparison must find, without a compiler."""
import functools
import os
import sys
import tempfile

import budget
import check
import compilers
import exceptions
import listing
import page
import planted

AMD = '''	.globl	planted
planted:                                ; @planted
; %bb.0:
	s_load_dwordx4 s[0:3], s[4:5], 0x0
	s_add_u32 s2, s2, helper@rel32@lo+4
.LBB0_1:                                ; in Loop: Header
	.loc	0 7 3                           ; kernel.cl:7:3
	ds_read2_b32 v[2:3], v1 offset1:1
	ds_read_b128 v[4:7], v1
	v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[0:1]
	v_fmac_f32_e32 v0, v2, v4
	v_addc_co_u32_e32 v9, vcc, 0, v9, vcc
	global_load_dwordx4 v[8:11], v1, s[0:1]
	global_load_ushort v12, v1, s[0:1]
	s_cbranch_vccnz .LBB0_1
	s_swappc_b64 s[30:31], s[2:3]
.Lfunc_end0:
; Occupancy: 5
helper:                                 ; @helper
	scratch_store_dwordx4 off, v[0:3], s32 ; 16-byte Folded Spill
	v_mfma_f32_32x32x1_2b32 a[0:31], v0, v1, a[0:31]
.Lfunc_end1:
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .type_name:      'float*'
        .value_kind:     global_buffer
      - .offset:         8
        .size:           4
        .type_name:      int
        .value_kind:     by_value
      - .offset:         16
        .size:           4
        .value_kind:     hidden_block_count_x
    .group_segment_fixed_size: 256
    .name:           planted
    .private_segment_fixed_size: 48
    .vgpr_count:     97
    .vgpr_spill_count: 2
'''
NVIDIA = '''.text.planted:
planted:
	//## File "kernel.cl", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDS.128 R4, [R2] ;
	//## File "kernel.cl", line 9
        /*0020*/                   FFMA R0, R4, R5, R0 ;
        /*0030*/                   FFMA R0, R4, R5, R0 ;
        /*0040*/                   LDG.E.128 R8, desc[UR4][R2.64] ;
        /*0050*/                   LDG.E.U16 R8, desc[UR4][R2.64] ;
        /*0060*/                   IMAD.WIDE R2, R3, 0x4, R2 ;
        /*0070*/               @P0 BRA `(.L_x_1) ;
        /*0080*/                   CALL.REL.NOINC `($planted$helper) ;
        /*0090*/                   HMMA.16816.F32 R4, R4, R6, R4 ;
.L_x_2:
        /*00a0*/                   BRA `(.L_x_2);
        /*00b0*/                   NOP;
'''
INTEL = '''_0_005:
        mad (16|M0)              r4.0<1>:f     r4.0<1;0>:f       r6.0<1;0>:f       r8.0<1>:f         // $7
        send.dc1 (8|M0)          r20      r2      null:0  0x0            0x024060FE           {A@2,$15} // wr:1+0, rd:4; untyped surface read with xyzw // $9
        send.dc1 (8|M0)          r13      r14     null:0  0x0            0x041401FF           {A@2,$15} // wr:2+0, rd:1; a64 dword gathering read // $10
        load.ugm.d32x4.a64 (32|M0)  r20:8       [r7:4]             {A@2,$7} // ex_desc:0x0; desc:0x8803580 // $11
        load.slm.d32x2.a32 (32|M0)  r6:4        [r2:2]             {A@1,$2} // ex_desc:0x0; desc:0x8803580 // $12
        load.ugm.d32x32t.a32.ca.ca (1|M0)  r1:2 bti[255][r127:1]   {A@1,$0} // ex_desc:0xFF000000; desc:0x6228E500 // $12
        addc (8|M0)              r3.0<1>:ud    r58.3<0;1,0>:ud   r2.0<1;1,0>:ud   {AccWrEn,Compacted,I@3} // $13
(f1.1)  goto (16|M0)                         _0_005            _0_005                                // $14
        dpas.8x8 (8|M0)          r4:f          r4:f              r6:hf             r8.0:hf           // $15
'''


fails = functools.partial(planted.fails, 'gpu-check')


def readers():
    bad = 0
    amd = compilers.Amd.__new__(compilers.Amd)
    facts, code, parameters = amd.read({'text': AMD}, 'planted', 'gfx942', 64, 32)
    bad += fails("AMD's facts", {'registers': 97, 'spills': 3, 'scratch': 48, 'local': 288, 'occupancy': 5}, facts)
    bad += fails("AMD's parameters", ['m', 'v4'], parameters)
    expected = {'wide': 1, 'narrow': 1, 'calls': 1, 'matrix': 1, 'code': 13, 'int64': 1, 'hot': 8, 'lds_fma': 2.0}
    numbers, hot = listing.numbers('amd', code)
    bad += fails("AMD's instructions", expected, numbers)
    bad += fails("the line of AMD's loop", 7, hot[0].line)

    numbers, hot = listing.numbers('nvidia', listing.nvidia_functions(NVIDIA)['planted'])
    bad += fails("NVIDIA's instructions", dict(expected, code=10, hot=7), numbers)
    bad += fails("the line of NVIDIA's loop", [3, 9], [hot[0].line, hot[1].line])
    nvidia = compilers.Nvidia.__new__(compilers.Nvidia)
    said = ("ptxas info    : Compiling entry function 'planted' for 'sm_90'\nptxas info    : Function properties for planted\n    384 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
            'ptxas info    : Used 168 registers, used 1 barriers, 400 bytes cumulative stack size, 16384 bytes smem\n')
    ptx = '\t.param .u64 .ptr .global .align 1 planted_param_0,\n\t.param .u32 planted_param_1,\n\t.param .align 8 .b8 planted_param_2[88],\n\t.param .u64 .ptr .shared .align 1 planted_param_3'
    facts, _, parameters = nvidia.read({'text': NVIDIA, 'said': said, 'ptx': ptx}, 'planted', 'sm_90', 64, 0)
    bad += fails("NVIDIA's facts", {'registers': 168, 'spills': 12, 'scratch': 400, 'local': 16384, 'occupancy': 18}, facts)
    bad += fails("NVIDIA's parameters", ['m', 'v4', 'v88', 'l'], parameters)

    numbers, _ = listing.numbers('intel', listing.intel_code(INTEL))
    bad += fails("Intel's instructions", {'wide': 1, 'narrow': 1, 'calls': 0, 'matrix': 1, 'code': 9, 'int64': 1, 'hot': 8, 'lds_fma': 6.0}, numbers)
    intel = compilers.Intel.__new__(compilers.Intel)
    about = ('PATCH_TOKEN_KERNEL_ARGUMENT_INFO\n\tArgumentNumber       =  0\n\tAddressQualifierSize =  12 | value = "__global"\n\tTypeNameSize         =  12 | value = "float*;8"\n'
             'PATCH_TOKEN_KERNEL_ARGUMENT_INFO (0000001A)\n\tArgumentNumber       =  1\n\tAddressQualifierSize =  12 | value = "__private"\n\tTypeNameSize         =  12 | value = "long16;128"\n'
             'PerThreadPrivateMemorySize = 96\nTotalInlineLocalMemorySize = 64\n').replace('INFO\n', 'INFO (0000001A)\n')
    facts, _, parameters = intel.read({'text': '//.spill size 32\nnumGRF=128\n' + INTEL, 'about': about, 'width': '16'}, 'planted', 'dg2', 64, 0)
    bad += fails("Intel's facts", {'registers': 128, 'spills': 32, 'scratch': 96, 'local': 64, 'occupancy': 16}, facts)
    bad += fails("Intel's parameters", ['m', 'v128'], parameters)
    return bad


def processes():
    """A compiler that aborts, one that hangs and one that says an error end alone, with a reason."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for script, reason in (('kill -ABRT $$', 'sh was ended by signal 6'), ('while :; do :; done', 'sh did not end within 1 s of a processor'), ('sleep 60', 'sh did not end within 10 s'),
                               ('echo "k.cl:1: error: planted"; exit 1', 'sh: k.cl:1: error: planted')):
            try:
                compilers.run(['/bin/sh', '-c', script], folder, [], 1)
                got = 'no failure'
            except compilers.Failure as problem:
                got = str(problem)
            bad += fails(f'the end of `{script}`', reason, got)
    return bad


def choice():
    """Programs for instructions of f8 are for targets that have these."""
    with tempfile.TemporaryDirectory() as folder:
        for program, numbers in (('f8', 5), ('bf16', 2)):
            with open(os.path.join(folder, program + '.cl'), 'w') as file:
                file.write(f'#define CLUTCH_NUMBERS {numbers}\n')
        with open(os.path.join(folder, 'planted.launches'), 'w') as file:
            file.writelines(f'{program}\tmatmul_matrix\t64\t64\tm\tcall of {program}\n' for program in ('f8', 'bf16'))
        calls = lambda target: sorted(task.call for task in check.tasks_of(target, folder, 'planted', None, False))
        return fails('programs of sm_80', ['call of bf16'], calls('sm_80')) + fails('programs of sm_90', ['call of bf16', 'call of f8'], calls('sm_90'))


def comparison():
    bad = 0
    row = {'target': 'sm_90', 'kernel': 'planted', 'call': 'a call', 'compiler': 'ptxas-1', 'error': '', **{name: 8 for name in budget.NUMBERS}}
    held = {budget.key(row): row}
    listed = [exceptions.Listed('planted', '*', 'sm_90', 'default', '9', '9', 'a reason')]
    bad += fails('equal numbers', (0, 0), tuple(check.judge([row], held, listed)[k] for k in ('worse', 'better')))
    for name in budget.NUMBERS:
        grows_badly = name not in ('occupancy', 'wide', 'matrix')
        for now in (7, 9):
            report = check.judge([dict(row, **{name: now})], held, listed)
            bad += fails(f'{name} from 8 to {now}', ((now > 8) == grows_badly, (now > 8) != grows_badly), (report['worse'] == 1, report['better'] == 1))
    other = check.judge([dict(row, registers=9, compiler='ptxas-2')], held, listed)
    bad += fails('growth by another compiler', (0, 1), (other['worse'], other['other']))
    bad += fails('a kernel that stops compiling', 1, check.judge([dict(row, error='planted')], held, listed)['worse'])
    bad += fails('a kernel without a row', 1, check.judge([dict(row, kernel='unknown')], held, listed)['new'])
    bad += fails('wrong arguments', True, 'binds m,v8, the compiled kernel takes m,v4' in (check.wrong_arguments(['m', 'v4'], [('64', 'm,v4'), ('64', 'm,v8')]) or ''))
    bad += fails('right arguments', None, check.wrong_arguments(['m', 'v4', 'l'], [('64', 'm,v4,l1024')]))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'budget.tsv')
        budget.write(path, held)
        again = budget.read(path)
        bad += fails('a budget that was written and read', (0, 0, 0), tuple(check.judge([row], again, listed)[k] for k in ('worse', 'better', 'new')))
        with open(path, 'a') as file:
            file.write('too\tfew\n')
        try:
            budget.read(path)
            bad += fails('a row of two columns', 'an error', 'none')
        except ValueError as problem:
            bad += fails('its number', True, f':{sum(1 for _ in open(path))}: a row must have' in str(problem))
    return bad


def listed():
    """What a kernel keeps in memory must be listed, with a budget and without one; and lists must be of what kernels take."""
    bad = 0
    clean = {'target': 'sm_90', 'kernel': 'planted', 'call': 'a call f32', 'compiler': 'ptxas-1', 'error': '', **{name: 0 for name in budget.NUMBERS}}
    allowed = exceptions.Listed('planted', '*f32; *16', 'sm_90,dg2', 'default', '4', '64', 'a reason')
    none = allowed._replace(spills='-', scratch='-')
    for what, row, exception, found in (('no numbers in memory', clean, None, 0), ('a spill', dict(clean, spills=4), None, 1), ('scratch memory', dict(clean, scratch=16), None, 1),
                                        ('an error', dict(clean, error='planted'), None, 1), ('a listed spill', dict(clean, spills=4, scratch=64), allowed, 0),
                                        ('more than is listed', dict(clean, spills=5), allowed, 1), ('more scratch memory than is listed', dict(clean, scratch=65), allowed, 1),
                                        ('a spill on another target', dict(clean, spills=4, target='pvc'), allowed, 1), ('a spill of another call', dict(clean, spills=4, call='f64'), allowed, 1),
                                        ('a spill of another kernel', dict(clean, spills=4, kernel='planted_2'), allowed, 1), ('an error where a spill is listed', dict(clean, error='e'), allowed, 1),
                                        ('a listed error', dict(clean, error='planted'), none, 0), ('a spill where an error is listed', dict(clean, spills=4), none, 1)):
        for kind, held in (('without a budget', {}), ('with a budget', {budget.key(row): row})):
            bad += fails(f'{what} {kind}: unlisted', found, check.judge([row], held, [exception] if exception else [])['unlisted'])
    other = check.judge([dict(clean, spills=4, compiler='ptxas-2')], {budget.key(clean): clean}, [])
    bad += fails('a spill by another compiler', (0, True), (other['unlisted'], any('by ptxas-2' in line for line in other['lines'])))
    rows = [dict(clean, spills=4, scratch=64, target=target) for target in ('sm_90', 'dg2')]
    for what, exception, said in (('a fitting list', allowed, []), ('a list that allows too much', allowed._replace(spills='5'), ['allows 5 spills, the most is 4']),
                                  ('a list for a target without it', allowed._replace(targets='sm_90,dg2,pvc'), ['holds for no row of pvc']),
                                  ('a call that is real', allowed._replace(kind='other'), ['must be of the kind default'])):
        lines = exceptions.faults(rows, [exception])
        bad += fails(what, [True] * len(said), [part in line for part, line in zip(said, lines)] if len(said) == len(lines) else lines)
    matrix = [dict(row, kernel='planted_matrix') for row in rows]
    bad += fails('a call that asks for matrix instructions', [], exceptions.faults(matrix, [allowed._replace(kernel='planted_matrix', kind='opt-in')]))
    bad += fails('a call that does not', 1, len(exceptions.faults(rows, [allowed._replace(kind='opt-in')])))
    many = [allowed._replace(reason=f'reason {n}') for n in range(exceptions.MOST_DEFAULT + 1)]
    bad += fails('as many rows as may be', [], exceptions.faults(rows, many[1:]))
    bad += fails('a row more', 1, len(exceptions.faults(rows, many)))
    bad += fails('as many of others', [], exceptions.faults([dict(row, call='problem f32') for row in rows], [e._replace(kind='other') for e in many]))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'exceptions.tsv')
        for text, said in (('planted\t*\tsm_90\tdefault\t4\t64\ta reason', None), ('planted\t*\tsm_90\tsometimes\t4\t64\ta reason', 'kind must be'),
                           ('planted\t*\tsm_90\tdefault\t-\t64\ta reason', 'both -'), ('planted\t*\tsm_90\tdefault\t4\t64\t', 'none of them empty'), ('planted\t*', 'must have 7 columns')):
            with open(path, 'w') as file:
                file.write('\t'.join(exceptions.COLUMNS) + '\n' + text + '\n')
            try:
                exceptions.read(path)
                got = None
            except ValueError as problem:
                got = said if said and f':2: ' in str(problem) and said in str(problem) else str(problem)
            bad += fails(f'the row {text!r}', said, got)
        path = os.path.join(folder, 'devices.md')
        begin, end = exceptions.BEGIN.format, exceptions.END.format
        with open(path, 'w') as file:
            file.write(f"before\n{begin('compiled programs')}{end('compiled programs')}between\n{begin('lists')}{end('lists')}after\n{begin('estimates')}{end('estimates')}")
        estimates = [['a call', 'h100', 'all', 'L2', '55.4', '80.2', *['-'] * 4], ['a call', 'h100', 'planted', 'L2', '9.0', '-', *['-'] * 4], ['a call', 'a770', 'all', 'L2', '70.0', '60.0', *['-'] * 4]]
        parts = exceptions.document(rows, [allowed], estimates, {('a call', 'h100'): 50.0})
        bad += fails('a document without the tables', False, exceptions.is_documented(parts, path))
        exceptions.write_document(parts, path)
        bad += fails('a document with the tables', (True, False, False),
                     (exceptions.is_documented(parts, path), exceptions.is_documented(exceptions.document(rows, [none], estimates, {}), path), exceptions.is_documented(exceptions.document(rows[:1], [allowed], estimates, {('a call', 'h100'): 50.0}), path)))
        text = open(path).read()
        for said in ('before\n<!--', '-->\nbetween\n<!--', '-->\nafter\n<!--', '| `planted` | f32, 16 | `sm_90`, `dg2` | 4 | 64 |', '| `dg2` | ptxas-1 | all 1 | 1 | 1 |', '| a call | 55 us, 80 % |  |  | 70 us, 60 % |',
                     'off by 11 % in the median and 11 % at most: a call on H100 +11 %.'):
            bad += fails(f'the document has {said!r}', True, said in text)
    return bad


def prunes():
    """Rows of launches that are no more go with a run that meets all of their op and target."""
    rows = [{'target': t, 'kernel': k, 'call': c} for t in ('sm_90', 'dg2') for k in ('sort_tiles', 'map_rows') for c in ('old', 'new')]
    held = {budget.key(row): row for row in rows}
    met = [row for row in rows if row['call'] == 'new']
    bad = fails('stale rows of all ops', {budget.key(row) for row in rows if row['call'] == 'old'}, check.stale_keys(met, held, {'sm_90', 'dg2'}, None))
    bad += fails('stale rows of an op', {(t, 'sort_tiles', 'old') for t in ('sm_90', 'dg2')}, check.stale_keys([r for r in met if r['kernel'] == 'sort_tiles'], held, {'sm_90', 'dg2'}, ['sort']))
    bad += fails('stale rows of a target', {('sm_90', k, 'old') for k in ('sort_tiles', 'map_rows')}, check.stale_keys([r for r in met if r['target'] == 'sm_90'], held, {'sm_90'}, None))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'pairs.tsv')
        budget.write_shares(path, budget.PAIRS, [dict(row, error='', pairs=0.5) for row in rows])
        budget.write_shares(path, budget.PAIRS, [], {budget.key(row) for row in rows if row['call'] == 'old'})
        bad += fails('shares without the stale ones', {budget.key(row) for row in met}, set(budget.read_shares(path)))
    return bad


def shows_estimates():
    """The page has estimates, and measured times beside them with the model's error; none without one."""
    rest = ['-'] * 4
    rows = [['a call', 'h200', 'all', 'DRAM', '55.0', '80.0', *rest], ['a call', 'h200', 'planted', 'L2', '54.0', '-', *rest], ['a call', 'mi300x', 'all', 'issue', '40.0', '-', *rest],
            ['b call', 'h200', 'all', 'L2', '9.0', '70.0', *rest]]
    text = '\n'.join(page.estimated(rows, {('a call', 'h200'): 50.0, ('c call', 'h200'): 1.0}))
    bad = 0
    for said, wanted in (('<td>55 us, 80 %<br><small>DRAM</small><br>measured 50 us, <b>off by +10 %</b></td>', True), ('<td>40 us<br><small>issue</small></td>', True), ('54', False),
                         ('<td>9 us, 70 %<br><small>L2</small></td>\n<td><small>not estimated</small></td>', True), ('off by 10 % in the median and 10 % at most', True), ('c call', False)):
        bad += fails(f'the page has {said!r}', wanted, said in text)
    return bad + fails('the page without measured times', True, 'No time was measured.' in '\n'.join(page.estimated(rows, {})))


def main():
    bad = readers() + processes() + choice() + comparison() + listed() + prunes() + shows_estimates()
    print(f'gpu-check --self-test: {bad} faults were not found' if bad else 'gpu-check --self-test: all faults were found')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-check --self-test: faults that its readers and its comparison must find, without a compiler."""
import functools
import os
import sys
import tempfile

import budget
import check
import compilers
import listing
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
    bad += fails('equal numbers', (0, 0), tuple(check.judge([row], held)[k] for k in ('worse', 'better')))
    for name in budget.NUMBERS:
        grows_badly = name not in ('occupancy', 'wide', 'matrix')
        for now in (7, 9):
            report = check.judge([dict(row, **{name: now})], held)
            bad += fails(f'{name} from 8 to {now}', ((now > 8) == grows_badly, (now > 8) != grows_badly), (report['worse'] == 1, report['better'] == 1))
    other = check.judge([dict(row, registers=9, compiler='ptxas-2')], held)
    bad += fails('growth by another compiler', (0, 1), (other['worse'], other['other']))
    bad += fails('a kernel that stops compiling', 1, check.judge([dict(row, error='planted')], held)['worse'])
    bad += fails('a kernel without a row', 1, check.judge([dict(row, kernel='unknown')], held)['new'])
    bad += fails('wrong arguments', True, 'binds m,v8, the compiled kernel takes m,v4' in (check.wrong_arguments(['m', 'v4'], [('64', 'm,v4'), ('64', 'm,v8')]) or ''))
    bad += fails('right arguments', None, check.wrong_arguments(['m', 'v4', 'l'], [('64', 'm,v4,l1024')]))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'budget.tsv')
        budget.write(path, held)
        again = budget.read(path)
        bad += fails('a budget that was written and read', (0, 0, 0), tuple(check.judge([row], again)[k] for k in ('worse', 'better', 'new')))
        with open(path, 'a') as file:
            file.write('too\tfew\n')
        try:
            budget.read(path)
            bad += fails('a row of two columns', 'an error', 'none')
        except ValueError as problem:
            bad += fails('its number', True, f':{sum(1 for _ in open(path))}: a row must have' in str(problem))
    return bad


def main():
    bad = readers() + processes() + choice() + comparison()
    print(f'gpu-check --self-test: {bad} faults were not found' if bad else 'gpu-check --self-test: all faults were found')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())

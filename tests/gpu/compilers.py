# SPDX-License-Identifier: Apache-2.0
"""Compiles one kernel for one GPU, each command in a process of its own with a time limit, and reads what came out."""
import glob
import hashlib
import os
import re
import resource
import signal
import subprocess
import tempfile

import listing


class Failure(Exception):
    """What a compiler ended with."""


def run(command, folder, libraries, seconds, **environment):
    """Output of a command, which may take so many seconds of a processor, and ten times as long in all. One that fails, is killed or takes longer ends alone."""
    variables = dict(os.environ, LD_LIBRARY_PATH=':'.join(libraries), **environment)
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    process = subprocess.Popen(command, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace', start_new_session=True, preexec_fn=limit)
    name = os.path.basename(command[0])
    try:
        output, _ = process.communicate(timeout=10 * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Failure(f'{name} did not end within {10 * seconds} s')
    if process.returncode == -signal.SIGXCPU:
        raise Failure(f'{name} did not end within {seconds} s of a processor')
    if process.returncode < 0:
        raise Failure(f'{name} was ended by signal {-process.returncode}')
    if process.returncode != 0 or 'Build failed' in output:
        said = [line for line in output.splitlines() if re.search(r'error|fatal|Error', line)] or output.splitlines()[-1:] or ['']
        raise Failure(f'{name}: {said[0].strip()[:200]}')
    return output


class Compiler:
    """The compiler of a vendor, as tests/gpu/fetch unpacked it."""

    def __init__(self, root, seconds):
        self.root, self.seconds = root, seconds
        self.versions = dict(line.split() for line in open(os.path.join(root, '..', 'versions')) if len(line.split()) == 2)
        self.system = os.path.join(root, 'usr/lib', os.uname().machine + '-linux-gnu')

    def clang(self, major, folder, options, *more):
        program = os.path.join(self.root, f'usr/lib/llvm-{major}/bin/clang')
        libraries = [os.path.join(self.root, f'usr/lib/llvm-{major}/lib'), self.system]
        # Drivers define the version; lines are those of the file, without #line.
        return run([program, '-w', '-x', 'cl', *options, '-D__OPENCL_VERSION__=120', '-O3', *more, '-S', 'kernel.cl'], folder, libraries, self.seconds)

    def number(self, package):
        """The version of a package without the archive's own part: 22.1.8 of 1:22.1.8-1~deb12u1."""
        return re.sub(r'^\d+:|[-+~].*', '', self.versions[package])


class Amd(Compiler):
    vendor = 'amd'

    @property
    def version(self):
        return 'clang-' + self.number('clang-22')

    def compile(self, folder, options, target, entry):
        library = os.path.join(self.root, 'usr/lib/clc/amdgcn-amd-amdhsa.bc')
        self.clang(22, folder, options, '-gline-tables-only', '-target', 'amdgcn-amd-amdhsa', f'-mcpu={target}', '-nogpulib', '-Xclang', '-mlink-builtin-bitcode', '-Xclang', library, '-o',
                   'out.s')
        return {'text': open(os.path.join(folder, 'out.s')).read()}

    def read(self, outputs, entry, target, local_size, dynamic_local):
        text = outputs['text']
        functions = listing.amd_functions(text)
        code, tail = functions[entry]
        about = next(part for part in re.split(r'\n  - (?=\.a)', text[text.index('amdhsa.kernels:'):]) if re.search(rf'\.name: +{re.escape(entry)}\n', part))
        fact = lambda name: int(re.search(rf'\.{name}: +(\d+)', about)[1])
        # A kernel's registers and stack include those of what it calls, its spills do not.
        reached = reach(entry, lambda name: listing.amd_calls(functions[name][0], functions))
        spills = fact('vgpr_spill_count') + sum(i.text.endswith('Folded Spill') for name in reached[1:] for i in functions[name][0])
        occupancy = re.search(r'; Occupancy: (\d+)', tail)
        result = {'registers': max(fact('vgpr_count'), int((re.search(r'; TotalNumVgprs: (\d+)', tail) or [0, 0])[1])), 'spills': spills, 'scratch': fact('private_segment_fixed_size'),
                  'local': fact('group_segment_fixed_size') + dynamic_local, 'occupancy': int(occupancy[1]) if occupancy else 0}
        parameters = []
        for size, kind in re.findall(r'\.size: +(\d+)\n(?: +\.type_name:[^\n]*\n)? +\.value_kind: +(\w+)', about):
            if not kind.startswith('hidden_'):
                parameters.append({'global_buffer': 'm', 'dynamic_shared_pointer': 'l'}.get(kind, f'v{size}'))
        return result, [i for name in reached for i in functions[name][0]], parameters


class Nvidia(Compiler):
    vendor = 'nvidia'
    # Warps of a multiprocessor and its shared memory, by architecture; 64 K registers on all.
    limits = {'sm_80': (64, 164 << 10), 'sm_86': (48, 100 << 10), 'sm_89': (48, 100 << 10), 'sm_90': (64, 228 << 10), 'sm_100': (64, 228 << 10), 'sm_120': (48, 100 << 10)}

    @property
    def version(self):
        return f"ptxas-{self.versions['nvidia_cuda_nvcc']}"

    def compile(self, folder, options, target, entry):
        toolkit = glob.glob(os.path.join(self.root, 'nvidia/cu*'))[0]
        libraries = [os.path.join(self.root, 'usr/lib/clc/nvptx64--nvidiacl.bc'), os.path.join(toolkit, 'nvvm/libdevice/libdevice.10.bc')]
        links = [part for library in libraries for part in ('-Xclang', '-mlink-builtin-bitcode', '-Xclang', library)]
        # NVIDIA's driver hands its own options on to ptxas.
        limits = ['--maxrregcount=' + option.split('=')[1] for option in options if option.startswith('-cl-nv-maxrregcount=')]
        options = [option for option in options if not option.startswith('-cl-nv-')]
        # PTX of sm_90 is taken for later ones. The system in the triple makes parameters cl_mem's.
        front = target if int(target[3:]) < 90 else 'sm_90'
        # As NVIDIA's own compiler makes them; libclc's divide.
        native = ['-Dnative_rsqrt=__nvvm_rsqrt_approx_ftz_f', '-Dnative_recip=__nvvm_rcp_approx_ftz_f']
        self.clang(19, folder, options + native, '-gline-directives-only', '-target', 'nvptx64-nvidia-nvcl', '-Xclang', '-target-cpu', '-Xclang', front, '-Xclang', '-target-feature', '-Xclang', '+ptx83',
                   *links, '-o', 'out.ptx')
        ptx = open(os.path.join(folder, 'out.ptx')).read()
        # ptxas knows no folder beside a file's name, and no label between the lines of a call; those of line numbers are not referred to.
        ptx = re.sub(r'^(\s*\.file\s+\d+) "[^"]*" "', r'\1 "', ptx, flags=re.M)
        open(os.path.join(folder, 'out.ptx'), 'w').write(re.sub(r'^\$L__tmp\d+:\n', '', ptx, flags=re.M))
        tool = lambda *command: run([os.path.join(toolkit, 'bin', command[0]), *command[1:]], folder, [self.system], self.seconds)
        said = tool('ptxas', '-v', '-lineinfo', *limits, f'-arch={target}', 'out.ptx', '-o', 'out.cubin')
        return {'said': said, 'text': tool('nvdisasm', '-c', '-g', 'out.cubin'), 'ptx': re.search(rf'\.entry {re.escape(entry)}\((.*?)\n\)', ptx, re.S)[1]}

    def read(self, outputs, entry, target, local_size, dynamic_local):
        functions = listing.nvidia_functions(outputs['text'])
        said = outputs['said']
        about = re.search(rf"Compiling entry function '{re.escape(entry)}'.*?Used[^\n]*", said, re.S)[0]
        first = lambda pattern, text: int((re.search(pattern, text) or [0, 0])[1])
        used = about.splitlines()[-1]
        spills = sum(int(stores) + int(loads) for stores, loads in re.findall(r'(\d+) bytes spill stores, (\d+) bytes spill loads', said))
        result = {'registers': first(r'Used (\d+) reg', used), 'spills': spills, 'scratch': max(first(r'(\d+) bytes cumulative stack', used), first(r'(\d+) bytes stack frame', about)),
                  'local': first(r'(\d+) bytes smem', used) + dynamic_local}
        warps, shared = self.limits[target]
        mine = max(1, (local_size + 31) // 32)
        groups = min(warps // mine, 32, (64 << 10) // (max(8, -(-result['registers'] // 8) * 8) * 32 * mine), shared // (result['local'] + 1024))
        result['occupancy'] = 100 * groups * mine // warps
        parameters = []
        for row in outputs['ptx'].splitlines():
            if '.ptr .shared' in row:
                parameters.append('l')
            elif '.ptr .global' in row or '.ptr .const' in row:
                parameters.append('m')
            elif array := re.search(r'\.b8 \w+\[(\d+)\]', row):
                parameters.append('v' + array[1])
            elif scalar := re.search(r'\.param \.[a-z]+(\d+) ', row):
                parameters.append(f'v{int(scalar[1]) // 8}')
        # The entry first, then what it calls.
        code = functions.pop(entry)
        return result, code + [i for other in functions.values() for i in other], parameters


class Intel(Compiler):
    vendor = 'intel'

    @property
    def version(self):
        return 'igc-' + self.number('libigc1')

    def compile(self, folder, options, target, entry):
        dump = os.path.join(folder, 'dump')
        os.makedirs(dump)
        run([os.path.join(self.root, 'usr/bin/ocloc'), 'compile', '-file', 'kernel.cl', '-device', target, '-options', ' '.join(options), '-out_dir', 'out'], folder, [self.system], self.seconds,
            IGC_ShaderDumpEnable='1', IGC_DumpToCustomDir=dump)
        texts = []
        for path in sorted(glob.glob(dump + '/*.asm'), key=lambda p: (re.search(r'_\d+_simd', p) is not None, p)):
            text = open(path, errors='replace').read()
            if re.search(rf'^//\.kernel "?{re.escape(entry)}"?$', text, re.M):
                texts.append((re.search(r'simd(\d+)', os.path.basename(path))[1], text))
        if not texts:
            raise Failure(f'ocloc wrote no assembly of {entry}')
        about = ''
        for path in glob.glob(dump + '/*.cos'):
            text = open(path, errors='replace').read()
            if f'Kernel Name = {entry} ' in text:
                about = text
        # Where registers spill it compiles twice and keeps the last.
        return {'width': texts[-1][0], 'text': texts[-1][1], 'about': about}

    def read(self, outputs, entry, target, local_size, dynamic_local):
        text, about = outputs['text'], outputs['about']
        first = lambda pattern, text: int((re.search(pattern, text) or [0, 0])[1])
        # Private memory, an item's; Xe-HPC has it in the scratch space, a thread's.
        scratch = first(r'PerThreadPrivateMemorySize\s*[:=]\s*(\d+)', about) or first(r'ScratchSpace = (\d+)', about) // int(outputs['width'])
        result = {'registers': first(r'numGRF=(\d+)', text), 'spills': first(r'//\.spill size (\d+)', text), 'scratch': scratch,
                  'local': first(r'TotalInlineLocalMemorySize\s*[:=]\s*(\d+)', about) + dynamic_local, 'occupancy': int(outputs['width'])}
        parameters = {}
        for token in re.findall(r'PATCH_TOKEN_KERNEL_ARGUMENT_INFO .*?(?=PATCH_TOKEN|\Z)', about, re.S):
            space = re.search(r'AddressQualifierSize[^\n]*"(\w+)"', token)[1]
            size = re.search(r'TypeNameSize[^\n]*;(\d+)"', token)
            parameters[first(r'ArgumentNumber\s*=\s*(\d+)', token)] = {'__global': 'm', '__constant': 'm', '__local': 'l'}.get(space, f'v{size[1]}' if size else 'v0')
        return result, listing.intel_code(text), [parameters[i] for i in sorted(parameters)]


VENDORS = {'gfx': ('amd', Amd), 'sm_': ('nvidia', Nvidia)}


def vendor_of(target):
    """(name, class) of a target's compiler: gfx942, sm_90; all else is Intel's."""
    return VENDORS.get(target[:3], ('intel', Intel))


def reach(entry, calls):
    """The functions that a kernel reaches, itself first."""
    reached = [entry]
    for name in reached:
        reached += [other for other in calls(name) if other not in reached]
    return reached


def compile_program(compiler, source, options, target, entry):
    """Outputs of the compiler, or {'error': reason}."""
    with tempfile.TemporaryDirectory(prefix='clutch-gpu-') as folder:
        with open(os.path.join(folder, 'kernel.cl'), 'w') as file:
            file.write(re.sub(r'^#line .*$', '', source, flags=re.M))
        try:
            return compiler.compile(folder, options, target, entry)
        except Failure as problem:
            return {'error': str(problem)}


def digest(*parts):
    return hashlib.sha256('\0'.join(parts).encode()).hexdigest()[:32]

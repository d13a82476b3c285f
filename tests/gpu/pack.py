# SPDX-License-Identifier: Apache-2.0
"""Compiles programs for a GPU without one, for clutch-pack: into what the vendor's driver loads.

Use: pack.py TARGET FOLDER. FOLDER/jobs.json lists {name, entry, options} of the sources FOLDER/<name>.cl. Each becomes FOLDER/<name>.bin, or FOLDER/<name>.error says
why not. FOLDER/versions gets the compiler's version. Ends with 1 and a line if there is no compiler.
"""
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import compilers

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
COMPILERS = os.path.join(ROOT, 'build/gpu/compilers')


def amd_binary(compiler, folder, target):
    """A code object: the assembly, assembled and linked."""
    llvm = os.path.join(compiler.root, 'usr/lib/llvm-22')
    libraries = [os.path.join(llvm, 'lib'), compiler.system]
    compilers.run([os.path.join(llvm, 'bin/clang'), '-target', 'amdgcn-amd-amdhsa', f'-mcpu={target}', '-nogpulib', '-c', 'out.s', '-o', 'out.o'], folder, libraries, compiler.seconds)
    lld = os.path.join(COMPILERS, 'lld/root/usr/lib/llvm-22/bin/lld')
    compilers.run([lld, '-flavor', 'gnu', '-shared', '--strip-debug', 'out.o', '-o', 'out.co'], folder, libraries, compiler.seconds)
    return open(os.path.join(folder, 'out.co'), 'rb').read()


def nvidia_binary(compiler, folder, target):
    """PTX, without the lines of a source that nobody has there. ptxas has taken it; it takes the shorter one, too."""
    ptx = open(os.path.join(folder, 'out.ptx')).read()
    ptx = re.sub(r'^\s*\.(loc|file)\b.*\n', '', ptx, flags=re.M)
    open(os.path.join(folder, 'short.ptx'), 'w').write(ptx)
    toolkit = glob.glob(os.path.join(compiler.root, 'nvidia/cu*'))[0]
    compilers.run([os.path.join(toolkit, 'bin/ptxas'), f'-arch={target}', 'short.ptx', '-o', 'short.cubin'], folder, [compiler.system], compiler.seconds)
    return ptx.encode()


def intel_binary(compiler, folder, target):
    """ocloc's own output."""
    return open(glob.glob(os.path.join(folder, 'out/*.bin'))[0], 'rb').read()


BINARIES = {'amd': amd_binary, 'nvidia': nvidia_binary, 'intel': intel_binary}


def make(compiler, job, folder, target):
    with open(os.path.join(folder, job['name'] + '.cl'), encoding='utf-8', errors='replace') as file:
        source = re.sub(r'^#line .*$', '', file.read(), flags=re.M)
    path = os.path.join(folder, job['name'])
    with tempfile.TemporaryDirectory(prefix='clutch-pack-') as work:
        with open(os.path.join(work, 'kernel.cl'), 'w') as file:
            file.write(source)
        try:
            compiler.compile(work, job['options'].split(), target, job['entry'])
            binary = BINARIES[compiler.vendor](compiler, work, target)
        except compilers.Failure as problem:
            with open(path + '.error', 'w') as file:
                file.write(str(problem))
            return
    with open(path + '.bin', 'wb') as file:
        file.write(binary)


def main(target, folder):
    vendor, kind = compilers.vendor_of(target)
    wanted = [vendor, 'lld'] if vendor == 'amd' else [vendor]
    subprocess.run([os.path.join(ROOT, 'tests/gpu/fetch'), *wanted], check=False)
    if missing := [name for name in wanted if not os.path.exists(os.path.join(COMPILERS, name, 'versions'))]:
        print(f"there is no compiler for {target}: {' '.join(missing)} could not be fetched into build/gpu/compilers", file=sys.stderr)
        return 1
    compiler = kind(os.path.join(COMPILERS, vendor, 'root'), seconds=60)
    with open(os.path.join(folder, 'versions'), 'w') as file:
        file.write(compiler.version)
    jobs = json.load(open(os.path.join(folder, 'jobs.json')))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: make(compiler, job, folder, target), jobs))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

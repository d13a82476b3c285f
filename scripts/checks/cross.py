#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the files of host/ by another compiler, by their commands but for places of system headers, and prints the first error of each that fails.

Use: cross.py <compile_commands.json> <compiler> <folder of shared headers> [file...]     all files of host/ by default
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys


def command_of(entry, compiler, shared):
    words = shlex.split(entry["command"])
    kept = [compiler]
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in ("-o", "-isystem", "-g", "-fPIC"):
            skip = word in ("-o", "-isystem")
        else:
            kept.append(word)
    return kept + ["-isystem", shared, "-fsyntax-only"]


def main():
    commands, compiler, shared, *wanted = sys.argv[1:]
    root = os.getcwd()
    with open(commands, encoding="utf-8") as file:
        entries = {os.path.relpath(entry["file"], root): entry for entry in json.load(file)}
    names = wanted or sorted(name for name in entries if name.startswith("host/"))
    unknown = [name for name in names if name not in entries]
    if unknown:
        sys.exit(f"no command compiles {', '.join(unknown)}")

    def compile_one(name):
        return subprocess.run(command_of(entries[name], compiler, os.path.abspath(shared)), cwd=entries[name]["directory"], capture_output=True, text=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, result in zip(names, pool.map(compile_one, names)):
            if result.returncode != 0:
                failed += 1
                errors = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()[-1:] or ["no message"]
                print(f"{name}: {errors[0]}" + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""), flush=True)
    print(f"{compiler}: {len(names) - failed} of {len(names)} files compile")
    sys.exit(1 if failed else 0)


main()

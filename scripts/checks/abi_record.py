# SPDX-License-Identifier: Apache-2.0
"""What the headers of C fix for programs that were compiled with them: a line for each type, enumerator, field and function. scripts/c_abi records the lines
(host/capi/abi_1.txt) and holds later headers to them.

Use: abi_record.py --compile CXX SOURCE WORK    sees that a C++ compiler finds in the headers what is recorded, and that it would find other lines wrong
     abi_record.py --history SOURCE             sees that no line is gone that a commit had, and that it would find such a line. 77: there is no history
"""
import os
import re
import subprocess
import sys

RECORD = "host/capi/abi_%d.txt"
HEAD = """# SPDX-License-Identifier: Apache-2.0
# ABI %d of C: what programs that were compiled with clutch/clutch.h and clutch/plugin.h rely on. Written by scripts/c_abi, which adds lines and changes none.
# docs/c.md says how the ABI grows.
"""
SIZES = {"size_t": 8, "int64_t": 8, "uint64_t": 8, "double": 8, "int32_t": 4}


class Unknown(Exception):
    pass


def declarations(text):
    """What ends in a semicolon outside of braces, without comments and directives."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")
    text = re.sub(r"(?m)^\s*#.*$", "", text).replace('extern "C" {', "")
    depth, begin = 0, 0
    for mark in re.finditer("[{};]", text):
        depth = max(0, depth + {"{": 1, "}": -1}.get(mark[0], 0))
        if mark[0] == ";" and depth == 0:
            yield " ".join(text[begin:mark.start()].split())
            begin = mark.end()


def fields_of(body):
    """Pairs of type and name."""
    for declaration in (" ".join(part.split()) for part in body.split(";")):
        pointer = re.fullmatch(r"(.*?) ?\(\*(\w+)\)\((.*)\)", declaration)
        names = re.fullmatch(r"([^,]*[ *])(\w+(?:\[\d+\])?(?:, \w+(?:\[\d+\])?)*)", declaration)
        if pointer:
            yield "%s (*)(%s)" % (pointer[1], pointer[3]), pointer[2]
        elif names:
            for name in names[2].split(", "):
                word, bracket, count = name.partition("[")
                yield names[1].strip() + bracket + count, word
        elif declaration:
            raise Unknown("a field must be a type and names, got: %s" % declaration)


def facts(headers, since):
    """The lines of the headers' texts. `since`: the ABI version of functions that are later than the first."""
    found, sizes, functions = [], dict(SIZES), {}

    def size_of(kind):
        base, _, count = kind.partition("[")
        one = 8 if base.endswith("*") or "(*)" in base else sizes.get(base)
        if not one:
            raise Unknown("the size of a field's type must be known, got: %s" % kind)
        return one * (int(count[:-1]) if count else 1)

    def struct(name, body):
        at, sized = 0, False
        for kind, field in fields_of(body):
            sized = sized or (at == 0 and field == "size")
            if size_of(kind) % 8 != 0:
                raise Unknown("fields must be of 8 bytes or multiples of them, got %s %s.%s" % (kind, name, field))
            pointer = re.fullmatch(r"(.*) \(\*\)\((.*)\)", kind)
            if name == "clutch_api_t" and pointer and functions.get("clutch_" + field) == (pointer[1], pointer[2]):
                kind = "like clutch_" + field
            found.append("field %s.%s at %d: %s" % (name, field, at, kind))
            at += size_of(kind if not kind.startswith("like ") else "void*")
        sizes[name] = at
        if not sized:
            found.append("size of %s: %d" % (name, at))
    for text in headers:
        for declaration in declarations(text):
            same = re.fullmatch(r"typedef struct (\w+) (\w+)", declaration)
            renamed = re.fullmatch(r"typedef (\w+) (\w+)", declaration)
            enum = re.fullmatch(r"enum \{(.*)\}", declaration)
            body = re.fullmatch(r"(?:typedef )?struct (\w+) \{(.*)\}(?: \1)?", declaration)
            function = re.fullmatch(r"(?:CLUTCH_C_API|CLUTCH_PLUGIN_EXPORT) (.*?)(\w+)\((.*)\)", declaration)
            if same and same[1] == same[2]:
                found.append("object %s" % same[1])
            elif renamed:
                sizes[renamed[2]] = size_of(renamed[1])
                found.append("type %s: %s" % (renamed[2], renamed[1]))
            elif enum:
                for enumerator in enum[1].split(","):
                    name, _, value = enumerator.partition("=")
                    found.append("enumerator %s: %d" % (name.strip(), int(value)))
            elif body:
                struct(body[1], body[2])
            elif function:
                functions[function[2]] = (function[1].strip(), function[3])
                found.append("function %s since %d: %s (%s)" % (function[2], since.get(function[2], 1), function[1].strip(), function[3]))
            elif not re.fullmatch(r"struct \w+", declaration):
                raise Unknown("a declaration must be one that the record knows, got: %s" % declaration)
    return found


def lines_of(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def read(source):
    """The recorded lines by version."""
    records = {}
    while os.path.exists(os.path.join(source, RECORD % (len(records) + 1))):
        with open(os.path.join(source, RECORD % (len(records) + 1)), encoding="utf-8") as file:
            records[len(records) + 1] = lines_of(file.read())
    return records


def api_order(records):
    """The names in the table of functions, in the order that programs know."""
    lines = [re.match(r"field clutch_api_t\.(\w+) at (\d+):", line) for version in sorted(records) for line in records[version]]
    return [m[1] for m in sorted((m for m in lines if m and m[1] != "size"), key=lambda m: int(m[2]))]


def changed(records, now):
    """What is recorded and no longer so."""
    wrong = []
    known = set(now)

    def subject(line):
        return re.split(r" at | since |: ", line)[0]
    by_subject = {subject(line): line for line in now}
    for version in sorted(records):
        for line in records[version]:
            if line not in known:
                wrong.append("%s: '%s' must stand as it was, got %s" % (RECORD % version, line, "'%s'" % by_subject[subject(line)] if subject(line) in by_subject else "nothing"))
    return wrong


def record(records, now, version):
    """The text of the newest version's file: what earlier ones have not."""
    before = {line for earlier in records if earlier < version for line in records[earlier]}
    return HEAD % version + "".join(line + "\n" for line in now if line not in before)


# --- By a compiler ---

def assertions(lines):
    out = ["#include <clutch/plugin.h>", "#include <cstddef>", "#include <type_traits>"]
    for line in lines:
        what, _, rest = line.partition(" ")
        subject, _, value = rest.partition(": ")
        says = 'static_assert(%s, "' + line.replace('"', '\\"') + '");'
        if what == "object":
            out.append("using %s_pointer = const %s*;" % (subject, subject))
        elif what == "type":
            out.append(says % ("std::is_same_v<%s, %s>" % (subject, value)))
        elif what == "enumerator":
            out.append(says % ("%s == %s" % (subject, value)))
        elif what == "size":
            out.append(says % ("sizeof(%s) == %s" % (subject.rpartition(" ")[2], value)))
        elif what == "field":
            field, at = subject.split(" at ")
            struct, _, name = field.partition(".")
            kind = "decltype(&%s)" % value[len("like "):] if value.startswith("like ") else value
            out.append(says % ("offsetof(%s, %s) == %s && std::is_same_v<decltype(%s::%s), %s>" % (struct, name, at, struct, name, kind)))
        elif what == "function":
            name = subject.partition(" ")[0]
            result, _, parameters = value.partition(" (")
            out.append(says % ("std::is_same_v<decltype(&%s), %s (*)(%s>" % (name, result, parameters)))
        else:
            raise Unknown("no such line: %s" % line)
    return "\n".join(out) + "\n"


def compiles(compiler, source, work, lines):
    path = os.path.join(work, "abi.cpp")
    with open(path, "w", encoding="utf-8") as file:
        file.write(assertions(lines))
    done = subprocess.run([compiler, "-std=c++20", "-Werror", "-I" + os.path.join(source, "include"), "-fsyntax-only", path], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


# --- By the repository's history ---

def git(source, *arguments):
    return subprocess.run(["git", "-c", "safe.directory=*", "-C", source, *arguments], check=True, capture_output=True, text=True).stdout


def committed(source):
    """Every line that a commit before this one recorded, by version, with the commit that had it last."""
    ever = {}
    for commit in reversed(git(source, "log", "--format=%h", "--", os.path.dirname(RECORD)).split()):
        for path in git(source, "ls-tree", "--name-only", commit, os.path.dirname(RECORD) + "/").split():
            version = re.fullmatch(re.escape(RECORD).replace("%d", r"(\d+)"), path)
            if version:
                ever.setdefault(int(version[1]), {}).update({line: commit for line in lines_of(git(source, "show", "%s:%s" % (commit, path)))})
    return ever


def gone(ever, records):
    """Lines that were recorded and are not in the records now."""
    wrong = []
    for version in sorted(ever):
        now = set(records.get(version, []))
        wrong += ["%s: '%s' must stand, since commit %s had it" % (RECORD % version, line, commit) for line, commit in ever[version].items() if line not in now]
    return wrong


def history(source):
    try:
        ever = committed(source)
    except (OSError, subprocess.CalledProcessError):
        ever = {}
    if not ever:
        print("there is no repository with a history here")
        return 77
    records = read(source)
    wrong = gone(ever, records)
    if wrong:
        print("\n".join(wrong))
        return 1
    # A line that is gone, one that is another, and a record that is gone.
    newest = max(ever)
    some = next(iter(ever[newest]))
    for planted in ({**records, newest: [line for line in records[newest] if line != some]},
                    {**records, newest: [line + " " if line == some else line for line in records[newest]]},
                    {version: lines for version, lines in records.items() if version != newest}):
        if not any(some in line for line in gone(ever, planted)):
            print("a planted fault was not found: %s" % some)
            return 1
    print("%d lines that commits recorded still stand" % sum(len(lines) for lines in ever.values()))
    return 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--history":
        return history(sys.argv[2])
    if len(sys.argv) != 5 or sys.argv[1] != "--compile":
        print(__doc__)
        return 2
    compiler, source, work = sys.argv[2:]
    os.makedirs(work, exist_ok=True)
    lines = [line for version in read(source).values() for line in version]
    good, says = compiles(compiler, source, work, lines)
    if not good or len(lines) < 2000:
        print(says, "%d lines" % len(lines))
        return 1
    # Each kind of line, made wrong.
    for pattern, planted in ((r"(field clutch_plugin_t\.score at )\d+", r"\g<1>8"), (r"(field clutch_tensor_options_t\.dtype at 8: )\w+", r"\1double"),
                             (r"(enumerator CLUTCH_DTYPE_F16: )2", r"\g<1>3"), (r"(size of clutch_number_t: )16", r"\g<1>24"),
                             (r"(type clutch_status_t: )int32_t", r"\1int64_t"),
                             (r"(function clutch_elapsed_ms since 1: clutch_status_t \(.*)double\*", r"\1float*")):
        wrong = [re.sub(pattern, planted, line) for line in lines]
        if wrong == lines:
            print("a planted fault has no place: %s" % pattern)
            return 1
        if compiles(compiler, source, work, wrong)[0]:
            print("a planted fault was not found: %s" % pattern)
            return 1
    print("the compiler finds %d recorded lines in the headers" % len(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())

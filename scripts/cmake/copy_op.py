#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies an op's files under another stem, for scripts/new_op --like: renames what the copies declare, and says what stays with the op.

Use: copy_op.py STEM OTHER    in the root of the tree; STEM is new, OTHER a word of CLUTCH_OPS
"""
import glob
import os
import re
import sys
from dataclasses import dataclass, field


@dataclass
class Ties:
    """How an op hangs together with others, so that not all of it is copied."""
    left: dict = field(default_factory=dict)  # part of the op -> why it stays
    also: list = field(default_factory=list)  # parts of other ops, of which only what the copy's header declares is taken
    adopted: tuple = ()                       # another public header, and which of its functions the op defines: the copy's header declares them
    gone: str = ""                            # text of problems, tests and rows that belong to another op
    why: str = ""                             # the reason for `gone`


TIES = {
    "flex": Ties(left={"host/ops/flex/sdpa.cpp": "sdpa(), of include/clutch/attention.hpp, calls flex()",
                       "host/ops/flex/varlen.cpp": "varlen_attn(), of include/clutch/attention.hpp, calls flex()",
                       "host/ops/flex/multi_head.cpp": "multi_head_attention(), of include/clutch/attention.hpp, calls sdpa()",
                       "host/ops/flex/paged_cache.cpp": "PagedCache has a header of its own, include/clutch/paged_cache.hpp",
                       "tests/ops/flex/sdpa_test.cpp": "", "tests/ops/flex/varlen_test.cpp": "", "tests/ops/flex/multi_head_test.cpp": "",
                       "tests/ops/flex/paged_cache_test.cpp": ""}, gone="PagedCache"),
    "map": Ties(left={"host/ops/map/complex.cpp": "its functions and operators are those of include/clutch/complex.hpp, and call map()",
                      "host/ops/map/list.cpp": "foreach_map() is of include/clutch/foreach.hpp",
                      "host/ops/map/pointwise.cpp": "its functions and operators are those of include/clutch/pointwise.hpp; one of your own is a lambda there",
                      "tests/ops/map/complex_test.cpp": "", "tests/ops/map/list_test.cpp": ""}),
    "matmul": Ties(gone=r"\bsparse::|matmul_sparse|\bis_sparse\b", why="products with 2:4 matrices: sparse24 calls them and packs for them"),
    "reduce": Ties(gone=r"\b(?:segment|scatter)_reduce"),
    "rowwise": Ties(left={"host/ops/rowwise/nn.cpp": "its layers are those of include/clutch/nn.hpp; one of your own is a function of a few lines there"},
                    gone=r"\bnn::"),
    "segment": Ties(also=["host/ops/scatter/gradients.cpp"],
                    adopted=("include/clutch/sparse.hpp", ["spmm", "spmm_out", "spmm_backward", "spmm_backward_out"])),
    "sparse24": Ties(left={"host/ops/sparse24/product.cpp": "products run by matmul's kernels, which know one type of 2:4 matrix"}),
}

# Code that all ops use: words that it has, too, are not the op's.
SHARED = ["kernels/common/*", "host/encode/*", "host/expr/*", "host/graph/*", "host/interop/*", "host/program/*", "host/runtime/*", "host/support/*", "host/tune/*",
          "host/ops/callable.cpp", "host/ops/out_form.*", "host/ops/tensor_methods.cpp", "host/ops/traced.*", "include/clutch/*.hpp", "tests/support/*",
          "bench/harness/*", "bench/peers/*"]
PUBLIC = ["attention", "linalg", "nn", "optim", "sparse"]  # namespaces that ops share
WORD = re.compile(r"[A-Za-z_]\w*")
# Names that begin in column 0, as code in namespaces does.
FUNCTION = r"^(?:CLUTCH_API |CLUTCH_SHARED_FN )?[A-Za-z][^()=;\n]*?[ &*]([A-Za-z_]\w*)\("
TYPE = r"^(?:enum class|enum|struct|class CLUTCH_API|class|concept|typedef struct|using) ([A-Za-z_]\w*)\b(?!::|;)"
CONSTANT = r"^(?:inline )?constexpr [^()\n]*?\b([A-Za-z_]\w*)(?: = |\{)"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def pascal_of(stem):
    return "".join(word.capitalize() for word in stem.split("_"))


def files_of(stem):
    """The op's files, from the contract to the bench."""
    patterns = ["include/clutch/ops/{0}.hpp", "host/ops/{0}[._]*", "host/ops/{0}/*", "kernels/{0}.cl", "kernels/{0}/*", "tests/cases/{0}[._]*", "tests/ops/{0}[._]*",
                "tests/ops/{0}/*", "bench/ops/{0}_bench.cpp"]
    return [path for pattern in patterns for path in sorted(glob.glob(pattern.format(stem)))]


def code_of(text):
    """Without comments and the contents of strings and characters."""
    return re.sub(r"'(?:\\.|[^'\\])'", "0", re.sub(r'"(?:\\.|[^"\\\n])*"', '""', re.sub(r"//.*", "", text)))


def declared(text):
    names = set()
    for pattern in [FUNCTION, TYPE, CONSTANT, r"^\} ([A-Za-z_]\w*);"]:
        names.update(re.findall(pattern, text, re.M))
    return names


def items(lines, indent):
    """Cuts lines into declarations and statements that begin at an indentation, each with the comment before it; other lines stand alone. Yields (begin, end, head)."""
    margin, at = " " * indent, 0
    begins = re.compile(margin + r"[A-Za-z~{]")
    while at < len(lines):
        head = at
        while head < len(lines) and re.match(margin + "//", lines[head]):
            head += 1
        if head == len(lines) or not begins.match(lines[head]) or re.match(r"namespace|public:|private:|extern", lines[head].strip()):
            for alone in range(at, min(head + 1, len(lines))):
                yield alone, alone + 1, None
            at = head + 1
            continue
        # Until all that was opened is closed, by a semicolon or a body.
        end, depth = head, 0
        while end < len(lines):
            code = code_of(lines[end]).rstrip()
            depth += sum(code.count(c) for c in "({[") - sum(code.count(c) for c in ")}]")
            if depth == 0 and code.endswith((";", "}")):
                break
            end += 1
        yield at, min(end + 1, len(lines)), head
        at = end + 1


def without(lines, indent, drops):
    """The lines without the items that drops(text of the item) is true for; what it returns in place of True takes an item's place."""
    kept = []
    for begin, end, head in items(lines, indent):
        answer = head is not None and drops("\n".join(lines[head:end]))
        if answer is False or answer is None:
            kept += lines[begin:end]
        elif answer is not True:
            kept += answer
    return kept


def without_statements(text, gone, indent):
    """A function or loop without its statements that have `gone`, and without variables that none of the others has; None if none is left."""
    lines = text.split("\n")
    inner = lines[1:-1]

    def drops(item):
        if not gone.search(code_and_strings(item)):
            return False
        head = item.split("\n")[0]
        if not re.match(r" *(?:for|if) \(.*\) \{$", head) or gone.search(head):
            return True
        kept = without_statements(item, gone, indent + 2)
        return kept.split("\n") if kept else True

    inner = without(inner, indent, drops)
    while True:
        words = WORD.findall(code_of("\n".join(inner)))

        def unused(item):
            name = re.match(r" *(?:const )?[A-Z][\w:<>]* (\w+)(?:\[\])?(?: = |\{|;)", item)
            return name is not None and words.count(name.group(1)) == 1

        fewer = without(inner, indent, unused) if inner != lines[1:-1] else inner
        if fewer == inner:
            break
        inner = fewer
    return "\n".join(lines[:1] + inner + lines[-1:]) if any(line.strip() for line in inner) else None


def code_and_strings(text):
    return re.sub(r"//.*", "", text)


def without_unused(text):
    """Without functions of unnamed namespaces, and static ones, that nothing calls any more."""
    while True:
        words = WORD.findall(code_of(text))
        lines, inside, unused = text.split("\n"), False, set()
        for line in lines:
            if re.search(r"namespace \{$", line):
                inside = True
            elif re.match(r"\}+  // namespace", line):
                inside = False
            name = re.match(FUNCTION, line)
            if name and inside and words.count(name.group(1)) == 1 and name.group(1) not in ("TEST", "TEST_P", "TEST_F"):
                unused.add(name.group(1))
        if not unused:
            return text
        text = "\n".join(without(lines, 0, lambda item: (re.search(FUNCTION, item, re.M) or [None, None])[1] in unused))


def without_block(text, head):
    """Without the lines from each `head` to its #endif."""
    kept, depth = [], 0
    for line in text.split("\n"):
        if depth > 0:
            depth += line.startswith("#if") - line.startswith("#endif")
        elif line == head:
            depth = 1
        else:
            kept.append(line)
    return "\n".join(kept)


def definitions(text):
    """Functions defined outside of unnamed namespaces, with their namespace of PUBLIC or "": (namespace, name)."""
    found, space, unnamed = [], "", False
    for line in text.split("\n"):
        if re.match(r"(.*[ {])?namespace \{$", line):
            unnamed = True
        elif re.match(r"\}+  // namespace", line) and unnamed:
            unnamed = False
            continue
        named = re.findall(r"namespace (\w+) \{", line)
        if not line.startswith("}") and named:
            space = next((s for s in named if s in PUBLIC), space if "clutch" not in named else "")
        closed = re.match(r"\}+  // namespace (.*)", line)
        if closed and closed.group(1).split("::")[-1] == space:
            space = ""
        name = re.match(FUNCTION, line)
        if name and not unnamed and "::" not in line[:name.start(1)].split(" ")[-1]:
            found.append((space, name.group(1)))
    return found


def main():
    new, old = sys.argv[1:3]
    new_pascal, old_pascal = pascal_of(new), pascal_of(old)
    ties = TIES.get(old, Ties())
    paths = [path for path in files_of(old) if path not in ties.left]
    texts = {path: read(path) for path in paths}
    public, cases = f"include/clutch/ops/{old}.hpp", f"tests/cases/{old}.hpp"
    for path in ties.also:
        texts[path] = read(path)

    # Functions that the op defines and another header declares: so does the copy's.
    if ties.adopted:
        header, names = ties.adopted
        lines, taken = read(header).split("\n"), []
        for begin, end, head in items(lines, 0):
            if head is not None and re.match(FUNCTION, lines[head]) and re.match(FUNCTION, lines[head]).group(1) in names:
                taken += lines[begin:end]
        space = next(s for s in re.findall(r"^namespace (\w+) \{", "\n".join(lines), re.M) + re.findall(r"namespace (\w+) \{$", "\n".join(lines), re.M) if s in PUBLIC)
        end = texts[public].rindex("}}  // namespace clutch::v0")
        texts[public] = texts[public][:end] + f"namespace {space} {{\n" + "\n".join(taken) + f"\n}}  // namespace {space}\n" + texts[public][end:]
        texts[public] = texts[public].replace("#pragma once\n", f"#pragma once\n#include <{header[len('include/'):]}>\n", 1)

    # What is defined without a declaration in the copy goes, and what is declared without a definition.
    headers = [path for path in texts if path.startswith(("include/", "host/")) and path.endswith(".hpp")]
    sources = [path for path in texts if path.startswith("host/") and path.endswith(".cpp")]
    of_headers = set().union(*(declared(texts[path]) for path in headers))
    missing = []
    for path in ties.left:
        if path.startswith("host/"):
            missing += definitions(read(path))
    for path in sources:
        if "/" not in path[len("host/ops/"):] and path not in ties.also:
            continue
        strange = [(space, name) for space, name in definitions(texts[path]) if name not in of_headers]
        if strange:
            missing += strange
            names = {name for _, name in strange}
            texts[path] = without_unused("\n".join(without(texts[path].split("\n"), 0, lambda item: (re.search(FUNCTION, item, re.M) or [None, None])[1] in names)))
    missing_names = {name for _, name in missing}
    defined_names = {name for path in sources for _, name in definitions(texts[path])}
    gone = [ties.gone] if ties.gone else []
    traced = set(re.findall(FUNCTION, read("include/clutch/expr.hpp"), re.M))  # what has such a name may be a function of traced values
    for space, name in missing:
        if name not in defined_names | traced:
            gone.append(rf"\b{space}::{name}\b" if space else rf"(?<![\w:.>]){name}\(")
    if gone:
        gone = re.compile("|".join(gone))
        lost = missing_names - defined_names
        texts[public] = "\n".join(without(texts[public].split("\n"), 0, lambda item: (re.search(FUNCTION, item, re.M) or [None, None])[1] in lost))
        for path in list(texts):
            if path.startswith("tests/ops/"):
                texts[path] = without_unused("\n".join(without(texts[path].split("\n"), 0, lambda item: gone.search(code_and_strings(item)) is not None)))
        # Makers of problems, then what calls them, then edits of entries without a problem.
        makers = set()

        def maker(item):
            if "kMutations" in item or not gone.search(code_and_strings(item)):
                return False
            name = re.search(r"\b(\w+)\(", item).group(1)
            cut = without_statements(item, gone, 4) or ""
            if name == "problems" or "p.run = " in cut or "p.run = " not in item:
                return cut.split("\n")
            makers.add(name)
            return True

        text = "\n".join(without(texts[cases].split("\n"), 2, maker))
        if makers:
            text = re.sub(r"^ +(?:return \{)?(?:%s)\(.*\),\n" % "|".join(makers), "", text, flags=re.M)
            calls = re.compile(r"\b(?:%s)\(" % "|".join(makers))
            text = "\n".join(without(text.split("\n"), 2, lambda item: calls.search(item) is not None and " problems(" in item.split("\n")[0] and
                                     without_statements(item, calls, 4).split("\n")))
        head, begin, rows = text.partition("kMutations[] = {\n")
        rows, end, tail = rows.partition("\n  };")
        pieces = re.split(r"\n(?=      \{\")", rows)
        kept = [piece for piece in pieces if not gone.search(piece) and f'"{re.search(chr(34) + "([a-z0-9_]+)", piece).group(1)}"' in head]
        texts[cases] = head + begin + "\n".join(kept) + end + tail
        # Entries without a problem go from the kernels, too.
        entry_of = re.compile(r'\{"(\w+)", Edit::')
        for entry in sorted(set(entry_of.findall(rows)) - set(entry_of.findall("\n".join(kept)))):
            text = without_block(texts[f"kernels/{old}.cl"], f"#ifdef CLUTCH_ENTRY_{entry}")
            texts[f"kernels/{old}.cl"] = re.sub(rf"^__kernel void {entry}\([^)]*.*?^\}}\n", "", text, flags=re.M | re.S)
        bench = f"bench/ops/{old}_bench.cpp"
        lost = set()

        def of_bench(item):
            if not gone.search(code_and_strings(item)):
                return False
            name = re.search(FUNCTION, item, re.M)
            if name and name.group(1).startswith("register_"):
                return False
            if name:
                lost.add(name.group(1))
            return True

        text = "\n".join(without(texts[bench].split("\n"), 0, of_bench))
        row = re.compile("|".join([gone.pattern] + [rf"\b{name}\(" for name in lost]))
        texts[bench] = without_unused("\n".join(without(text.split("\n"), 0, lambda item: row.search(item) is not None and (without_statements(item, row, 2) or "").split("\n"))))
        if "push_back" not in texts[bench]:  # no row is left
            texts[bench] = read("scripts/cmake/op_template/bench_of_problems.cpp").replace("@STEM@", old).replace("@PASCAL@", old_pascal)

    # Functions of the header that shared code defines stay the header's.
    elsewhere = {name for path in glob.glob("host/ops/*.cpp") if not os.path.exists(path.replace("host/ops/", "kernels/")[:-4] + ".cl")
                 for _, name in definitions(read(path))} - defined_names
    fewer = "\n".join(without(texts[public].split("\n"), 0, lambda item: item.startswith("CLUTCH_API") and
                              (re.search(FUNCTION, item, re.M) or [None, None])[1] in elsewhere))
    if fewer != texts[public]:
        texts[public] = fewer.replace("#pragma once\n", f"#pragma once\n#include <clutch/ops/{old}.hpp>  // as it is\n", 1)

    # The op's own words: what its headers and kernels declare, and what has its stem and is in no shared code.
    shared_words, shared_names = set(), set()
    for pattern in SHARED:
        for path in glob.glob(pattern):
            shared_words.update(WORD.findall(read(path)))
            if path.endswith(".hpp") and path.startswith(("host/", "include/")):
                shared_names.update(re.findall(FUNCTION, read(path), re.M))
    if ties.adopted:
        shared_names -= set(ties.adopted[1])
    own, macros, entries = set(), set(), set()
    for path, text in texts.items():
        if path.endswith((".hpp", ".h")) and not path.startswith("tests/ops"):
            own |= declared(text)
            macros.update(re.findall(r"^#define (\w+)", text, re.M))
        elif path.endswith(".cl"):
            entries.update(re.findall(r"__kernel[^(;]* ([a-z]\w*)\(", text))
    own |= entries
    # Overloads of shared functions keep their name where their own types tell them apart.
    own -= shared_names | {"select", "launch", "operator", "if", "defined"}
    own |= set(re.findall(r"^CLUTCH_API (?:Tensor|void) (\w+)\(", texts[public], re.M))
    own |= {macro for macro in macros if not macro.startswith("CLUTCH_") or old.upper() in macro}
    forms = re.compile(rf"(?:{old}(?=_|$)|(?P<k>k?){old_pascal}(?=[A-Z0-9_]|$)|{old.upper()}(?=_)|(?P<clutch>CLUTCH_){old.upper()}(?=_))")

    def renamed(word):
        at = forms.match(word)
        inside = re.sub(rf"(?<=_){old}(?=_|$)", new, word)
        if not at and inside != word:
            return inside
        if at:
            head = new if at.group(0) == old else new_pascal if at.group("k") is not None else new.upper()
            return (at.group("k") or at.group("clutch") or "") + head + word[at.end():]
        if word in macros:
            return f"{new.upper()}_{word}"
        if re.match(r"k[A-Z]", word):
            return f"k{new_pascal}{word[1:]}"
        return new_pascal + word if word[0].isupper() else f"{new}_{word}"

    table = {word: renamed(word) for word in own | {f"register_{old}"}}
    # Entries that have the name of a shared function: theirs where kernels declare them and where text names them.
    alike = {word: renamed(word) for word in entries & shared_names}
    for text in texts.values():
        table.update({word: renamed(word) for word in WORD.findall(text) if forms.match(word) and word not in shared_words})
    spaces = set(re.findall(r"\bnamespace (\w+)", texts[public]))
    # Functions' names that are those of fields, enumerators or variables, too.
    code = code_of("\n".join(texts.values()))
    other = set(re.findall(r"(?:\.|->)([a-z]\w*)\b(?!\()", code) + re.findall(r"[\w>*&] ([a-z]\w*)(?:;| = |\{|,? *:)", code))
    enumerators = set(re.findall(r"\b[A-Z]\w*::([a-z]\w*)\b(?!\()", code))
    fields, enumerators = ({word for word in words if word in table and not forms.match(word) and not re.match(r"k[A-Z]", word)} for words in (other, enumerators - other))

    places = {path: path.replace(f"/{old}", f"/{new}", 1) for path in paths}
    places.update({path: f"host/ops/{new}/{os.path.basename(path)}" for path in ties.also})
    # A file is named by any end of its path.
    ends = {}
    for path, to in places.items():
        for root in ("include/", "host/", "kernels/", "tests/", "bench/", ""):
            if path.startswith(root):
                ends[path[len(root):]] = to[len(root):]
        if os.path.basename(path) != os.path.basename(to):
            ends[os.path.basename(path)] = os.path.basename(to)

    def copied(line, is_kernel):
        def name(match):
            word, before, after = match.group(0), line[:match.start()], line[match.end():]
            entry = word.removeprefix("CLUTCH_ENTRY_")
            if entry != word:
                return "CLUTCH_ENTRY_" + table.get(entry, alike.get(entry, entry))
            if word in alike:
                return alike[word] if is_kernel or before.endswith('"') and after.startswith('"') else word
            if match.group("path"):
                return word if after.startswith(">  // as it is") else ends.get(word, word)
            if line.startswith("#include"):
                return word
            if word == old and before.endswith('"') and after.startswith('"'):
                return new
            if re.search(r"\.|->|\bstd::|\bmodel::", before[-7:]) and re.search(r"(?:\.|->|\bstd::|\bmodel::)$", before):
                return word
            space = re.search(r"\b(\w+)::$", before)
            if space and space.group(1) in PUBLIC and space.group(1) not in spaces:
                return word
            # In comments a type's name may be a word of the language.
            if "//" in before and word[0].isupper() and not forms.match(word) and not re.search(r"[a-z][A-Z]|_", word):
                return word
            # A function's name may also be that of a field or a variable.
            if word in fields and not re.match(r"[(<]", after) and not re.search(r"\bCLUTCH_\w+\($", before) and before.count('"') % 2 == 0:
                return word
            if word in enumerators and ("enum " in line or not before.strip() and after.startswith(",")):
                return word
            # Members: fields, enumerators, and functions of classes that are not the op's.
            if space and space.group(1)[0].isupper() and word[0].islower() and (not after.startswith("(") or space.group(1) not in table):
                return word
            return table.get(word, word)

        return re.sub(r"(?P<path>(?:\w+/)*\w+\.(?:hpp|cpp|clh|cl|h|inc)\b)|[A-Za-z_]\w*", name, line)

    for path, text in texts.items():
        if path.startswith("bench/"):  # rows have the names of what they measure
            text = re.sub(r"\.name = (?=fmt::format|row_name|\")", f'.name = std::string("{new}/") + ', text)
        os.makedirs(os.path.dirname(places[path]), exist_ok=True)
        text = "\n".join(copied(line, path.startswith("kernels/")) for line in text.split("\n")).replace(">  // as it is", ">")
        if path.startswith("tests/ops/") and path.endswith(".cpp") and f"{new}" not in "".join(re.findall("^#include .*", text, re.M)):
            text = text.replace("#include ", f"#include <clutch/ops/{new}.hpp>\n#include ", 1)
        with open(places[path], "w", encoding="utf-8") as file:
            file.write(text)
        print(f"made {places[path]} like {path}")
    # What its test links besides.
    build = read("tests/CMakeLists.txt")
    linked = re.sub(rf"^(target_link_libraries\(test_){old}( .*\n)", rf"\g<0>\g<1>{new}\g<2>", build, flags=re.M)
    if linked != build:
        with open("tests/CMakeLists.txt", "w", encoding="utf-8") as file:
            file.write(linked)
        print(f"test_{new} links in tests/CMakeLists.txt what test_{old} links")
    stays = [f"{path}: {why}" for path, why in ties.left.items() if why] + ([ties.why] if ties.why else [])
    strangers = sorted({f"{space}::{name}" if space else name for space, name in missing if name not in defined_names}) if not ties.left and not ties.also else []
    if strangers:
        stays.append(f"{', '.join(strangers)}: declared in headers that are not {old}'s")
    if stays:
        print(f"stays with {old}, with its tests, problems and rows; take it next if you need it:")
        print("\n".join(f"  {line}" for line in stays))


main()

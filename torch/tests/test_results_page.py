# SPDX-License-Identifier: Apache-2.0
"""Tables of docs/torch.md that databases.py and pytorch_files.py write from their outcomes."""
import json
import subprocess
import sys
from pathlib import Path

import page
import pytest
import results_page

HERE = Path(__file__).parent
PAGE = """in front
<!-- databases: who -->

| database | dtype | entries | right | right without the CPU | note |
|---|---|---|---|---|---|
| `op_db` | float32 | 9 | 8 | 7 | by hand |
| `op_db`, `--forms` | int64 | 5 | 4 | | |

<!-- end of databases -->
between
<!-- PyTorch's files: who -->

| file | tests | pass | share | note |
|---|---|---|---|---|
| `test_old` | 3 | 2 | 66.7 % | a tenth |
| `inductor/test_new` | 7 | 6 | 85.7 % | a part |

<!-- end of PyTorch's files -->
behind
"""


def runner(name, *arguments):
    return subprocess.run([sys.executable, str(HERE / name), *map(str, arguments)], capture_output=True, text=True, timeout=300)


def lines(path, *results):
    path.write_text("".join(json.dumps(r) + "\n" for r in results))
    return path


def outcome(entry, outcome, cpu=(), database="ops", of="float32 on"):
    return dict(database=database, entry=entry, outcome=outcome, cpu=list(cpu), of=of)


def test_databases(tmp_path):
    at = tmp_path / "page.md"
    at.write_text(PAGE)
    on = lines(tmp_path / "on.jsonl", outcome("a", "pass"), outcome("b", "crash"), outcome("b", "pass", ["aten::b"]), outcome("c", "wrong"), outcome("d", "skip"),
               outcome("m", "pass", database="modules"))
    assert runner("databases.py", "--update", at, "--out", on).returncode == 0
    assert page.rows(at, "databases") == [["`op_db`", "float32", "3", "2", "1", "by hand"], ["`op_db`, `--forms`", "int64", "5", "4", "", ""],
                                          ["`module_db`", "float32", "1", "1", "1", ""]]
    off = lines(tmp_path / "off.jsonl", *(outcome(e, o, of="int64 off forms") for e, o in (("a", "pass"), ("b", "missing"))))
    assert runner("databases.py", "--update", at, "--out", off).returncode == 0
    assert page.rows(at, "databases")[1] == ["`op_db`, `--forms`", "int64", "5", "4", "1", ""]
    text = at.read_text()
    assert text.startswith("in front\n<!-- databases: who -->\n\n|") and text.endswith(PAGE[PAGE.index("<!-- end of databases"):])


def test_a_part_of_a_database_is_not_written(tmp_path):
    at, out = tmp_path / "page.md", tmp_path / "part.jsonl"
    at.write_text(PAGE)
    assert runner("databases.py", "--only", "exp", "--quiet", "--out", out).returncode == 0
    assert json.loads(out.read_text().splitlines()[-1])["of"] == "float32 on part"
    done = runner("databases.py", "--update", at, "--out", out)
    assert done.returncode and "one run of all entries" in done.stderr and at.read_text() == PAGE
    mixed = lines(tmp_path / "mixed.jsonl", outcome("a", "pass"), outcome("b", "pass", of="float32 off"))
    assert runner("databases.py", "--update", at, "--out", mixed).returncode and runner("databases.py", "--update", at, "--out", tmp_path / "none").returncode
    assert at.read_text() == PAGE


def test_files(tmp_path):
    at, folder = tmp_path / "page.md", tmp_path / "out"
    at.write_text(PAGE)
    folder.mkdir()

    def test(name, outcome, why=""):
        return dict(test=name, outcome=outcome, why=why)

    lines(folder / "inductor.test_new.clutch.jsonl", test("T.test_a_clutch", "pass"), test("T.test_b_clutch", "fail"), test("T.test_c_clutch", "pass"),
          test("T.test_d_clutch", "skip", "Only runs on cpu"), test("T.test_e_clutch", "pass"))
    lines(folder / "inductor.test_new.cpu.jsonl", *(test(f"T.test_{n}_cpu", "fail" if n == "c" else "pass") for n in "abcde"))
    lines(folder / "openreg.clutch.jsonl", test("T.test_a", "pass"), test("T.test_b", "skip"))
    assert runner("pytorch_files.py", "--update", at, "--out", folder).returncode == 0
    old = ["`test_old`", "3", "2", "66.7 %", "a tenth"]
    assert page.rows(at, "PyTorch's files") == [old, ["`inductor/test_new`", "3", "2", "66.7 %", "a part"], ["`openreg`", "1", "1", "100 %", ""]]
    assert runner("pytorch_files.py", "inductor/test_new", "--update", at, "--out", folder, "--note", "").returncode == 0
    assert page.rows(at, "PyTorch's files") == [old, ["`inductor/test_new`", "3", "2", "66.7 %", ""], ["`openreg`", "1", "1", "100 %", ""]]


def test_pages_have_their_marks(tmp_path):
    for name in ("databases", "PyTorch's files"):
        assert page.rows(results_page.TORCH, name)
    for name in ("torch steps", "torch ops"):
        page.parts(page.DOCS / "benchmarks.md", name)
    (tmp_path / "page.md").write_text(PAGE)
    with pytest.raises(ValueError, match="must have one place"):
        page.write(tmp_path / "page.md", "others", "text")

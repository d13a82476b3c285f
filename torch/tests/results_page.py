# SPDX-License-Identifier: Apache-2.0
"""Writes the outcomes of databases.py and pytorch_files.py into the tables of docs/torch.md. Rows that the outcomes say nothing of stay; so do notes."""
import outcomes
import page

TORCH = page.DOCS / "torch.md"
NAMES = {"ops": "op_db", "modules": "module_db", "optimizers": "optim_db"}
DATABASES = ["database", "dtype", "entries", "right", "right without the CPU", "note"]
FILES = ["file", "tests", "pass", "share", "note"]


def replaced(path, name, columns, keys, rows):
    """Writes the page's table with `rows`, {key: cells behind it}, in the place of those of the same key; None, and cells that are not given, leave what is there."""
    old = {tuple(row[:keys]): row[keys:] for row in page.rows(path, name)}
    for key, cells in rows.items():
        before = old.get(key, [""] * (len(columns) - keys))
        old[key] = [was if new is None else new for new, was in zip(cells, before)] + before[len(cells):]
    page.write(path, name, page.table(columns, [[*key, *cells] for key, cells in old.items()]))


def what(asked):
    """What a line of databases.py's outcomes says of its run."""
    whole = asked.slice == "0/1" and not asked.only
    return {"of": " ".join([asked.dtype, asked.fallback, *(["forms"] if asked.forms else []), *([] if whole else ["part"])])}


def databases(path, out):
    """From one file of outcomes: with the CPU allowed, all columns; else the last."""
    results, rows = outcomes.read(out, "database", "entry"), {}
    runs = {r.get("of", "") for r in results.values()}
    if len(runs) != 1 or not runs or "part" in next(iter(runs)).split() or runs == {""}:
        raise SystemExit(f"{out} must have the outcomes of one run of all entries, got {sorted(runs) or 'nothing'}")
    dtype, fallback, *forms = runs.pop().split()
    for database, name in NAMES.items():
        mine = [r for (of, _), r in results.items() if of == database and r["outcome"] != "skip"]
        if not mine:
            continue
        right = [r for r in mine if r["outcome"] == "pass"]
        alone = str(sum(not r["cpu"] for r in right))
        key = f"`{name}`" + (", `--forms`" if forms and database == "ops" else "")
        rows[key, dtype] = [str(len(mine)), str(len(right)), alone] if fallback == "on" else [None, None, alone]
    replaced(path, "databases", DATABASES, 2, rows)


def files(path, counted, note=None):
    """`counted`: {file: (tests that pass on the CPU and are for devices, how many of them pass)}; `note`: theirs, unless the page's stay."""
    rows = {(f"`{file}`",): [str(tests), str(passed), "100 %" if passed == tests else f"{100 * passed / tests:.1f} %", *([] if note is None else [note])]
            for file, (tests, passed) in counted.items() if tests}
    replaced(path, "PyTorch's files", FILES, 1, rows)

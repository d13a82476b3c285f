# SPDX-License-Identifier: Apache-2.0
"""Tables of documents that programs write, between a comment `<!-- NAME: who writes it -->` and `<!-- end of NAME -->`."""
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def parts(page, name):
    """The text in front of what is between the marks, that, and the text behind; both marks are outside."""
    text = Path(page).read_text()
    found = re.findall(rf"<!-- {name}: [^\n]*-->\n(.*?)<!-- end of {name} -->", text, re.S)
    if len(found) != 1:
        raise ValueError(f"{page} must have one place between <!-- {name}: ... --> and <!-- end of {name} -->, got {len(found)}")
    start = re.search(rf"<!-- {name}: [^\n]*-->\n", text).end()
    return text[:start], found[0], text[start + len(found[0]):]


def rows(page, name):
    """The cells of the table's rows."""
    lines = [line for line in parts(page, name)[1].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def line(cells):
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def table(columns, rows):
    return "\n".join([line(columns), "|---" * len(columns) + "|", *map(line, rows)]) + "\n"


def write(page, name, body):
    head, _, tail = parts(page, name)
    Path(page).write_text(head + "\n" + body + "\n" + tail)

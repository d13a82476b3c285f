# SPDX-License-Identifier: Apache-2.0
"""Compares the table of ops in docs/torch.md with the one that registrations are made from; --update writes it."""
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "torch.md"
BEGIN, END = "<!-- ops: scripts/test --torch --python torch/tests/op_table.py --update writes them -->\n", "<!-- end of ops -->\n"


def wanted():
    import torch
    import torch_clutch  # noqa: F401

    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    return text, head + BEGIN + "\n" + torch.clutch.ops(markdown=True) + "\n" + END + tail


if __name__ == "__main__":
    text, new = wanted()
    if "--update" in sys.argv:
        PAGE.write_text(new)
    sys.exit(0 if "--update" in sys.argv or text == new else f"{PAGE} has another table of ops: run this with --update")

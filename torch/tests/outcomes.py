# SPDX-License-Identifier: Apache-2.0
"""Outcomes of work that may kill its process: a child does it item by item, and is started again behind the item that killed it."""
import json
import os
import signal


class Late(BaseException):
    """An item took too long. What is tested catches Exceptions alone."""


def limit_time():
    """From now on signal.alarm() raises Late."""

    def late(*_):
        raise Late()

    signal.signal(signal.SIGALRM, late)


def read(path, *keys):
    """{what `keys` name: the last line about it}: an item that killed the process has but its first line. One key stands for itself, several for a tuple."""
    results = {}
    if os.path.exists(path):
        with open(path) as lines:
            for line in lines:
                result = json.loads(line)
                key = tuple(result[k] for k in keys)
                results[key if len(keys) > 1 else key[0]] = result
    return results


def begin(out, head):
    """Writes what stands if the process dies."""
    print(json.dumps(head | {"outcome": "crash", "why": "the process died"}), file=out, flush=True)


def end(out, result):
    print(json.dumps(result), file=out, flush=True)


def short(text):
    return " ".join(text.split())[:240]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sees that files and headings that links in Markdown lead to exist. Links with a scheme (https:, mailto:) are not followed.

Reads the names of the repository's files, one a line, from standard input, and is run in its root folder.
"""
import os
import re
import sys
import urllib.parse

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
LINKS = [
    re.compile(r"\]\(\s*<([^>]*)>"),  # [text](<target>)
    re.compile(r"\]\(\s*([^\s<()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+[\"'(].*?)?\s*\)"),  # [text](target "title")
    re.compile(r"^ {0,3}\[[^\]^][^\]]*\]:\s*<?([^\s>]+)"),  # [name]: target
    re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)\s*=\s*[\"']([^\"']*)"),
]
USED_NAME = re.compile(r"\[[^\]]+\]\[([^\]]+)\]")
DEFINED_NAME = re.compile(r"^ {0,3}\[([^\]^][^\]]*)\]:", re.M)
ANCHOR = re.compile(r"<[a-z]+\b[^>]*?\b(?:id|name)\s*=\s*[\"']([^\"']+)")
HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")


def lines_outside_fences(path):
    """The lines with their numbers, without blocks of code and comments."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"<!--.*?-->", lambda comment: "\n" * comment.group().count("\n"), file.read(), flags=re.S)
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            yield number, line


def slug(heading):
    """The anchor that forges give to a heading: letters, digits, - and _ in lower case, blanks as -."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(path):
    found, count, before = set(), {}, ""
    for _, line in lines_outside_fences(path):
        found.update(ANCHOR.findall(line))
        heading = HEADING.match(line)
        title = heading[1] if heading else before if UNDERLINE.match(line) and before.strip() else None
        if title is not None:
            name = slug(title)
            times = count.get(name, 0)
            count[name] = times + 1
            found.add(name if times == 0 else f"{name}-{times}")
        before = "" if heading else line
    return found


def main():
    files = sys.stdin.read().splitlines()
    known = set(files) | {"."}
    for name in files:
        while name := os.path.dirname(name):
            known.add(name)
    pages = [name for name in files if name.endswith(".md")]
    if not pages:
        sys.exit("no Markdown file was found")
    headings = {}
    wrong = 0
    for page in pages:
        lines = list(lines_outside_fences(page))
        names = {name.lower() for name in DEFINED_NAME.findall("\n".join(line for _, line in lines))}
        for number, line in lines:
            line = CODE_SPAN.sub("", line)
            for name in USED_NAME.findall(line):
                if name.lower() not in names:
                    print(f"{page}:{number}: no line says where [{name}] leads to")
                    wrong += 1
            for target in {target for link in LINKS for target in link.findall(line)}:
                if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", target):
                    continue
                path, _, anchor = urllib.parse.unquote(target).partition("#")
                place = os.path.normpath(path.lstrip("/") if path.startswith("/") else os.path.join(os.path.dirname(page), path)) if path else page
                if anchor and not path and page.startswith("docs/"):
                    print(f"{page}:{number}: a link within a page of docs/ must name its file, as Doxygen finds no other: {os.path.basename(page)}{target}")
                    wrong += 1
                elif place not in known:
                    print(f"{page}:{number}: there is no {target}")
                    wrong += 1
                elif anchor and place.endswith(".md"):
                    if place not in headings:
                        headings[place] = anchors(place)
                    if anchor not in headings[place]:
                        print(f"{page}:{number}: {place} has no heading #{anchor}")
                        wrong += 1
    sys.exit(1 if wrong else 0)


main()

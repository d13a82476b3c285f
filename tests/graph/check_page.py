#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what is wrong with pages: each is well-formed XML, nests as HTML, needs nothing from outside, and its links lead somewhere in it.

Use: check_page.py <page>...
"""
import html.parser
import re
import sys
import xml.etree.ElementTree

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Nesting(html.parser.HTMLParser):
    """What HTML's own rules say of the tags: all are closed, in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            self.wrong.append(f"an attribute of <{tag}> stands twice")

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes another element")

    def close(self):
        super().close()
        if self.open:
            self.wrong.append(f"<{self.open[-1]}> is not closed")


def faults(text):
    try:
        root = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError as e:
        return [f"it is no well-formed XML: {e}"]
    nesting = Nesting()
    nesting.feed(text)
    nesting.close()
    wrong = nesting.wrong
    ids, targets = [], []
    for element in root.iter():
        if element.tag in ("script", "link", "iframe", "object", "embed", "img", "image", "use"):
            wrong.append(f"it has a <{element.tag}>")
        for name, value in element.attrib.items():
            if name == "id":
                ids.append(value)
            if name == "href" or name.endswith("}href"):
                targets.append(value)
            if name in ("src", "srcset", "action", "data", "ping") or name.startswith("on"):
                wrong.append(f"it has an attribute {name}")
            if name == "style" and re.search(r"url\(|@import", value):
                wrong.append("a style refers to something outside")
    style = "".join(element.text or "" for element in root.iter("style"))
    if re.search(r"url\(|@import|https?:", style):
        wrong.append("its style refers to something outside")
    if len(set(ids)) != len(ids):
        wrong.append("an id stands twice")
    wrong += [f"a link leads to {target}" for target in targets if not target.startswith("#") or target[1:] not in ids]
    if root.find("./head/meta[@name='viewport']") is None or root.find("./head/meta[@charset]") is None or root.find("./head/title") is None:
        wrong.append("its head lacks viewport, charset or title")
    return wrong


def main():
    status = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as page:
            for wrong in faults(page.read()):
                print(f"{path}: {wrong}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())

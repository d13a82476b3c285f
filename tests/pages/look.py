#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at pages in a browser, as a phone of 390 pixels and a window of 1400 show them, light and dark, and prints what is wrong with them.

Ends with 77 where there is no Chromium (CHROMIUM, or one in the path). It is driven through pipes: no network, no driver, no package of Python.

Use: look.py [--pictures FOLDER] [--self-test] <page or folder>...
"""
import argparse
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTHS = {390: {"height": 844, "mobile": True, "deviceScaleFactor": 2}, 1400: {"height": 900, "mobile": False, "deviceScaleFactor": 1}}
LEAST_LETTER = 9  # pixels
MOST_ELEMENTS = 50_000  # more than these take seconds; time itself is told, not held, since machines have other work
MOST_FAULTS = 8

# Runs in the page; gives a list of texts.
LOOK = r"""
(wanted, leastLetter) => {
  const faults = [], seen = new Set();
  const say = text => { if (!seen.has(text)) { seen.add(text); faults.push(text); } };
  const root = document.documentElement;
  if (root.scrollWidth > wanted) say(`it is ${root.scrollWidth} pixels wide`);
  if (innerWidth !== wanted) say(`the window became ${innerWidth} pixels wide`);
  if (!document.body.innerText.trim()) say('it says nothing');
  const brief = text => { const t = text.trim().replace(/\s+/g, ' '); return t.length > 40 ? t.slice(0, 40) + '…' : t; };
  const clips = style => style.overflowX !== 'visible' || style.overflowY !== 'visible';
  const scrolls = style => style.overflowX === 'auto' || style.overflowX === 'scroll';
  const scroller = element => { for (let e = element; e; e = e.parentElement) if (scrolls(getComputedStyle(e))) return e; return null; };
  const colour = text => { const m = text.match(/[\d.]+/g).map(Number); return {r: m[0], g: m[1], b: m[2], a: m.length > 3 ? m[3] : 1}; };
  const light = ({r, g, b}) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c.a > 0.99) return c;
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? {r: 18, g: 18, b: 18} : {r: 255, g: 255, b: 255};
  };

  // Boxes of text: one of each line.
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.data.trim()) continue;
    const element = node.parentElement;
    if (['SCRIPT', 'STYLE', 'TITLE', 'title'].includes(element.tagName) || !element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const name = brief(node.data), style = getComputedStyle(element), svg = element.closest('svg');
    const lines = svg ? [element.getBoundingClientRect()] : [...range.getClientRects()];
    if (!lines.length) continue;
    // Letters: large enough as shown, and unlike what is behind them.
    let letter = parseFloat(style.fontSize);
    if (svg) {
      const m = element.getScreenCTM();
      letter *= m.d;
      if (Math.abs(m.a - m.d) > 0.01 * Math.abs(m.d)) say(`letters are stretched: ${name}`);
    }
    if (letter < leastLetter) say(`letters of ${letter.toFixed(1)} pixels: ${name}`);
    const front = colour(svg ? style.fill : style.color), back = behind(element);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) say(`contrast of ${((a + 0.05) / (b + 0.05)).toFixed(1)}: ${name}`);
    for (const line of lines) {
      let box = {left: line.left, right: line.right, top: line.top, bottom: line.bottom, name, element};
      // Within each box around it; what scrolls may be wider inside.
      for (let e = element; e && e !== root; e = e.parentElement) {
        const s = getComputedStyle(e), r = e.getBoundingClientRect();
        if (svg && e !== svg && svg.contains(e)) continue;
        if (s.display === 'inline' && !(e instanceof SVGElement)) continue;
        const over = box.right > r.right + 1 || box.left < r.left - 1;
        if (over && scrolls(s)) {
          box = {...box, left: Math.max(box.left, r.left), right: Math.min(box.right, r.right)};
          if (box.right <= box.left) break;
        } else if (over && !scroller(e)) {
          say(`text leaves its ${e.tagName.toLowerCase()}${e.className.baseVal === undefined && e.className ? '.' + e.className : ''}: ${name}`);
          break;
        }
        if (clips(s) && !scrolls(s) && (box.bottom > r.bottom + 1 || box.top < r.top - 1)) say(`text is cut: ${name}`);
        if (svg && e === svg && (box.bottom > r.bottom + 1 || box.top < r.top - 1)) say(`text is cut by its picture: ${name}`);
      }
      if (box.right - box.left > 1) boxes.push(box);
    }
  }
  // Texts over one another.
  boxes.sort((a, b) => a.top - b.top);
  for (let i = 0; i < boxes.length; ++i)
    for (let k = i + 1; k < boxes.length && boxes[k].top < boxes[i].bottom - 2; ++k) {
      const a = boxes[i], b = boxes[k], wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - b.top;
      if (wide > 1 && high > 3) say(`texts overlap: ${a.name} / ${b.name}`);
    }
  // What is cut although it does not scroll.
  for (const e of document.body.querySelectorAll('*')) {
    if (e instanceof SVGElement) continue;
    const s = getComputedStyle(e);
    if (e.checkVisibility() && s.overflowX === 'hidden' && e.scrollWidth > e.clientWidth + 1) say(`it cuts its text: ${brief(e.innerText)}`);
  }
  for (const e of document.querySelectorAll('svg, canvas')) {
    if (e.parentElement.closest('svg') || !e.checkVisibility()) continue;
    const r = e.getBoundingClientRect();
    if (r.width < 16 || r.height < 8) say(`a picture of ${r.width.toFixed(0)} x ${r.height.toFixed(0)} pixels`);
    for (const shape of e.querySelectorAll('rect, path, circle, polyline, line'))
      for (const name of ['x', 'y', 'width', 'height', 'd', 'cx', 'cy', 'points', 'x1', 'x2', 'y1', 'y2'])
        if (/nan|inf/i.test(shape.getAttribute(name) || '')) say(`a shape's ${name} is no number`);
  }
  // What a pointer's tip tells, a tap must lead to, too.
  for (const tip of document.querySelectorAll('svg title')) {
    const link = tip.closest('a');
    if (link && !document.getElementById((link.getAttribute('href') || '#').slice(1))) say('a shape leads nowhere');
  }
  return faults;
}
"""


class Browser:
    """Chromium, by its protocol for tools over two pipes."""

    def __init__(self, program, folder):
        to_read, self.to = os.pipe()
        self.of, of_write = os.pipe()

        def place():
            a, b = os.dup(to_read), os.dup(of_write)  # neither is 3 or 4 itself
            os.dup2(a, 3), os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--disable-default-apps", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={folder}",
             "about:blank"], preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(of_write)
        self.rest, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def message(self, until):
        while b"\0" not in self.rest:
            if not select.select([self.of], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.of, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + 30
        while True:
            got = self.message(until)
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def wait(self, method, seconds=30):
        until = time.monotonic() + seconds
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message(until))

    def evaluate(self, text):
        got = self.call("Runtime.evaluate", expression=text, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(json.dumps(got["exceptionDetails"])[:500])
        return got["result"].get("value")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def look(browser, page, width, pictures=None):
    """What is wrong with a page, and the seconds until it was laid out: in light colours, then with all opened that opens, in light and in dark ones."""
    wrong = []

    def see(scheme, how):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for fault in browser.evaluate(f"({LOOK})({width}, {LEAST_LETTER})"):
            if not any(known.endswith(fault) for known in wrong):
                wrong.append(how + fault)

    def take(scheme):
        if pictures:
            browser.evaluate("document.querySelectorAll('details').forEach((d, i) => d.open = i < 1)")
            height = min(int(browser.evaluate("document.documentElement.scrollHeight")), 6000)
            image = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
            (pictures / f"{page.stem}_{width}_{scheme}.png").write_bytes(base64.b64decode(image["data"]))

    browser.call("Emulation.setDeviceMetricsOverride", width=width, **WIDTHS[width])
    browser.call("Emulation.setTouchEmulationEnabled", enabled=WIDTHS[width]["mobile"])
    browser.events.clear()
    began = time.monotonic()
    browser.call("Page.navigate", url=page.resolve().as_uri())
    browser.wait("Page.loadEventFired")
    browser.evaluate("document.body.getBoundingClientRect().height")
    took = time.monotonic() - began
    if (elements := browser.evaluate("document.querySelectorAll('*').length")) > MOST_ELEMENTS:
        wrong.append(f"it has {elements} elements")
    see("light", "")
    take("light")
    browser.evaluate("[...document.querySelectorAll('details')].slice(0, 200).forEach(d => d.open = true)")
    if browser.evaluate("document.querySelectorAll('details').length"):
        see("light", "opened: ")
    see("dark", "dark: ")
    take("dark")
    for event in browser.events:
        said = event.get("params", {})
        if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            wrong.append(f"the console says {json.dumps(said)[:200]}")
        if event.get("method") == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            wrong.append(f"the console says {said['entry']['text'][:200]}")
        if event.get("method") == "Network.requestWillBeSent" and said["request"]["url"].split(":")[0] not in ("file", "data", "about"):
            wrong.append(f"it asks for {said['request']['url']}")
    return wrong, took


def self_test(browser, folder):
    """Pages with a fault each, which must be found."""
    head = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width,initial-scale=1"/><title>x</title><style>:root{color-scheme:light dark}</style></head><body>'
    cases = {
        "": "<p>all is well</p><div style='overflow-x:auto'><pre>" + "long " * 100 + "</pre></div>",
        "pixels wide": "<div style='width:2000px'>wide</div>",
        "leaves its": "<div style='width:50px'>unbreakablelongword</div>",
        "cuts its text": "<div style='width:50px;overflow:hidden;white-space:nowrap'>far too long for it</div>",
        "text is cut": "<div style='height:12px;overflow:hidden'>one<br/>two<br/>three</div>",
        "texts overlap": "<p>here</p><p style='margin-top:-34px'>there</p>",
        "letters of": "<p style='font-size:6px'>small</p>",
        "letters are stretched": "<svg viewBox='0 0 100 20' preserveAspectRatio='none' style='width:350px;height:20px'><text x='5' y='15'>a</text></svg>",
        "cut by its picture": "<svg viewBox='0 0 300 20' style='width:300px'><text x='5' y='35'>below</text></svg>",
        "contrast of": "<p style='color:#ccc;background:#fff'>pale</p>",
        "a picture of": "<p>x</p><svg viewBox='0 0 1 1' style='width:0'></svg>",
        "is no number": "<p>x</p><svg viewBox='0 0 100 20' style='width:300px'><rect x='nan' width='3' height='3'/></svg>",
        "leads nowhere": "<p>x</p><svg viewBox='0 0 100 20' style='width:300px'><a href='#no'><rect width='3' height='3'><title>t</title></rect></a></svg>",
        "says nothing": "<p></p>",
        "console says": "<p>x</p><script>console.error('no')</script>",
        "asks for": "<p>x</p><img src='http://127.0.0.1:9/x.png'/>",
        "dark: contrast of": "<p style='color:#222'>lost at night</p>",
        "opened: ": "<p>x</p><details><summary>more</summary><div style='width:50px'>unbreakablelongword</div></details>",
    }
    status = 0
    for wanted, body in cases.items():
        page = folder / "case.html"
        page.write_text(head + body + "</body></html>", encoding="utf-8")
        wrong, _ = look(browser, page, 390)
        if (wanted == "") != (wrong == []) or not any(wanted in fault for fault in wrong or [wanted]):
            print(f"self-test: a page whose fault is '{wanted}' has {wrong}")
            status = 1
    return status


def main():
    parser = argparse.ArgumentParser(description="Looks at pages in a browser, for a phone and a wide window.")
    parser.add_argument("--pictures", type=pathlib.Path, help="a folder for what is seen")
    parser.add_argument("--self-test", action="store_true", help="pages with faults, which must be found")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not program:
        print("skipped: there is no Chromium in the path (CHROMIUM)")
        return 77
    pages = [page for given in options.pages for page in (sorted(given.glob("*.html")) if given.is_dir() else [given])]
    if not pages and not options.self_test:
        print("there is no page to look at")
        return 1
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    status = 0
    with tempfile.TemporaryDirectory(prefix="clutch_look_", ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        browser = Browser(program, folder / "profile")
        try:
            if options.self_test:
                status |= self_test(browser, folder)
            for page in pages:
                for width in WIDTHS:
                    wrong, took = look(browser, page, width, options.pictures)
                    if options.pictures:
                        print(f"{page.name}, {width} pixels: {took:.2f} s")
                    for fault in wrong[:MOST_FAULTS]:
                        print(f"{page.name}, {width} pixels: {fault}")
                    if len(wrong) > MOST_FAULTS:
                        print(f"{page.name}, {width} pixels: and {len(wrong) - MOST_FAULTS} more")
                    status |= bool(wrong)
        finally:
            browser.close()
    return int(status)


if __name__ == "__main__":
    sys.exit(main())

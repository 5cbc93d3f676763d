#!/usr/bin/env python3
"""Opens pages of --html in headless Chromium and fails on what a reader would see as broken.

    python3 tests/page/check.py [--shots FOLDER] PAGE.html PICTURE.svg ...

Each page at 1280 and 400 pixels, a picture at 1280, light and dark: an error or a warning in the console, a request
for anything but the page, something wider than the window, text that is too small, too pale, cut or over another, a
table cut at 1280 pixels, a plan that does not fit and whose heading says something else, a first paint or a
drawn timeline after 2 s, or a frame each 50 ms or less often while a timeline is moved, all count. Where the page has a
timeline it is zoomed, moved, pinched and walked through with the keys. --shots keeps the pictures. The last line is "N
passed, N failed", or says that there is no Chromium (exit code 0).
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

FIRST_PAINT_MS = 2000
FRAME_MS = 50
FRAMES = """(async () => { const times = []; let last = await new Promise(requestAnimationFrame);
for (let i = 1; i < 16; i++) {
  show(whole * i / 100, whole * (1 - i / 100));
  const now = await new Promise(requestAnimationFrame);
  times.push(now - last);
  last = now;
}
show(0, whole);
times.sort((a, b) => a - b);
return {spans: rows.reduce((n, r) => n + (r.op ? r.op.length : 0), 0), ms: times[7]}; })()"""
LEAST_FONT_PX = 11
LEAST_CONTRAST = 4.5
READABLE = """((font, contrast, wide) => { const wrong = new Set();
const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const light = colour => {
  const c = colour.match(/[\\d.]+/g).slice(0, 3).map(v => linear(v / 255));
  return .2126 * c[0] + .7152 * c[1] + .0722 * c[2];
};
const paper = document.body ? light(getComputedStyle(document.body).backgroundColor) : null;
const short = e => '"' + e.firstChild.data.trim().slice(0, 40) + '"';
const shows = e => e.firstChild && e.firstChild.nodeType === 3 && e.firstChild.data.trim() &&
  !e.matches('script, style, title, noscript *') && e.getClientRects().length;
for (const e of document.querySelectorAll('body *, svg text')) {
  if (!shows(e)) continue;
  const look = getComputedStyle(e), m = e.getScreenCTM && e.getScreenCTM();
  const size = parseFloat(look.fontSize) * (m ? Math.hypot(m.a, m.b) : 1);
  const own = light(e.ownerSVGElement ? look.fill : look.color);
  if (size < font) wrong.add(`${short(e)} has ${size.toFixed(1)} px`);
  const ratio = paper === null ? 21 : (Math.max(own, paper) + .05) / (Math.min(own, paper) + .05);
  if (ratio < contrast) wrong.add(`${short(e)} has a contrast of ${ratio.toFixed(1)}`);
}
for (const s of document.querySelectorAll('svg')) {
  const edge = s.getBoundingClientRect();
  const all = [...s.querySelectorAll('text')].map(e => [e, e.getBoundingClientRect(), e.getScreenCTM().b !== 0]);
  all.forEach(([e, r, leans], i) => {
    if (r.left < edge.left - 1 || r.right > edge.right + 1 || r.top < edge.top - 1 || r.bottom > edge.bottom + 1)
      wrong.add(`${short(e)} leaves its picture`);
    for (const [o, q, too] of all.slice(i + 1)) {
      const across = Math.min(r.right, q.right) - Math.max(r.left, q.left);
      const down = Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top);
      if (!leans && !too && across > 2 && down > 5) wrong.add(`${short(e)} lies over ${short(o)}`);
    }
  });
}
if (typeof pen !== 'undefined' && parseFloat(pen.font.match(/[\\d.]+(?=px)/)[0]) < font)
  wrong.add('the timeline has ' + pen.font);
if (wide)
  for (const e of document.querySelectorAll('.scroll'))
    if (e.scrollWidth > e.clientWidth + 1)
      wrong.add('cut at this width: ' + e.innerText.trim().slice(0, 60).replace(/\\s+/g, ' '));
if (typeof data !== 'undefined' && !data.measurement) {
  const heading = document.querySelector('h1').innerText;
  if (!data.prediction.memory.fits !== heading.startsWith('Does not fit')) wrong.add('the heading: ' + heading);
}
return [...wrong]; })"""
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def chromium():
    """The path of the browser, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


class Browser:
    """Chromium's DevTools protocol over two pipes: messages of JSON, each with a zero behind it."""

    def __init__(self, program, home):
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()

        def pipes():
            os.dup2(to_browser, 100), os.dup2(from_browser, 101)
            os.dup2(100, 3), os.dup2(101, 4)

        self.process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
                f"--user-data-dir={home}",
                "about:blank",
            ],
            preexec_fn=pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser), os.close(from_browser)
        self.number, self.rest, self.events = 0, b"", []
        target = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]

    session = None

    def read(self):
        while b"\0" not in self.rest:
            part = os.read(self.back, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.read())

    def value(self, script):
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "a script failed"))
        return answer["result"].get("value")

    def close(self):
        self.process.terminate()
        self.process.wait()


def move_about(b):
    """As a mouse, a wheel, two fingers and a keyboard do. What each must change is checked."""
    wrong = []
    at = b.value(
        "(() => { canvas.scrollIntoView({block: 'start'}); const r = canvas.getBoundingClientRect(); "
        "return {x: r.left + r.width * .6, y: r.top + 56}; })()"
    )
    view = lambda: b.value("[view.from, view.to]")
    mouse = lambda kind, x, y, **more: b.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
    mouse("mouseMoved", at["x"], at["y"])
    mouse("mouseWheel", at["x"], at["y"], deltaX=0, deltaY=-200, modifiers=2)
    zoomed = view()
    if zoomed[1] - zoomed[0] >= b.value("whole"):
        wrong.append("ctrl and wheel do not zoom")
    mouse("mousePressed", at["x"], at["y"], button="left", clickCount=1)
    mouse("mouseMoved", at["x"] - 60, at["y"], button="left", buttons=1)
    mouse("mouseReleased", at["x"] - 60, at["y"], button="left", clickCount=1)
    if not view()[0] > zoomed[0]:
        wrong.append("dragging does not move")
    b.value("$('all').click(); canvas.focus()")
    for key in ("]", "]", "ArrowDown"):
        b.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else "")
    if not b.value("!tipBox.hidden && $('live').textContent.length > 20"):
        wrong.append("the keys choose no op")
    b.ask("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    touch = lambda kind, *xs: b.ask(
        "Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": at["y"], "id": i} for i, x in enumerate(xs)]
    )
    touch("touchStart", at["x"] - 20, at["x"] + 20)
    touch("touchMove", at["x"] - 60, at["x"] + 60)
    touch("touchEnd")
    if not view()[1] - view()[0] < b.value("whole") * .6:
        wrong.append("two fingers do not zoom")
    b.ask("Emulation.setTouchEmulationEnabled", enabled=False)
    b.value("unmark(); $('all').click(); scrollTo(0, 0)")
    return wrong


def look(b, page, width, dark, shots):
    b.events.clear()
    b.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    b.ask(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    )
    url = page.absolute().as_uri()
    b.ask("Page.navigate", url=url)
    b.wait("Page.loadEventFired")
    b.value(SETTLED)
    paint = None
    for _ in range(60):
        paint = b.value("(performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime")
        if paint:
            break
        time.sleep(0.05)
    drawn = b.value("(performance.getEntriesByName('drawn')[0] || {}).startTime") or paint
    wrong, said = [], f"first paint {paint:.0f} ms, all drawn {drawn:.0f} ms" if paint else "no paint"
    if not paint or max(paint, drawn) > FIRST_PAINT_MS:
        wrong.append(f"{said}, the limit is {FIRST_PAINT_MS} ms")
    wide = b.value("document.documentElement.scrollWidth")
    if wide > width:
        wrong.append(
            f"{wide} pixels wide: "
            + b.value(
                f"[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > {width} "
                f"&& !e.closest('.scroll, pre, .unseen')).map(e => e.tagName + '.' + e.className).slice(0, "
                f"3).join(', ')"
            )
        )
    wrong += b.value(f"{READABLE}({LEAST_FONT_PX}, {LEAST_CONTRAST}, {'true' if width >= 1280 else 'false'})")
    if b.value("typeof rows !== 'undefined'"):
        frame = b.value(FRAMES)
        said += f", {frame['spans']} spans, a frame each {frame['ms']:.0f} ms"
        if frame["ms"] > FRAME_MS:
            wrong.append(f"a frame takes {frame['ms']:.0f} ms, the limit is {FRAME_MS} ms")
        wrong += move_about(b)
    if shots:
        b.value(SETTLED)
        high = min(b.value("document.documentElement.scrollHeight"), 4000)
        data = b.ask(
            "Page.captureScreenshot",
            format="png",
            captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": width, "height": high, "scale": 1},
        )["data"]
        (shots / f"{page.stem}-{width}-{'dark' if dark else 'light'}.png").write_bytes(base64.b64decode(data))
    b.ask("Runtime.evaluate", expression="0")
    for event in b.events:
        kind, params = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            wrong.append(
                "an exception: "
                + params["exceptionDetails"].get("exception", {}).get("description", params["exceptionDetails"]["text"])
            )
        elif kind == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            wrong.append(
                "in the console: " + " ".join(str(a.get("value", a.get("description"))) for a in params["args"])
            )
        elif kind == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            wrong.append("in the log: " + params["entry"]["text"])
        elif (
            kind == "Network.requestWillBeSent"
            and params["request"]["url"] != url
            and not params["request"]["url"].startswith("data:")
        ):
            wrong.append("a request: " + params["request"]["url"])
    return wrong, said


def main(arguments):
    shots = None
    if arguments[:1] == ["--shots"]:
        shots, arguments = pathlib.Path(arguments[1]), arguments[2:]
        shots.mkdir(parents=True, exist_ok=True)
    program = chromium()
    if not program:
        print("skipped: there is no Chromium here")
        return 0
    passed = failed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        b = Browser(program, home)
        try:
            for domain in ("Page", "Runtime", "Log", "Network"):
                b.ask(domain + ".enable")
            for page in map(pathlib.Path, arguments):
                for width in (1280,) if page.suffix == ".svg" else (1280, 400):
                    for dark in (False, True):
                        wrong, said = look(b, page, width, dark, shots)
                        failed, passed = failed + bool(wrong), passed + (not wrong)
                        print(f"{page.name} at {width}, {'dark' if dark else 'light'}: {said}", *wrong, sep="\n    ")
        finally:
            b.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

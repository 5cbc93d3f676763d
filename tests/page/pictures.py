#!/usr/bin/env python3
"""Makes the pictures docs/page-*.png anew from the pages that the commands write today.

    apt-get install -y chromium pngquant
    make -s CUDA=0 all && python3 tests/page/pictures.py

Look at each picture before you keep it.
"""

import base64
import pathlib
import subprocess
import sys
import tempfile

from check import SETTLED, Browser, chromium

ROOT = pathlib.Path(__file__).resolve().parents[2]
FSDP, PIPELINE = "configs/llama3-8b-fsdp-64xh100.yaml", "configs/pp-llama3-70b-64xh100.yaml"
WIDTH = 1280
OP = "L24 fc1 gemm mb0"
# The op's first product in the backward pass, in a view of 60 ms. The first that is found is of the forward pass.
SHOW_OP = f"""(() => {{
const row = rows.find(r => r.op);
const found = [...row.op.keys()].filter(i => nameOf(row, i).startsWith("{OP}"));
if (found.length < 2) throw new Error("no backward pass of {OP}");
const i = found[1];
show(row.start[i] - 25e6, row.start[i] + 35e6);
choose(row, i);
}})()"""
# name: (the command's arguments, height in pixels, what to do on the page first)
PICTURES = {
    "page-step": (["predict", FSDP], 1180, ""),
    "page-op": (["predict", FSDP], 600, SHOW_OP),
    "page-pipeline": (["predict", PIPELINE], 1540, "colourBy(true)"),
    "page-sweep": (
        ["sweep", FSDP, "--vary", "cluster.nodes=2,4,8,16,32,64", "--set", "train.global_batch=1024"]
        + ["--vary", "train.recompute=none,full"],
        1020,
        "",
    ),
    "page-plan": (["plan", FSDP, "--gpus", "8"], 1020, ""),
}


def main():
    program = chromium()
    if not program:
        sys.exit("pictures.py: there is no Chromium here (apt-get install -y chromium)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        b = Browser(program, home)
        try:
            b.ask("Page.enable")
            b.ask("Emulation.setDeviceMetricsOverride", width=WIDTH, height=900, deviceScaleFactor=1, mobile=False)
            b.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
            for name, (arguments, height, first) in PICTURES.items():
                page, picture = pathlib.Path(home, "page.html"), ROOT / "docs" / f"{name}.png"
                subprocess.run(
                    [ROOT / "build/release/stepsim", *arguments, "--html", page, "-q"],
                    cwd=ROOT,
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
                b.events.clear()
                b.ask("Page.navigate", url=page.as_uri())
                b.wait("Page.loadEventFired")
                b.value(SETTLED)
                b.value(first)
                b.value(SETTLED)
                clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
                shot = b.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
                picture.write_bytes(base64.b64decode(shot))
                subprocess.run(["pngquant", "--force", "--ext", ".png", "256", picture], check=True)
                print(f"docs/{name}.png: {picture.stat().st_size} bytes")
        finally:
            b.close()


if __name__ == "__main__":
    main()

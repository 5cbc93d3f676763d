"use strict";
/* The page's pictures, from the JSON beside it: timeline (canvas), where the time goes, roofline and memory (SVG). */
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* One colour a class; related classes lie near each other: matrix work blue, other compute green, optimizer yellow, communication red, copies and host grey. */
const colours = {
  gemm: "#3b76d9", attention: "#6c5ce0", norm: "#2f9e8f", elementwise: "#56ab5c", embedding: "#8aa63a", loss: "#3fa7c4", memory: "#8fbf9f", optimizer: "#d9a520",
  all_reduce: "#d9483b", all_gather: "#e0703a", reduce_scatter: "#c43f73", broadcast: "#b8552e", alltoall: "#a93fb8", sendrecv: "#e08c8c", copy: "#8c8f94", host: "#6b6f76", wait: "#c9b8b8",
};
const partColours = { optimizer_s: colours.optimizer, compute_s: colours.gemm, exposed_comm_s: colours.all_reduce, copy_s: colours.copy, host_s: colours.host, bubble_s: "#c9a0dc", idle_s: "#b9bec4" };
const partNames = { compute_s: "compute", exposed_comm_s: "exposed communication", copy_s: "copy", host_s: "host", bubble_s: "bubble", optimizer_s: "optimizer", idle_s: "idle" };

function scaled(x, unit, base) {
  if (!Number.isFinite(x)) return "-";
  const up = ["", base === 1024 ? "Ki" : "k", base === 1024 ? "Mi" : "M", base === 1024 ? "Gi" : "G", base === 1024 ? "Ti" : "T", "P", "E"], down = ["", "m", "µ", "n", "p"];
  let i = 0;
  if (Math.abs(x) >= 1 || x === 0 || base === 1024) { while (Math.abs(x) >= base && i < up.length - 1) { x /= base; i++; } return x.toPrecision(3) + " " + up[i] + unit; }
  while (Math.abs(x) < 1 && i < down.length - 1) { x *= 1000; i++; }
  return x.toPrecision(3) + " " + down[i] + unit;
}
const seconds = s => s >= 1 || s === 0 ? s.toPrecision(3) + " s" : scaled(s, "s", 1000);

function svg(parent, tag, attributes, text) {
  const node = document.createElementNS(NS, tag);
  for (const k in attributes) node.setAttribute(k, attributes[k]);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}
function tip(node, text) { svg(node, "title", {}, text); }

/* ---- the tooltip ---- */
const tipBox = $("tip");
function showTip(x, y, lines) {
  tipBox.replaceChildren();
  lines.forEach((line, i) => { const d = document.createElement("div"); d.textContent = line; if (!i) d.style.fontWeight = "600"; tipBox.appendChild(d); });
  tipBox.hidden = false;
  const r = tipBox.getBoundingClientRect();
  tipBox.style.left = Math.max(4, Math.min(x + 12, innerWidth - r.width - 4)) + "px";
  tipBox.style.top = (y + 16 + r.height > innerHeight ? y - r.height - 8 : y + 16) + "px";
}

/* ---- timeline ---- */
const ROW = 18, HEAD = 20, LEFT = 96, AXIS = 22;
const rows = []; /* {head} or {lane, role, op, start, move, end}; times in ns, in order of start */
for (const side of data.sides)
  for (const actor of side.actors) {
    rows.push({ head: actor.name });
    for (const lane of actor.lanes) {
      const n = lane.spans.length / 4, row = { lane: lane.name, ops: side.roles[actor.role], op: new Int32Array(n), start: new Float64Array(n), move: new Float64Array(n), end: new Float64Array(n) };
      for (let i = 0; i < n; i++) { /* differences keep the page small: begin after the last end, wait, duration */
        const last = i ? row.end[i - 1] : 0;
        row.op[i] = lane.spans[4 * i];
        row.start[i] = last + lane.spans[4 * i + 1];
        row.move[i] = row.start[i] + lane.spans[4 * i + 2];
        row.end[i] = row.move[i] + lane.spans[4 * i + 3];
      }
      rows.push(row);
    }
  }
let y = AXIS;
for (const row of rows) { row.y = y; y += row.head ? HEAD : ROW; }
const height = y + 4, whole = Math.max(1, ...data.sides.map(s => s.step_ns));
const box = $("timeline"), canvas = box.querySelector("canvas"), pen = canvas.getContext("2d");
let view = { from: 0, to: whole }, width = 0, queued = false;

function firstAfter(ends, t) { /* of ends in order: the first index with end > t */
  let low = 0, high = ends.length;
  while (low < high) { const mid = (low + high) >> 1; if (ends[mid] > t) high = mid; else low = mid + 1; }
  return low;
}
const xOf = t => LEFT + (t - view.from) / (view.to - view.from) * (width - LEFT);
const tOf = x => view.from + (x - LEFT) / (width - LEFT) * (view.to - view.from);

/* Spans narrower than a pixel are drawn as the pixel that they share, once, in the colour of the first. */
function drawRow(row) {
  let drawn = -1;
  const n = row.op.length;
  for (let i = firstAfter(row.end, view.from); i < n && row.start[i] < view.to; i++) {
    const x1 = Math.min(width, xOf(row.end[i]));
    if (x1 <= drawn) { i = Math.max(i, firstAfter(row.end, tOf(drawn + 1)) - 1); continue; }
    const x0 = Math.max(LEFT, xOf(row.start[i]), drawn), xm = Math.max(x0, xOf(row.move[i]));
    if (xm > x0 + .5) { pen.fillStyle = colours.wait; pen.fillRect(x0, row.y + 6, xm - x0, ROW - 12); }
    pen.fillStyle = colours[data.classes[row.ops[row.op[i]][1]]] || colours.host;
    pen.fillRect(xm, row.y + 2, Math.max(1, x1 - xm), ROW - 4);
    drawn = Math.max(x1, xm + 1);
    if (x1 - xm > 60) {
      pen.save(); pen.beginPath(); pen.rect(xm, row.y, x1 - xm - 3, ROW); pen.clip();
      pen.fillStyle = "#fff"; pen.fillText(row.ops[row.op[i]][0], xm + 4, row.y + ROW - 5); pen.restore();
    }
  }
}
function draw() {
  queued = false;
  const ratio = devicePixelRatio || 1;
  width = box.clientWidth;
  canvas.style.height = height + "px";
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  const span = view.to - view.from, step = 10 ** Math.floor(Math.log10(span / 4)), tick = [1, 2, 5, 10].map(k => k * step).find(k => span / k <= Math.max(2, (width - LEFT) / 90)) || 10 * step;
  for (let t = Math.ceil(view.from / tick) * tick; t <= view.to; t += tick) {
    const x = xOf(t);
    pen.fillStyle = css("--line"); pen.fillRect(x, AXIS - 4, 1, height);
    pen.fillStyle = css("--dim"); pen.fillText(seconds(t / 1e9), x + 3, 13);
  }
  for (const row of rows) {
    pen.fillStyle = css(row.head ? "--fg" : "--dim");
    if (row.head) { pen.font = "600 11px system-ui, sans-serif"; pen.fillText(row.head, 6, row.y + 14); pen.font = "11px system-ui, sans-serif"; continue; }
    pen.fillText(row.lane, 6, row.y + ROW - 5);
    drawRow(row);
  }
}
function redraw() { if (!queued) { queued = true; requestAnimationFrame(draw); } }
function show(from, to) {
  const least = 10, length = Math.min(whole, Math.max(least, to - from));
  from = Math.max(0, Math.min(from, whole - length));
  view = { from, to: from + length };
  redraw();
}
function zoom(factor, at) { show(at - (at - view.from) * factor, at + (view.to - at) * factor); }
canvas.addEventListener("wheel", e => { e.preventDefault(); if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { const d = e.deltaX * (view.to - view.from) / width; show(view.from + d, view.to + d); } else zoom(Math.exp(e.deltaY / 300), tOf(e.offsetX)); }, { passive: false });
let grabbed = null;
canvas.addEventListener("pointerdown", e => { grabbed = { x: e.offsetX, from: view.from, to: view.to }; canvas.setPointerCapture(e.pointerId); box.classList.add("drag"); });
canvas.addEventListener("pointerup", () => { grabbed = null; box.classList.remove("drag"); });
canvas.addEventListener("pointermove", e => {
  if (grabbed) { const d = (grabbed.x - e.offsetX) * (grabbed.to - grabbed.from) / (width - LEFT); show(grabbed.from + d, grabbed.to + d); return; }
  const row = rows.find(r => !r.head && e.offsetY >= r.y && e.offsetY < r.y + ROW), t = tOf(e.offsetX), i = row ? firstAfter(row.end, t) : -1;
  if (!row || e.offsetX < LEFT || i >= row.op.length || row.start[i] > t + (view.to - view.from) / width * 2) { tipBox.hidden = true; return; }
  const op = row.ops[row.op[i]], wait = row.move[i] - row.start[i], lasts = row.end[i] - row.move[i], lines = [op[0] + (op[2] ? " [" + op[2] + "]" : "")];
  lines.push(data.classes[op[1]] + ", " + op[3] + ", " + seconds(lasts / 1e9) + " from " + seconds(row.start[i] / 1e9) + (wait > 0 ? ", after waiting " + seconds(wait / 1e9) : ""));
  if (op[4] > 0 && lasts > 0) lines.push(scaled(op[4], "FLOP", 1000) + ", " + scaled(op[4] / lasts * 1e9, "FLOP/s", 1000) + (data.roofs ? " (" + (100 * op[4] / lasts * 1e9 / data.roofs.matrix).toFixed(0) + " % of the matrix roof)" : ""));
  if (op[5] > 0 && lasts > 0) lines.push(scaled(op[5], "B", 1000) + ", " + scaled(op[5] / lasts * 1e9, "B/s", 1000));
  showTip(e.clientX, e.clientY, lines);
});
canvas.addEventListener("pointerleave", () => { tipBox.hidden = true; });
canvas.addEventListener("keydown", e => {
  const d = (view.to - view.from) / 8, mid = (view.from + view.to) / 2;
  const act = { ArrowLeft: () => show(view.from - d, view.to - d), ArrowRight: () => show(view.from + d, view.to + d), "+": () => zoom(.7, mid), "-": () => zoom(1 / .7, mid), Home: () => show(0, whole) }[e.key];
  if (act) { e.preventDefault(); act(); }
});
$("in").onclick = () => zoom(.5, (view.from + view.to) / 2);
$("out").onclick = () => zoom(2, (view.from + view.to) / 2);
$("all").onclick = () => show(0, whole);
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
const seen = new Set();
for (const row of rows) if (!row.head) for (const op of row.ops) seen.add(data.classes[op[1]]);
for (const name of [...data.classes.filter(c => seen.has(c)), "wait"]) {
  const key = document.createElement("span"), mark = document.createElement("i");
  key.className = "key"; mark.style.background = colours[name] || colours.host;
  key.append(mark, name.replace("_", "-"));
  $("keys").append(key);
}

/* ---- where the time goes: one bar a side ---- */
function bars() {
  const sides = [["predicted", data.result.prediction], ["measured", data.result.measurement]].filter(s => s[1]), most = Math.max(...sides.map(s => s[1].step_time_s));
  const W = 560, left = 76, high = 26, picture = svg($("bars"), "svg", { viewBox: `0 0 ${W} ${sides.length * (high + 10) + 6}`, role: "img" });
  sides.forEach(([name, r], k) => {
    let x = left;
    svg(picture, "text", { x: 0, y: k * (high + 10) + 18 }, name);
    for (const part in partNames) {
      const w = r[part] / most * (W - left);
      if (!(w > 0)) continue;
      const bar = svg(picture, "rect", { x, y: k * (high + 10), width: w, height: high, fill: partColours[part] });
      tip(bar, partNames[part] + ": " + seconds(r[part]) + ", " + (100 * r[part] / r.step_time_s).toFixed(1) + " %");
      if (w > 70) svg(picture, "text", { x: x + 5, y: k * (high + 10) + 17, style: "fill:#fff" }, partNames[part].replace("exposed communication", "exposed"));
      x += w;
    }
  });
}

/* ---- roofline: each class at its mean intensity and rate ---- */
function roofline() {
  const roofs = data.roofs, points = data.points.filter(p => p.flop > 0 && p.bytes > 0 && p.time_s > 0);
  if (!roofs || !points.length) { $("roofline").textContent = "No op with FLOP and bytes."; return; }
  const W = 560, H = 330, l = 58, r = 12, t = 12, b = 40, X = [.05, 1e4], top = roofs.matrix * 2, bottom = Math.min(roofs.memory * .05, ...points.map(p => p.flop / p.time_s)) / 2;
  const x = v => l + Math.log(v / X[0]) / Math.log(X[1] / X[0]) * (W - l - r), yy = v => t + Math.log(top / v) / Math.log(top / bottom) * (H - t - b);
  const picture = svg($("roofline"), "svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
  for (let e = -1; e <= 4; e++) { svg(picture, "line", { x1: x(10 ** e), x2: x(10 ** e), y1: t, y2: H - b, stroke: "var(--line)" }); svg(picture, "text", { x: x(10 ** e), y: H - b + 16, "text-anchor": "middle", class: "dim" }, String(10 ** e)); }
  for (let v = 10 ** Math.ceil(Math.log10(bottom)); v < top; v *= 10) { svg(picture, "line", { x1: l, x2: W - r, y1: yy(v), y2: yy(v), stroke: "var(--line)" }); svg(picture, "text", { x: l - 6, y: yy(v) + 4, "text-anchor": "end", class: "dim" }, scaled(v, "", 1000)); }
  svg(picture, "text", { x: (l + W - r) / 2, y: H - 6, "text-anchor": "middle", class: "dim" }, "FLOP per byte of memory traffic");
  const ridge = roofs.matrix / roofs.memory, low = Math.max(X[0], bottom / roofs.memory);
  svg(picture, "polyline", { points: `${x(low)},${yy(low * roofs.memory)} ${x(ridge)},${yy(roofs.matrix)} ${x(X[1])},${yy(roofs.matrix)}`, fill: "none", stroke: "var(--fg)", "stroke-width": 1.5 });
  svg(picture, "text", { x: x(X[1]) - 4, y: yy(roofs.matrix) - 6, "text-anchor": "end" }, roofs.dtype + " " + scaled(roofs.matrix, "FLOP/s", 1000) + ", " + scaled(roofs.memory, "B/s", 1000));
  const all = points.reduce((s, p) => s + p.time_s, 0);
  for (const p of points) {
    const cx = x(Math.min(X[1], Math.max(X[0], p.flop / p.bytes))), cy = yy(Math.max(bottom, p.flop / p.time_s)), dot = svg(picture, "circle", { cx, cy, r: 4 + 14 * Math.sqrt(p.time_s / all), fill: colours[p.class], "fill-opacity": .75 });
    tip(dot, `${p.class}: ${seconds(p.time_s)}, ${(p.flop / p.bytes).toPrecision(3)} FLOP/B, ${scaled(p.flop / p.time_s, "FLOP/s", 1000)}`);
    svg(picture, "text", { x: Math.min(cx + 8, W - 60), y: cy - 8 }, p.class);
  }
}

/* ---- memory against capacity ---- */
function memory() {
  const m = data.result.prediction.memory, parts = ["weights", "gradients", "optimizer", "activations", "buffers", "overhead"], most = Math.max(m.total_bytes, m.capacity_bytes || 0);
  const shades = [colours.gemm, colours.attention, colours.optimizer, colours.elementwise, colours.loss, colours.copy], W = 560, picture = svg($("memory"), "svg", { viewBox: `0 0 ${W} 64`, role: "img" });
  let x = 0;
  parts.forEach((name, i) => {
    const w = m[name + "_bytes"] / most * W;
    if (!(w > 0)) return;
    const bar = svg(picture, "rect", { x, y: 8, width: w, height: 26, fill: shades[i] });
    tip(bar, name + ": " + scaled(m[name + "_bytes"], "B", 1024));
    if (w > 75) svg(picture, "text", { x: x + 5, y: 25, style: "fill:#fff" }, name);
    x += w;
  });
  if (m.capacity_bytes) {
    const at = m.capacity_bytes / most * W;
    svg(picture, "line", { x1: Math.min(at, W - 1), x2: Math.min(at, W - 1), y1: 2, y2: 42, stroke: m.fits ? "var(--fg)" : "var(--bad)", "stroke-width": 2 });
    svg(picture, "text", { x: Math.min(at, W - 4), y: 58, "text-anchor": "end", class: "dim" }, "capacity " + scaled(m.capacity_bytes, "B", 1024));
  }
}
bars(); roofline(); memory(); draw();

/* ---- the timeline: rows of spans and of curves on a canvas ----
 * Spans at least a pixel and a half wide are drawn as they are. Narrower ones add their time to the pixel they lie in, which takes the colour of the class that has most of it, the paler the less of it is busy: what is drawn is right at every
 * zoom, and a frame costs one pass over the spans that are in view. */
const AXIS = 24, HEAD = 22, LANE = 20, CURVE = 34;
const narrow = matchMedia("(max-width: 600px)");
const box = $("timeline"), canvas = box.querySelector("canvas"), pen = canvas.getContext("2d"), mark = $("mark");
const whole = Math.max(1, ...data.sides.map(s => s.step_ns));
let view = { from: 0, to: whole }, width = 0, queued = false, byPhase = false, stands = null, theme = {}, LEFT = 96;

/* {head}, {name, ops, op, start, move, end} or {name, unit, at, value, most, until}; times in ns, in order; ops holds look, layer, micro-batch and bucket of each op */
const rows = [];
function spansRow(lane, ops) {
  const n = lane.spans.length / 4, row = { name: lane.name, ops, op: new Int32Array(n), start: new Float64Array(n), move: new Float64Array(n), end: new Float64Array(n), high: LANE };
  for (let i = 0, last = 0; i < n; i++) { /* differences keep the page small: begin after the last end, wait, duration */
    row.op[i] = lane.spans[4 * i];
    row.start[i] = last + lane.spans[4 * i + 1];
    row.move[i] = row.start[i] + lane.spans[4 * i + 2];
    last = row.end[i] = row.move[i] + lane.spans[4 * i + 3];
  }
  return row;
}
function curveRow(name, unit, base, scale, steps, until) {
  const n = steps.length / 2, row = { name, unit, base, until, at: new Float64Array(n), value: new Float64Array(n), most: 0, high: CURVE };
  for (let i = 0, t = 0, v = 0; i < n; i++) {
    row.at[i] = t += steps[2 * i];
    row.value[i] = (v += steps[2 * i + 1]) * scale;
    row.most = Math.max(row.most, row.value[i]);
  }
  return row;
}
for (const side of data.sides)
  for (const actor of side.actors) {
    rows.push({ head: actor.name, high: HEAD });
    const ops = Int32Array.from(actor.ops);
    for (const lane of actor.lanes) if (lane.spans.length) rows.push(spansRow(lane, ops));
    if (actor.memory_KiB && actor.memory_KiB.length > 2) rows.push(curveRow("memory", "B", 1024, 1024, actor.memory_KiB, side.step_ns));
    if (actor.links_MBps && actor.links_MBps.length > 2) rows.push(curveRow("links", "B/s", 1000, 1e6, actor.links_MBps, side.step_ns));
  }
let height = AXIS;
for (const row of rows) { row.y = height; height += row.high; }
height += 4;

/* Colours by number, so that a pixel's times can be summed in an array. */
const palette = [...data.classes.map(c => colours[c] || colours.host), ...data.phases.map(p => phaseColours[p] || colours.host)];
const dark = hex => { const v = parseInt(hex.slice(1), 16); return .299 * (v >> 16) + .587 * (v >> 8 & 255) + .114 * (v & 255) < 150; };
const ink = palette.map(c => dark(c) ? "#fff" : "#1b1f24");
const lookOf = (row, i) => data.looks[row.ops[4 * row.op[i]]];
const paintOf = look => byPhase ? data.classes.length + look[3] : look[1];
let paints; /* by look */
function repaint() { paints = Uint8Array.from(data.looks, paintOf); }

function nameOf(row, i) {
  const k = 4 * row.op[i], layer = row.ops[k + 1], micro = row.ops[k + 2], bucket = row.ops[k + 3];
  return (layer >= 0 ? "L" + layer + " " : "") + data.looks[row.ops[k]][0] + (bucket >= 0 ? " bucket " + bucket : "") + (micro >= 0 ? " mb" + micro : "");
}
function firstAfter(ends, t) { /* of times in order: the first index with a time > t */
  let low = 0, high = ends.length;
  while (low < high) { const mid = (low + high) >> 1; if (ends[mid] > t) high = mid; else low = mid + 1; }
  return low;
}
const xOf = t => LEFT + (t - view.from) / (view.to - view.from) * (width - LEFT);
const tOf = x => view.from + (x - LEFT) / (width - LEFT) * (view.to - view.from);

const sums = new Float64Array(palette.length);
function drawSpans(row) {
  const scale = (width - LEFT) / (view.to - view.from), n = row.op.length, y = row.y + 2, high = LANE - 4;
  let pixel = -1, any = false;
  const flush = () => {
    if (!any) return;
    let best = 0, sum = 0;
    for (let c = 0; c < sums.length; c++) { sum += sums[c]; if (sums[c] > sums[best]) best = c; }
    pen.globalAlpha = Math.max(.25, Math.min(1, sum * scale)) * (stands === null || stands === best ? 1 : .2);
    pen.fillStyle = palette[best];
    pen.fillRect(pixel, y, 1, high);
    sums.fill(0);
    any = false;
  };
  for (let i = firstAfter(row.end, view.from); i < n && row.start[i] < view.to; i++) {
    const paint = paints[row.ops[4 * row.op[i]]], x0 = LEFT + (row.start[i] - view.from) * scale, x1 = LEFT + (row.end[i] - view.from) * scale;
    if (x1 - x0 < 1.5) {
      const at = Math.max(LEFT, Math.floor((x0 + x1) / 2));
      if (at !== pixel) { flush(); pixel = at; }
      sums[paint] += Math.max(1, row.end[i] - row.start[i]);
      any = true;
      continue;
    }
    flush();
    pixel = -1;
    const from = Math.max(LEFT, x0), moves = Math.max(from, LEFT + (row.move[i] - view.from) * scale), to = Math.min(width, x1);
    pen.globalAlpha = stands === null || stands === paint ? 1 : .2;
    if (moves > from) { pen.fillStyle = colours.wait; pen.fillRect(from, y + 5, Math.min(to, moves) - from, high - 10); }
    if (moves >= to) continue;
    pen.fillStyle = palette[paint];
    pen.fillRect(moves, y, Math.max(1, to - moves - (x1 - moves > 4 ? .75 : 0)), high);
    if (to - moves > 44) {
      pen.save(); pen.beginPath(); pen.rect(moves, y, to - moves - 4, high); pen.clip();
      pen.fillStyle = ink[paint]; pen.fillText(nameOf(row, i), moves + 4, y + 12); pen.restore();
    }
  }
  flush();
  pen.globalAlpha = 1;
}
/* Each pixel shows the most that was in use in its time. */
function drawCurve(row) {
  const floor = row.y + CURVE - 3, high = CURVE - 8;
  let i = Math.max(0, firstAfter(row.at, view.from) - 1);
  pen.fillStyle = theme.area;
  for (let x = LEFT, end = Math.min(width, xOf(row.until)); x < end; x++) {
    const until = tOf(x + 1);
    let most = row.value[i];
    while (i + 1 < row.at.length && row.at[i + 1] <= until) most = Math.max(most, row.value[++i]);
    const h = row.most > 0 ? Math.max(most > 0 ? 1 : 0, most / row.most * high) : 0;
    pen.fillRect(x, floor - h, 1, h);
  }
  pen.fillStyle = theme.line; pen.fillRect(LEFT, floor, width - LEFT, 1);
}
function drawAxis() {
  const span = view.to - view.from, step = 10 ** Math.floor(Math.log10(span / 4)), tick = [1, 2, 5, 10].map(k => k * step).find(k => span / k <= Math.max(2, (width - LEFT) / 90)) || 10 * step;
  for (let t = Math.ceil(view.from / tick) * tick; t <= view.to; t += tick) {
    const x = xOf(t), digits = Math.max(0, Math.ceil(Math.log10(t / tick + 1e-9)) + 1), unit = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]].find(u => view.to >= u[0]), text = +(t / unit[0]).toPrecision(Math.max(3, digits)) + " " + unit[1];
    pen.fillStyle = theme.grid; pen.fillRect(x, AXIS - 4, 1, height);
    pen.fillStyle = theme.dim;
    if (x + 3 + pen.measureText(text).width < width) pen.fillText(text, x + 3, 14);
  }
}
function draw() {
  queued = false;
  const ratio = devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
  for (const name of ["fg", "dim", "line", "grid", "area", "panel"]) theme[name] = style.getPropertyValue("--" + name).trim();
  LEFT = narrow.matches ? 66 : 104;
  width = box.clientWidth;
  canvas.style.height = height + "px";
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  drawAxis();
  for (const row of rows) {
    if (row.head) {
      pen.font = "600 11px system-ui, sans-serif"; pen.fillStyle = theme.panel; pen.fillRect(0, row.y, Math.min(width, pen.measureText(row.head).width + 12), row.high);
      pen.fillStyle = theme.fg; pen.fillText(row.head, 6, row.y + 15); pen.font = "11px system-ui, sans-serif";
      continue;
    }
    pen.fillStyle = theme.dim;
    pen.fillText(row.name, 6, row.y + 14);
    if (row.op) { drawSpans(row); continue; }
    pen.fillText(scaled(row.most, row.unit, row.base), 6, row.y + 28);
    drawCurve(row);
  }
  placeMark();
}
function redraw() { if (!queued) { queued = true; requestAnimationFrame(draw); } }

/* ---- moving ---- */
function show(from, to) {
  const least = Math.min(whole, 20), length = Math.min(whole, Math.max(least, to - from));
  from = Math.max(0, Math.min(from, whole - length));
  view = { from, to: from + length };
  redraw();
}
function zoom(factor, at) { show(at - (at - view.from) * factor, at + (view.to - at) * factor); }
const middle = () => (view.from + view.to) / 2, shift = d => show(view.from + d, view.to + d);

canvas.addEventListener("wheel", e => {
  const across = e.shiftKey ? e.deltaY || e.deltaX : e.deltaX;
  if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY / 150), tOf(e.offsetX));
  else if (Math.abs(across) > (e.shiftKey ? 0 : Math.abs(e.deltaY))) shift(across * (view.to - view.from) / width);
  else return; /* the page scrolls */
  e.preventDefault();
}, { passive: false });

const fingers = new Map(); /* pointers that are down: where each is */
let grip = null; /* the view and places when the last of them came or went */
function regrip() { grip = fingers.size ? { view: { ...view }, xs: [...fingers.values()], moved: grip && fingers.size > 1 } : null; box.classList.toggle("drag", fingers.size > 0); }
canvas.addEventListener("pointerdown", e => { fingers.set(e.pointerId, e.offsetX); canvas.setPointerCapture(e.pointerId); regrip(); });
for (const over of ["pointerup", "pointercancel"])
  canvas.addEventListener(over, e => { const still = grip && !grip.moved; fingers.delete(e.pointerId); regrip(); if (over === "pointerup" && still) hover(e); });
canvas.addEventListener("pointermove", e => {
  if (!fingers.has(e.pointerId)) { hover(e); return; }
  fingers.set(e.pointerId, e.offsetX);
  const per = (grip.view.to - grip.view.from) / (width - LEFT), [a, b] = grip.xs, [now, other] = [...fingers.values()];
  if (Math.abs(now - a) > 3) { grip.moved = true; unmark(); }
  if (fingers.size === 1) { show(grip.view.from + (a - now) * per, grip.view.to + (a - now) * per); return; }
  const factor = Math.max(10, Math.abs(a - b)) / Math.max(10, Math.abs(now - other)), held = grip.view.from + ((a + b) / 2 - LEFT) * per, length = (grip.view.to - grip.view.from) * factor, from = held - ((now + other) / 2 - LEFT) / (width - LEFT) * length;
  show(from, from + length);
});
canvas.addEventListener("pointerleave", unmark);
canvas.addEventListener("dblclick", e => { const hit = hitAt(e.offsetX, e.offsetY); if (hit && hit.row.op) { const d = (hit.row.end[hit.i] - hit.row.start[hit.i]) / 4; show(hit.row.start[hit.i] - d, hit.row.end[hit.i] + d); } });

/* ---- one op: under the pointer, or chosen with the keys ---- */
let marked = null; /* {row, i} */
function hitAt(x, y) {
  const row = rows.find(r => !r.head && y >= r.y && y < r.y + r.high), t = tOf(x);
  if (!row || x < LEFT) return null;
  if (!row.op && t > row.until) return null;
  if (!row.op) return { row, i: Math.max(0, firstAfter(row.at, t) - 1) };
  const near = (view.to - view.from) / (width - LEFT) * 2;
  let i = firstAfter(row.end, t);
  if (i > 0 && (i >= row.op.length || row.start[i] > t) && t - row.end[i - 1] < near && !(i < row.op.length && row.start[i] - t < t - row.end[i - 1])) i--;
  return i < row.op.length && row.start[i] <= t + near ? { row, i } : null;
}
function lines({ row, i }) {
  if (!row.op) return [row.name + " " + scaled(row.value[i], row.unit, row.base), "from " + seconds(row.at[i] / 1e9) + " on; the most in this step is " + scaled(row.most, row.unit, row.base)];
  const look = lookOf(row, i), wait = row.move[i] - row.start[i], lasts = row.end[i] - row.move[i], out = [nameOf(row, i) + (look[2] ? " [" + look[2] + "]" : "")];
  out.push(data.classes[look[1]].replace("_", "-") + ", " + data.phases[look[3]] + ", " + seconds(lasts / 1e9) + " from " + seconds(row.start[i] / 1e9) + (wait > 0 ? ", of which " + seconds(wait / 1e9) + " waiting" : ""));
  if (lasts <= 0 || !(look[4] > 0 || look[5] > 0)) return out;
  const flops = look[4] / lasts * 1e9, Bps = look[5] / lasts * 1e9;
  if (data.comm[look[1]]) { out.push(scaled(look[5], "B", 1000) + " sent, " + scaled(Bps, "B/s", 1000)); return out; }
  out.push((look[4] > 0 ? scaled(look[4], "FLOP", 1000) + ", " + scaled(flops, "FLOP/s", 1000) + "; " : "") + scaled(look[5], "B", 1000) + ", " + scaled(Bps, "B/s", 1000));
  if (data.roofs && (look[1] !== data.classes.indexOf("copy"))) {
    const compute = look[4] / data.roofs.matrix, traffic = look[5] / data.roofs.memory;
    out.push("roof: " + (compute > traffic ? "matrix units, " + scaled(data.roofs.matrix, "FLOP/s", 1000) : "memory, " + scaled(data.roofs.memory, "B/s", 1000)) + "; " + percent(Math.max(compute, traffic) / lasts * 1e9) + " of it");
  }
  return out;
}
function placeMark() {
  if (!marked || !marked.row.op) { mark.hidden = true; return; }
  const { row, i } = marked, x0 = Math.max(LEFT, xOf(row.start[i])), x1 = Math.min(width, xOf(row.end[i]));
  mark.hidden = x1 < LEFT || x0 > width;
  Object.assign(mark.style, { left: x0 - 2 + "px", top: row.y + "px", width: Math.max(5, x1 - x0 + 4) + "px", height: LANE + "px" });
}
function unmark() { marked = null; tipBox.hidden = true; mark.hidden = true; }
function hover(e) {
  marked = hitAt(e.offsetX, e.offsetY);
  if (!marked) { unmark(); return; }
  placeMark();
  showTip(e.clientX, e.clientY, lines(marked));
}
/* Brings the op into view, shows it, and says it to those who do not see. */
function choose(row, i) {
  marked = { row, i };
  if (row.end[i] < view.from || row.start[i] > view.to) { const d = (row.start[i] + row.end[i]) / 2 - middle(); view = { from: view.from + d, to: view.to + d }; show(view.from, view.to); }
  placeMark();
  const r = canvas.getBoundingClientRect(), text = lines(marked);
  showTip(r.left + Math.max(LEFT, Math.min(width - 40, xOf(row.start[i]))), r.top + row.y + LANE, text);
  $("live").textContent = row.name + ": " + text.join("; ");
}
function step(by, lanes) {
  const spans = rows.filter(r => r.op);
  if (!marked || !marked.row.op) { const row = spans[0]; choose(row, Math.min(row.op.length - 1, firstAfter(row.end, view.from))); return; }
  let { row, i } = marked;
  if (!lanes) { choose(row, Math.max(0, Math.min(row.op.length - 1, i + by))); return; }
  const t = (row.start[i] + row.end[i]) / 2;
  row = spans[Math.max(0, Math.min(spans.length - 1, spans.indexOf(row) + by))];
  choose(row, Math.min(row.op.length - 1, firstAfter(row.end, t)));
}
canvas.addEventListener("keydown", e => {
  const d = (view.to - view.from) / 8;
  const act = { ArrowLeft: () => shift(-d), ArrowRight: () => shift(d), "+": () => zoom(.7, middle()), "=": () => zoom(.7, middle()), "-": () => zoom(1 / .7, middle()), Home: () => show(0, whole),
    "[": () => step(-1), "]": () => step(1), ArrowUp: () => step(-1, true), ArrowDown: () => step(1, true), Escape: unmark }[e.key];
  if (act && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); act(); }
});
$("in").onclick = () => zoom(.5, middle());
$("out").onclick = () => zoom(2, middle());
$("all").onclick = () => show(0, whole);

/* ---- the key ---- */
function keys() {
  const seen = new Set(), waits = rows.some(r => r.op && r.move.some((m, i) => m > r.start[i]));
  for (const row of rows) if (row.op) for (let i = 0; i < row.op.length; i++) seen.add(paints[row.ops[4 * row.op[i]]]);
  const names = [...data.classes, ...data.phases], add = (name, colour, paint) => {
    const key = document.createElement("button"), swatch = document.createElement("i");
    swatch.style.background = colour;
    key.append(swatch, name.replace("_", "-"));
    key.setAttribute("aria-pressed", "false");
    key.disabled = paint === null;
    key.onclick = () => { stands = stands === paint ? null : paint; for (const k of $("keys").children) k.setAttribute("aria-pressed", String(k === key && stands !== null)); redraw(); };
    $("keys").append(key);
  };
  $("keys").replaceChildren();
  palette.forEach((colour, paint) => { if (seen.has(paint)) add(names[paint], colour, paint); });
  if (waits) add("waiting", colours.wait, null);
}
function colourBy(phase) { byPhase = phase; stands = null; repaint(); keys(); redraw(); $("paint").setAttribute("aria-pressed", String(phase)); }
$("paint").onclick = () => colourBy(!byPhase);

/* ---- the page around it ---- */
let lastWidth = innerWidth;
addEventListener("resize", () => { redraw(); if (innerWidth !== lastWidth) { lastWidth = innerWidth; pictures(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("scroll", () => { tipBox.hidden = true; }, { passive: true });
addEventListener("beforeprint", () => { document.documentElement.dataset.print = "1"; for (const d of document.querySelectorAll("details")) d.open = true; draw(); });
addEventListener("afterprint", () => { delete document.documentElement.dataset.print; draw(); });
if (data.sides.some(s => s.actors.some(a => a.blocks))) colourBy(true); else colourBy(false);
pictures();
draw();
performance.mark("drawn");

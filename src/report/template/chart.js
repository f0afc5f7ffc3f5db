"use strict";
// Formats numbers for display. Draws scales, and line charts over the steps of the run that share one cross-hair.

const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const esc = (text) => String(text).replace(/[&<>"]/g, (c) => entities[c]);
const swatch = (colour, shape = "") => `<i class="key ${shape}" style="--k:${colour}"></i>`;
const faint = (text) => `<span class="faint">${text}</span>`;
const px = (v) => v.toFixed(1);
const isNumber = (v) => typeof v === "number" && isFinite(v);

const show = {
  whole: (v) => Math.round(v).toLocaleString("en-US"),
  count(v) {
    for (const [size, name] of [[1e12, "T"], [1e9, "B"], [1e6, "M"]])
      if (Math.abs(v) >= size) return show.digits(v / size, 3) + name;
    return Math.abs(v) < 1e5 ? show.whole(v) : show.digits(v / 1e3, 3) + "k";
  },
  digits(v, n) {  // n significant digits, but all digits of a whole number
    const above = v === 0 ? 0 : Math.floor(Math.log10(Math.abs(v) * 1.0005));
    return v === 0 ? "0" : v.toFixed(Math.max(0, n - 1 - above));
  },
  general(v) {
    const plain = v === 0 || (Math.abs(v) >= 1e-3 && Math.abs(v) < 1e6);
    return plain ? show.digits(v, 4) : v.toExponential(2).replace("e+", "e");
  },
  loss: (v) => v.toFixed(4),
  bytes(v) {
    const unit = byteUnit(v);
    return show.digits(v / unit.size, 3) + " " + unit.name;
  },
  seconds(v) {
    if (v < 1e-3) return show.digits(v * 1e6, 3) + " µs";
    if (v < 1) return show.digits(v * 1e3, 3) + " ms";
    if (v < 60) return show.digits(v, 3) + " s";
    const s = Math.round(v), pad = (n) => String(n).padStart(2, "0");
    if (s < 3600) return `${Math.floor(s / 60)}m ${pad(s % 60)}s`;
    if (s < 86400) return `${Math.floor(s / 3600)}h ${pad(Math.floor(s % 3600 / 60))}m`;
    return `${Math.floor(s / 86400)}d ${pad(Math.floor(s % 86400 / 3600))}h`;
  },
};

function byteUnit(v) {
  const units = [["B", 1], ["KiB", 2 ** 10], ["MiB", 2 ** 20], ["GiB", 2 ** 30], ["TiB", 2 ** 40]];
  const [name, size] = units.findLast(([, s]) => Math.abs(v) >= s) ?? units[0];
  return { name, size };
}

// About `count` round numbers from lo to hi. `least` is the smallest distance (1 for steps).
function roundTicks(lo, hi, count, least = 0) {
  const rough = Math.max((hi - lo) / Math.max(1, count), least, 1e-300);
  const power = 10 ** Math.floor(Math.log10(rough) + 1e-9);
  const allowed = (d) => d >= rough * 0.999 && (least === 0 || d % least === 0);
  const factor = [1, 2, 2.5, 5, 10].find((m) => allowed(m * power));
  const distance = factor * power;
  const ticks = [];
  const last = hi / distance + 1e-9;
  for (let i = Math.ceil(lo / distance - 1e-9); i <= last; i++) ticks.push(i * distance);
  const digits = Math.max(0, -Math.floor(Math.log10(distance) + 1e-9)) + (factor === 2.5 && power < 10 ? 1 : 0);
  const label = (v) => Math.abs(v) < distance / 1e6 ? "0" : Math.abs(v) >= 1e4 ? show.count(v)
    : digits > 4 ? v.toExponential(2).replace(/\.?0*e/, "e") : v.toFixed(digits);
  return { ticks, label };
}

function logTicks(lo, hi, count) {
  const decades = Math.log10(hi / lo);
  if (decades < 0.8) return roundTicks(lo, hi, count);
  const steps = decades < 2.2 ? [1, 2, 5] : [1], ticks = [];
  const stride = Math.max(1, Math.ceil(decades / count));
  for (let e = Math.floor(Math.log10(lo)); e <= Math.ceil(Math.log10(hi)); e += stride)
    for (const m of steps) if (m * 10 ** e >= lo * 0.999 && m * 10 ** e <= hi * 1.001) ticks.push(m * 10 ** e);
  const label = (v) => v >= 1e4 || v < 1e-3 ? v.toExponential(0).replace("e+", "e") : String(+v.toPrecision(3));
  return { ticks, label };
}

// Mean with exponentially decaying weights, unbiased from the first point on. weight 0: the values themselves.
function smoothed(values, weight) {
  let sum = 0, total = 0;
  return values.map((v) => {
    sum = sum * weight + v;
    total = total * weight + 1;
    return sum / total;
  });
}

function nearest(xs, x) {  // returns an index; xs is ascending and not empty
  let lo = 0, hi = xs.length - 1;
  while (hi - lo > 1) {
    const middle = (lo + hi) >> 1;
    if (xs[middle] <= x) lo = middle; else hi = middle;
  }
  return Math.abs(xs[lo] - x) <= Math.abs(xs[hi] - x) ? lo : hi;
}

// Draws in the next frame: drawing inside the observer would trigger the observer again.
const onResize = (box, draw) => new ResizeObserver(() => requestAnimationFrame(draw)).observe(box);

class Chart {
  static all = [];
  static whole = [0, 1];  // first and last step of the run
  static view = [0, 1];   // steps that all charts show now
  static onLook = () => {};
  static hover(step) { for (const chart of Chart.all) chart.showAt(step); }
  static look(from, to) {
    Chart.view = [from, to];
    for (const chart of Chart.all) chart.draw();
    Chart.onLook(from !== Chart.whole[0] || to !== Chart.whole[1]);
  }

  // options: series [{name, colour, curve {x, mean, min?, max?}, show, noisy?, dots?}], height, from0?, log?,
  //          limit {value, text, inside}?, skips [step]?, smoothing?
  constructor(box, options) {
    Object.assign(this, { log: false, smoothing: 0, skips: [], height: 190 }, options);
    this.series = options.series.filter((s) => s.curve && s.curve.x.length > 0);
    box.insertAdjacentHTML("beforeend", '<div class="read"></div><div class="plot"></div>');
    this.read = box.querySelector(".read");
    this.plot = box.querySelector(".plot");
    Chart.all.push(this);
    this.plot.addEventListener("pointermove", (e) => this.pointed(e));
    this.plot.addEventListener("pointerdown", (e) => {
      if (e.pointerType === "mouse") this.from = this.step(e);
      this.pointed(e);
    });
    this.plot.addEventListener("pointerup", (e) => this.released(e));
    this.plot.addEventListener("pointerleave", () => { this.from = undefined; Chart.hover(null); });
    this.plot.addEventListener("dblclick", () => Chart.look(...Chart.whole));
    onResize(this.plot, () => this.plot.clientWidth !== this.width && this.draw());
    this.draw();
  }

  set(options) { Object.assign(this, options); this.draw(); }

  step(event) {
    const x = event.clientX - this.plot.getBoundingClientRect().left;
    const at = (x - this.left) / (this.width - this.left - this.right);
    return Chart.view[0] + Math.min(1, Math.max(0, at)) * (Chart.view[1] - Chart.view[0]);
  }

  pointed(event) {
    const step = this.step(event);
    Chart.hover(step);
    if (this.from === undefined) return;
    const [a, b] = [this.x(this.from), this.x(step)].sort((p, q) => p - q);
    this.at.innerHTML += `<rect class="zoom" x="${a}" width="${b - a}" y="4" height="${this.height - 28}"/>`;
  }

  released(event) {
    const from = this.from, to = this.step(event);
    this.from = undefined;
    if (from === undefined || Math.abs(this.x(to) - this.x(from)) <= 6 || Math.abs(to - from) < 2) return;
    Chart.look(Math.min(from, to), Math.max(from, to));
  }

  range() {
    let lo = Infinity, hi = -Infinity;
    const see = (v) => {
      if (!isNumber(v) || (this.log && v <= 0)) return;
      lo = Math.min(lo, v);
      hi = Math.max(hi, v);
    };
    for (const { curve } of this.series)
      for (const list of [curve.mean, curve.min ?? [], curve.max ?? []])
        list.forEach((v, i) => { if (curve.x[i] >= Chart.view[0] && curve.x[i] <= Chart.view[1]) see(v); });
    if (this.limit?.inside) see(this.limit.value);
    if (lo > hi) return [this.log ? 0.1 : 0, 1];
    if (this.from0 && !this.log) lo = Math.min(0, lo);
    const margin = hi / lo < 1.05 ? 1.2 : (hi / lo) ** 0.04;
    if (this.log) return [lo / margin, hi * margin];
    const pad = hi > lo ? (hi - lo) * 0.05 : Math.abs(hi) * 0.1 || 1;
    return [this.from0 && lo === 0 ? 0 : lo - pad, hi + pad];
  }

  draw() {
    this.width = Math.max(240, this.plot.clientWidth);
    const { width, height } = this, bottom = 24, top = 8;
    const [lo, hi] = this.range();
    const { ticks, label } = this.log ? logTicks(lo, hi, height / 48) : roundTicks(lo, hi, height / 48);
    const labels = ticks.map(label);
    this.left = 12 + 6.6 * Math.max(2, ...labels.map((l) => l.length));
    this.right = 10;
    const [x0, x1] = Chart.view, inner = width - this.left - this.right, plot = height - top - bottom;
    this.x = (v) => this.left + (x1 > x0 ? (v - x0) / (x1 - x0) : 0.5) * inner;
    const scale = this.log ? (v) => Math.log(Math.max(v, 1e-300) / lo) / Math.log(hi / lo)
      : (v) => (v - lo) / (hi - lo);
    this.y = (v) => top + (1 - Math.min(1.02, Math.max(-0.02, scale(v)))) * plot;

    let out = "";
    ticks.forEach((t, i) => {
      const y = this.y(t).toFixed(1);
      out += `<line class="gridline" x1="${this.left}" x2="${width - this.right}" y1="${y}" y2="${y}"/>` +
        `<text x="${this.left - 8}" y="${y}" dy=".35em" text-anchor="end">${labels[i]}</text>`;
    });
    const steps = roundTicks(x0, x1, Math.max(2, inner / 110), 1);
    const base = height - bottom;
    out += `<line class="axis" x1="${this.left}" x2="${width - this.right}" y1="${base}" y2="${base}"/>`;
    for (const t of steps.ticks) {
      const x = this.x(t), anchor = x > width - 24 ? "end" : "middle";  // the last label ends with the axis
      out += `<text x="${px(anchor === "end" ? width : x)}" y="${base + 16}" text-anchor="${anchor}">` +
        `${show.count(t)}</text>`;
    }
    for (const s of this.skips.filter((v) => v >= x0 && v <= x1)) {
      const x = this.x(s).toFixed(1);
      out += `<line class="skip" x1="${x}" x2="${x}" y1="${base - 7}" y2="${base}">` +
        `<title>step ${s} was skipped</title></line>`;
    }
    const clip = `clip-${Chart.all.indexOf(this)}`;
    out += `<clipPath id="${clip}">` +
      `<rect x="${this.left - 5}" y="0" width="${inner + 10}" height="${height}"/></clipPath>` +
      `<g clip-path="url(#${clip})">${this.series.map((s) => this.drawn(s)).join("")}</g>`;
    if (this.limit?.inside) {
      const y = this.y(this.limit.value).toFixed(1);
      out += `<line class="limit" x1="${this.left}" x2="${width - this.right}" y1="${y}" y2="${y}"/>` +
        `<text class="limit-text" x="${width - this.right}" y="${y - 5}" text-anchor="end">` +
        `${esc(this.limit.text)}</text>`;
    }
    const about = `${this.series.map((s) => s.name).join(", ")} over steps`;
    this.plot.innerHTML = `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${esc(about)}">` +
      `${out}<g class="at"></g></svg>`;
    this.at = this.plot.querySelector(".at");
    this.showAt(null);
  }

  drawn(s) {
    const { x, mean, min, max } = s.curve;
    const points = (list) => list.map((v, i) => `${px(this.x(x[i]))},${px(this.y(v))}`);
    const path = (kind, paint, list) => `<path class="${kind}" ${paint}="${s.colour}" d="M${list.join("L")}"/>`;
    s.line = s.noisy ? smoothed(mean, this.smoothing) : mean;
    let out = "";
    if (min) out += path("band", "fill", [...points(min), ...points(max).reverse()]);
    if (s.noisy && this.smoothing > 0 && x.length > 1) out += path("raw", "stroke", points(mean));
    if (x.length > 1) out += path("curve", "stroke", points(s.line));
    if (x.length === 1 || (s.dots && x.length <= 80))
      out += x.map((_, i) => this.dot(s, i, 3.5)).join("");
    return out;
  }

  dot(s, i, radius) {
    const x = px(this.x(s.curve.x[i])), y = px(this.y(s.line[i]));
    return `<circle class="dot" fill="${s.colour}" r="${radius}" cx="${x}" cy="${y}"/>`;
  }

  // Shows the values at a step and the cross-hair. With null, shows the last values without cross-hair.
  showAt(step) {
    let cross = "", read = "";
    for (const s of this.series) {
      const { x, mean, min, max } = s.curve, i = step === null ? x.length - 1 : nearest(x, step);
      let more = "";
      if (step !== null) {
        if (min && max[i] > min[i]) more += faint(` ${s.show(min[i])} – ${s.show(max[i])}`);
        if (!min && s.noisy && this.smoothing > 0) more += faint(` ${s.show(mean[i])} unsmoothed`);
        if (s.dots) more += faint(` at ${show.whole(x[i])}`);
        cross += this.dot(s, i, 4);
      }
      read += `<span>${swatch(s.colour)}${esc(s.name)} <b>${s.show(s.line[i])}</b>${more}</span>`;
    }
    if (step !== null && this.series.length > 0) {
      const x = this.x(step), list = this.series[0].curve.x;
      cross = `<line class="cross" x1="${x}" x2="${x}" y1="4" y2="${this.height - 24}"/>` + cross;
      read += faint(`step ${show.whole(list[nearest(list, step)])}`);
    }
    this.read.innerHTML = read;
    this.at.innerHTML = cross;
  }
}

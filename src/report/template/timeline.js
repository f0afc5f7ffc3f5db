// The timeline of one step: lanes over time, predicted above measured, on the same scale. Drag to zoom in.

// An earlier version may have recorded ops with other names. They get a default colour and have no explanation.
const opColour = (name) => data.op_legend?.[name]?.colour ?? "var(--c6)";
const aboutOp = (name) => data.op_legend?.[name]?.about ?? "";
const opLegend = (names) => `<dl class="meanings">` + names.map((name) =>
  `<div><dt>${swatch(opColour(name), "box")}${esc(name)}</dt><dd>${esc(aboutOp(name))}</dd></div>`).join("") + `</dl>`;

class Timeline {
  constructor(box, trace) {
    this.trace = trace;
    this.groups = ["measured", "predicted"].filter((g) => trace[g].length > 0).reverse().map((name) => {
      const events = trace[name];
      const end = Math.max(...events.map((e) => e[2] + e[3]));
      const lanes = [...new Set(events.map((e) => e[0]))].sort((a, b) => a - b).map((id) => {
        const own = events.filter((e) => e[0] === id);
        return { id, events: own, busy: own.reduce((sum, e) => sum + e[3], 0) / end };
      });
      return { name, end, lanes };
    });
    this.end = Math.max(...this.groups.map((g) => g.end));
    this.view = [0, this.end];
    const used = new Set(this.groups.flatMap((g) => g.lanes.flatMap((l) => l.events.map((e) => e[1]))));
    const kinds = [...used].map((i) => trace.names[i]);
    box.insertAdjacentHTML("beforeend",
      `<div class="read"></div><div class="plot"></div>${opLegend(kinds)}`);
    this.read = box.querySelector(".read");
    this.plot = box.querySelector(".plot");
    this.reset = box.querySelector("button");
    this.reset.onclick = () => this.look(0, this.end);
    this.plot.addEventListener("pointermove", (e) => this.moved(e));
    this.plot.addEventListener("pointerdown", (e) => { this.from = this.time(e); });
    this.plot.addEventListener("pointerleave", () => { this.from = undefined; this.mark(""); this.say(null); });
    this.plot.addEventListener("pointerup", (e) => this.released(e));
    this.plot.addEventListener("dblclick", () => this.look(0, this.end));
    onResize(this.plot, () => this.plot.clientWidth !== this.width && this.draw());
    this.draw();
  }

  look(from, to) {
    this.view = [Math.max(0, from), Math.min(this.end, to)];
    this.draw();
  }

  time(event) {
    const x = event.clientX - this.plot.getBoundingClientRect().left;
    const at = (x - this.left) / (this.width - this.left - 10);
    return this.view[0] + Math.min(1, Math.max(0, at)) * (this.view[1] - this.view[0]);
  }

  draw() {
    this.width = Math.max(240, this.plot.clientWidth);
    this.left = this.width < 560 ? 62 : 118;
    const inner = this.width - this.left - 10, [t0, t1] = this.view, row = 26;
    this.x = (t) => this.left + (t - t0) / (t1 - t0) * inner;
    let y = 0, out = "";
    this.rows = [];
    for (const group of this.groups) {
      out += `<text class="soft" x="0" y="${y + 14}">${group.name}</text>` +
        `<text x="${this.width - 10}" y="${y + 14}" text-anchor="end">${show.seconds(group.end / 1e6)}</text>`;
      y += 22;
      for (const lane of group.lanes) {
        out += `<text x="0" y="${y + 15}">${esc(this.trace.lanes[lane.id] ?? lane.id)}</text>` +
          `<rect x="${this.left}" y="${y}" width="${inner}" height="${row - 4}" rx="3" fill="var(--grid)"/>`;
        if (this.width >= 560)
          out += `<text x="${this.left - 12}" y="${y + 15}" text-anchor="end">${Math.round(lane.busy * 100)}%</text>`;
        out += this.bars(lane.events, y, row - 4);
        this.rows.push({ y, group, lane });
        y += row;
      }
      y += 10;
    }
    const unit = t1 - t0 >= 2e6 ? ["s", 1e6] : t1 - t0 >= 2e3 ? ["ms", 1e3] : ["µs", 1];
    const { ticks, label } = roundTicks(t0 / unit[1], t1 / unit[1], Math.max(2, inner / 120));
    for (const t of ticks) {
      const x = this.x(t * unit[1]).toFixed(1);
      out += `<line class="axis" x1="${x}" x2="${x}" y1="${y - 6}" y2="${y - 1}"/>` +
        `<text x="${x}" y="${y + 12}" text-anchor="middle">${label(t)} ${unit[0]}</text>`;
    }
    this.plot.innerHTML = `<svg viewBox="0 0 ${this.width} ${y + 18}" role="img" aria-label="timeline of one step">` +
      `${out}<g class="at"></g></svg>`;
    this.bottom = y - 8;
    this.reset.hidden = t0 === 0 && t1 === this.end;
    this.say(null);
  }

  // Events narrower than half a pixel are joined with neighbours of the same colour: one shape instead of thousands.
  bars(events, y, height) {
    const [t0, t1] = this.view;
    let out = "", open = null;
    const flush = () => {
      if (!open) return;
      const wide = open.to - open.from, width = wide > 4 ? wide - 0.8 : Math.max(0.4, wide);  // a gap between wide ones
      out += `<rect x="${open.from.toFixed(2)}" y="${y}" width="${width.toFixed(2)}" height="${height}" fill="${open.colour}"/>`;
      open = null;
    };
    for (const [, name, start, length] of events) {
      if (start + length < t0 || start > t1) continue;
      const from = this.x(Math.max(start, t0)), to = this.x(Math.min(start + length, t1));
      const colour = opColour(this.trace.names[name]);
      if (open && open.colour === colour && to - from < 0.5 && from - open.to < 0.5) {
        open.to = Math.max(open.to, to);
        continue;
      }
      flush();
      open = { from, to, colour };
    }
    flush();
    return out;
  }

  mark(svg) { this.plot.querySelector(".at").innerHTML = svg; }

  moved(event) {
    const t = this.time(event);
    if (this.from !== undefined) {
      const [a, b] = [this.x(this.from), this.x(t)].sort((p, q) => p - q);
      this.mark(`<rect class="zoom" x="${a}" width="${b - a}" y="0" height="${this.bottom}"/>`);
      return;
    }
    const y = event.clientY - this.plot.getBoundingClientRect().top;
    const row = this.rows.find((r) => y >= r.y - 2 && y < r.y + 24);
    // Accepts a small distance to either side, so that the pointer can hit thin ops.
    const slack = (this.view[1] - this.view[0]) / (this.width - this.left) * 1.5;
    const distance = (e) => Math.max(e[2] - t, t - e[2] - e[3], 0);
    let best = null;
    for (const e of row?.lane.events ?? [])
      if (distance(e) <= slack && (!best || distance(e) < distance(best))) best = e;
    if (!best) { this.mark(""); this.say(null); return; }
    const x = Math.max(this.left, this.x(best[2])), end = Math.min(this.width - 10, this.x(best[2] + best[3]));
    this.mark(`<rect class="chosen" x="${x}" y="${row.y - 1}" width="${Math.max(1.5, end - x)}" height="24"/>`);
    this.say(best, row.group.name);
  }

  released(event) {
    const to = this.time(event), from = this.from;
    this.from = undefined;
    if (from === undefined || Math.abs(this.x(to) - this.x(from)) <= 6) this.mark("");
    else this.look(Math.min(from, to), Math.max(from, to));
  }

  say(event, group) {
    if (!event) {
      this.read.innerHTML = `<span class="faint hint">Point at an op to read what it is; drag to zoom in.</span>`;
      return;
    }
    const [, nameIndex, start, length, blockIndex, micro] = event;
    const name = this.trace.names[nameIndex], block = this.trace.blocks[blockIndex];
    this.read.innerHTML = `<span>${swatch(opColour(name), "box")}<b>${esc(name)}</b></span>` +
      (block === undefined ? "" : `<span>${/^\d+$/.test(block) ? "block " : ""}${esc(block)}</span>`) +
      (micro >= 0 ? `<span>micro-batch ${micro}</span>` : "") +
      `<span><b>${show.seconds(length / 1e6)}</b> ${faint(`starts at ${show.seconds(start / 1e6)}, ${group}`)}</span>` +
      (aboutOp(name) ? `<span class="faint">${esc(aboutOp(name))}</span>` : "");
  }
}

// One step in numbers: what bounds it, what waits for what, and every kind of op, predicted and measured.

// Shows measured / predicted, coloured by the size of the error.
function ratioCell(before, after) {
  if (!isNumber(before) || !isNumber(after) || before <= 0) return "<td>–</td>";
  const ratio = after / before, tone = ratio > 0.77 && ratio < 1.3 ? "--good" : "--warn";
  return `<td><span class="off" style="--tone:var(${tone})">${ratio.toFixed(2)}×</span></td>`;
}
const secondsCell = (v) => `<td>${isNumber(v) ? show.seconds(v) : "–"}</td>`;

function drawBounds() {
  const limits = predicted.limits, ops = summary.ops ?? [];
  const rows = Object.entries(limits?.seconds ?? {}).filter(([, s]) => isNumber(s) && s > 0);
  const step = first(measured.step_s, predicted.step_s);
  if (rows.length === 0 || !isNumber(step)) {
    fill("bounds", bar("What limits the speed") + absent(lacking("plan.json", "The plan has no limits.")));
    return;
  }
  const share = (seconds) => Math.round(100 * seconds / step);
  const most = limits.seconds[limits.bound_by];
  fill("bounds", bar("What limits the speed", `${esc(limits.bound_by)}; the run reaches ${share(most)}% of this limit`));
  const bars = rows.map(([name, seconds]) =>
    `<tr><td>${esc(name)}</td><td>${show.seconds(seconds)}</td><td>${show.count(predicted.tokens_per_step / seconds)}</td>` +
    `<td><b>${share(seconds)}%</b></td></tr><tr class="bars"><td colspan="4"><div class="before" style="width:100%">` +
    `<div style="width:${Math.min(100, share(seconds))}%;margin:0"></div></div></td></tr>`).join("");
  fill("bounds", `<table><tr><th>resource</th><th>minimum time</th><th>tokens/s at most</th><th>reached</th></tr>${bars}</table>`);
  const again = ops.filter((o) => data.op_legend?.[o.op]?.repeats).reduce((sum, o) => sum + (o.measured_s ?? 0), 0);
  fill("bounds", `<p class="why">The minimum time is the time that one resource needs for the useful work of a step, at the ` +
    `speed measured on this machine. The useful work is matrix products on the cores, reads and writes of memory, bytes to and from ` +
    `the disk, and exchanges between ranks.` +
    (again > 0 ? ` Recomputation takes ${show.seconds(again)} per step and does not count as useful work.` : "") +
    (share(most) > 105 ? " More than 100% means that the machine was slower when its speed was measured than during the run." : "") + `</p>`);
}

function drawTraffic() {
  const lanes = Object.entries(plan.disk_bytes_by_lane ?? {}), step = first(measured.step_s, predicted.step_s);
  if (lanes.length === 0 || !isNumber(step)) return;
  const sum = (key) => lanes.reduce((all, [, l]) => all + l[key], 0);
  const row = (name, read, written, kind = "") => `<tr class="${kind}"><td>${esc(name)}</td><td>${show.bytes(read)}</td>` +
    `<td>${show.bytes(written)}</td><td>${show.bytes((read + written) / step)}/s</td></tr>`;
  fill("stalls", `<table class="apart"><tr><th>disk traffic per step</th><th>read</th><th>written</th><th>speed</th></tr>` +
    lanes.map(([name, l]) => row(`${name} lane`, l.read_bytes, l.written_bytes)).join("") +
    (lanes.length > 1 ? row("total", sum("read_bytes"), sum("written_bytes"), "sum") : "") + `</table>`);
}

function drawStalls() {
  const before = predicted.stalls, after = summary.measured?.stalls;
  fill("stalls", bar("Stalls", "time in which a lane was free, but its next op had to wait; share of the step"));
  if (!before && !after) {
    fill("stalls", absent(lacking("summary.json", "The run recorded no stalls.")));
    return;
  }
  const key = (s) => `${s.lane}\n${s.waited_for}`, all = new Map();
  for (const [side, list] of [["before", before ?? []], ["after", after ?? []]])
    for (const s of list) all.set(key(s), { ...s, ...all.get(key(s)), [side]: s.seconds });
  const step = first(measured.step_s, predicted.step_s), worth = 0.001 * step;
  const rows = [...all.values()].filter((s) => Math.max(s.before ?? 0, s.after ?? 0) > worth)
    .sort((a, b) => (b.lane === "compute") - (a.lane === "compute") || (b.after ?? b.before ?? 0) - (a.after ?? a.before ?? 0));
  const table = (list) => `<table><tr><th>lane, and the op it waits for</th><th>predicted</th><th>measured</th><th>share</th></tr>` +
    list.map((s) => `<tr><td class="wraps">${esc(s.lane)}: ${esc(s.waited_for)}${aboutOp(s.waited_for) ? `<br>${faint(esc(aboutOp(s.waited_for)))}` : ""}</td>` +
      secondsCell(s.before ?? 0) + secondsCell(after ? s.after ?? 0 : undefined) +
      `<td>${show.digits(100 * (s.after ?? s.before) / step || 0, 2)}%</td></tr>`).join("") + `</table>`;
  const own = rows.filter((s) => s.lane === "compute"), others = rows.filter((s) => s.lane !== "compute");
  fill("stalls", own.length ? table(own) : absent("The compute lane never waited for long."));
  if (others.length)
    fill("stalls", `<details><summary>stalls of other lanes, which wait for work: ${others.length}</summary>${table(others)}</details>`);
  drawStages();
}

// For several ranks: the predicted waits of each stage for other ranks, and the memory of every rank.
function drawStages() {
  const stages = predicted.stages ?? [], ranks = summary.ranks ?? [];
  if (stages.length > 1)
    fill("stalls", `<table class="apart"><tr><th>stage, predicted</th><th>computes</th><th>waits for ranks</th><th>share</th></tr>` +
      stages.map((s, i) => `<tr><td>${i}</td>${secondsCell(s.compute_s)}${secondsCell(s.waits_for_ranks_s)}` +
        `<td>${show.digits(100 * s.waits_for_ranks_s / predicted.step_s || 0, 2)}%</td></tr>`).join("") + `</table>`);
  if (ranks.length > 1)
    fill("stalls", `<table class="apart"><tr><th>peak memory of rank</th><th>predicted</th><th>measured</th><th></th></tr>` +
      ranks.map((r, i) => `<tr><td>${i}</td><td>${show.bytes(r.predicted_peak_bytes)}</td><td>${show.bytes(r.measured_peak_bytes)}</td>` +
        ratioCell(r.predicted_peak_bytes, r.measured_peak_bytes) + `</tr>`).join("") + `</table>`);
}

function drawOps() {
  const ops = summary.ops ?? [];
  fill("ops", bar("Ops", "time of all ops of a step: predicted, and measured (mean)"));
  if (ops.length === 0) {
    fill("ops", absent(lacking("summary.json", "The run recorded no ops.")));
    return;
  }
  const place = (o) => o.block === undefined ? "" : /^layer \d/.test(o.block) ? "layers" : o.block;
  const groups = new Map();
  for (const o of ops) {
    const key = `${o.op}\n${place(o)}`;
    const g = groups.get(key) ?? groups.set(key, { op: o.op, block: place(o), count: 0, predicted_s: 0, measured_s: 0, of: [] }).get(key);
    g.count += o.count;
    g.predicted_s += o.predicted_s;
    g.measured_s += o.measured_s ?? 0;
    g.of.push(o);
  }
  const most = Math.max(...[...groups.values()].flatMap((g) => [g.predicted_s, g.measured_s]));
  const length = (v) => `style="width:${px(100 * v / most)}%"`;
  const head = (grouped) => `<tr><th>op</th>${grouped ? "<th class=\"about\">what it does</th>" : ""}<th class="place">block</th><th>count</th><th>predicted</th>` +
    `<th>measured</th><th>ratio</th>${grouped ? "<th></th>" : ""}</tr>`;
  const row = (o, grouped) => `<tr><td>${swatch(opColour(o.op), "box")}${esc(o.op)}</td>` +
    `${grouped ? `<td class="about">${esc(aboutOp(o.op))}</td>` : ""}<td class="place">${esc(o.block ?? "")}</td><td>${show.whole(o.count)}</td>` +
    secondsCell(o.predicted_s) + secondsCell(o.measured_s) + ratioCell(o.predicted_s, o.measured_s) +
    (grouped ? `<td class="both"><div class="before" ${length(o.predicted_s)}></div><div ${length(o.measured_s)}></div></td>` : "") + `</tr>`;
  const sorted = [...groups.values()].sort((a, b) => b.measured_s - a.measured_s);
  const shown = sorted.filter((g) => Math.max(g.predicted_s, g.measured_s) > 0.002 * most), rest = sorted.length - shown.length;
  fill("ops", `<div class="scroll"><table class="ops">${head(true)}${shown.map((g) => row(g, true)).join("")}</table></div>` +
    (rest > 0 ? `<p class="why">Ops that are too short to list here: ${rest}.</p>` : ""));
  if (ops.length > shown.length)
    fill("ops", `<details><summary>all ops, by block</summary><div class="scroll"><table class="ops">${head(false)}` +
      ops.map((o) => row(o, false)).join("") + `</table></div></details>`);
}

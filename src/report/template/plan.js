// Compares the plan with the measurements: memory by kind, step time, the timeline of a step.

const kindColours = {
  parameters: "--c1", gradients: "--c2", optimizer: "--c3", activations: "--c4", workspace: "--c5", process: "--c6",
  staging: "--c7",
};
const kindColour = (kind) => `var(${kindColours[kind] ?? "--faint"})`;

function drawKinds() {
  const sides = [["predicted", predicted.memory], ["measured", measured.memory]]
    .filter(([, kinds]) => kinds && Object.values(kinds).some(isNumber));
  fill("kinds", bar("Memory by kind", "at the peak"));
  if (sides.length === 0) {
    fill("kinds", absent(lacking("plan.json", "The plan and the summary have no memory by kind.")));
    return;
  }
  const known = [...Object.keys(kindColours), ...sides.flatMap(([, kinds]) => Object.keys(kinds))];
  const names = [...new Set(known)].filter((n) => sides.some(([, kinds]) => isNumber(kinds[n])));
  const amount = (kinds, n) => isNumber(kinds[n]) ? kinds[n] : 0;
  const total = (kinds) => names.reduce((sum, n) => sum + amount(kinds, n), 0);
  const cell = (v) => `<td>${isNumber(v) ? show.bytes(v) : "–"}</td>`;
  const row = (name, values, kind = "") => `<tr class="${kind}"><td>${name}</td>${values.map(cell).join("")}</tr>`;
  fill("kinds", kindBars(sides, names, amount, Math.max(...sides.map(([, kinds]) => total(kinds)))) +
    `<table><tr><th></th>${sides.map(([side]) => `<th>${side}</th>`).join("")}</tr>` +
    names.map((n) => row(swatch(kindColour(n), "box") + esc(n), sides.map(([, kinds]) => kinds[n]))).join("") +
    row("total", sides.map(([, kinds]) => total(kinds)), "sum") + `</table>`);
}

function kindBars(sides, names, amount, most) {
  const budget = plan.budget_bytes, inside = isNumber(budget) && budget < 4 * most;
  const width = 500, left = 74, scale = (width - left - 4) / ((inside ? Math.max(budget, most) : most) * 1.01);
  let svg = "", y = 20;
  for (const [side, kinds] of sides) {
    svg += `<text class="soft" x="0" y="${y + 17}">${side}</text>`;
    let at = left;
    for (const n of names) {
      const wide = amount(kinds, n) * scale, shown = wide > 3 ? wide - 1 : Math.max(0.5, wide);
      if (wide > 0) svg += `<rect x="${px(at)}" y="${y}" width="${px(shown)}" height="26" fill="${kindColour(n)}">` +
        `<title>${esc(n)} ${show.bytes(kinds[n])}</title></rect>`;
      at += wide;
    }
    y += 34;
  }
  if (inside) {
    const x = px(left + budget * scale);
    svg += `<line class="limit" x1="${x}" x2="${x}" y1="15" y2="${y - 2}"/>` +
      `<text class="limit-text" x="${x}" y="10" text-anchor="end">budget ${show.bytes(budget)}</text>`;
  }
  return `<svg viewBox="0 0 ${width} ${y + 4}" role="img" aria-label="memory by kind">${svg}</svg>`;
}

function drawPromise() {
  fill("promise", bar("Predicted and measured", "before the first step and during the run"));
  // The last number is the allowed relative error of the prediction.
  const rows = [
    ["Step time", predicted.step_s, measured.step_s, show.seconds, 0.3],
    ["Speed, tokens/s", predicted.tokens_per_step / predicted.step_s, predicted.tokens_per_step / measured.step_s, show.count, 0.3],
    ["Peak memory", predicted.peak_bytes, measured.peak_bytes, show.bytes, 0.2],
  ].filter(([, before]) => isNumber(before));
  if (rows.length === 0) {
    fill("promise", absent(lacking("plan.json", "The plan has no prediction.")));
    return;
  }
  const body = rows.map(([name, before, after, text, allowed]) => {
    const error = (before - after) / after, tone = Math.abs(error) <= allowed ? "--good" : "--warn";
    const percent = `${error >= 0 ? "+" : "−"}${Math.abs(100 * error).toFixed(1)}%`;
    const off = isNumber(error) ? `<span class="off" style="--tone:var(${tone})">${percent}</span>` : "–";
    const length = (v) => `style="width:${px(100 * v / Math.max(before, isNumber(after) ? after : 0))}%"`;
    return `<tr><td>${name}</td><td>${text(before)}</td><td>${isNumber(after) ? text(after) : "–"}</td><td>${off}</td></tr>` +
      `<tr class="bars"><td colspan="4"><div class="before" ${length(before)}></div>` +
      `${isNumber(after) ? `<div ${length(after)}></div>` : ""}</td></tr>`;
  }).join("");
  const source = isNumber(summary.measured?.step_s) ? "the one in summary.json" : "the median of the steps so far";
  fill("promise", `<table><tr><th></th><th>${swatch("var(--c1-soft)", "box")}predicted</th>` +
    `<th>${swatch("var(--c1)", "box")}measured</th><th>error</th></tr>${body}</table>` +
    `<p class="why">A plus sign means that the prediction was too high. ` +
    `The measured step time is ${source}.</p>` +
    (Array.isArray(plan.warnings) ? plan.warnings.map((w) => `<p class="why warning">Warning: ${esc(w)}.</p>`).join("") : ""));
  if (soFar.saves > 0 && soFar.seconds > 0) {
    const share = show.digits(100 * soFar.save_s / soFar.seconds, 2);
    fill("promise", `<p class="why">Checkpoints saved: ${show.whole(soFar.saves)}. Saving delayed the steps by ` +
      `${show.seconds(soFar.save_s)} in total, ${share}% of their time.</p>`);
  }
}

function drawTimeline() {
  const trace = data.trace, has = trace && (trace.predicted.length || trace.measured.length);
  fill("timeline", bar("Timeline of one step", "what each lane does", has ? `<button class="plain" hidden>whole step</button>` : ""));
  if (!has) {
    fill("timeline", absent(lacking("trace.json", "The trace has no events.")));
    return;
  }
  new Timeline($("timeline"), trace);
  if (trace.left_out > 0)
    fill("timeline", `<p class="why">Shortest ops that are not drawn: ${show.whole(trace.left_out)}. trace.json has them.</p>`);
}

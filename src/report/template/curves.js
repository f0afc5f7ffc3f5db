// The curves over the steps of the run, with their controls.

// Formats of values, by the unit of the metric.
const formats = { nats: show.loss, s: show.seconds, tokens: show.whole, "tokens/s": show.count, bytes: show.bytes };
const notes = { nats: "nats per token", "tokens/s": "tokens per second" };
const palette = ["var(--c2)", "var(--c5)", "var(--c1)", "var(--c4)", "var(--c3)"];

function drawCurves() {
  const [loss, ...others] = data.charts;
  if (!data.so_far) {
    fill("loss", bar(loss.title) + absent(lacking("metrics.jsonl", "No step has been recorded yet.")));
    return;
  }
  const smoothing = curves[loss.series[0].key].x.length > 150 ? 0.7 : 0;
  const drawn = [drawLoss(loss, smoothing), ...others.map((chart, i) => drawSmall(chart, palette[i % palette.length], smoothing))];
  drawDifficulties();
  $("loss").querySelector("input").oninput = (e) => {
    for (const chart of drawn) chart?.set({ smoothing: +e.target.value });
  };
}

function card(title, note, options) {
  fill("curves", `<section class="card"></section>`);
  const box = $("curves").lastElementChild;
  box.innerHTML = bar(title, note);
  return new Chart(box, { from0: true, ...options });
}

// Draws one chart of the table of metrics, or none if the run has no such values.
function drawSmall({ title, unit, series }, colour, smoothing) {
  const lines = series.map((s, i) => ({ name: s.label, noisy: s.noisy, colour: i === 0 ? colour : "var(--second)",
    curve: curves[s.key], show: formats[unit] ?? show.general })).filter((s) => s.curve.x.length > 0);
  if (lines.length === 0) return undefined;
  if (unit === "bytes") return drawBytes(title, series, lines, smoothing);
  // Without a log scale, a few spikes would make the rest of the curve look flat.
  const { curve, noisy } = lines[0], most = curve.max ?? curve.mean, least = curve.min ?? curve.mean;
  const spiky = noisy && lines.length === 1 && Math.max(...most) > 12 * median(most) && Math.min(...least) > 0;
  const said = [notes[unit] ?? unit, spiky ? "log scale" : ""].filter(Boolean).join(", ");
  return card(title, said, { log: spiky, smoothing, series: lines });
}

// Uses the unit that suits the largest value. A budget far above the peak is only stated: with a line for it, the curve
// would lie on the axis.
function drawBytes(title, series, lines, smoothing) {
  const budget = series[0].key === "mem_peak_bytes" ? plan.budget_bytes : undefined;
  const peak = Math.max(0, ...lines.flatMap(({ curve }) => curve.max ?? curve.mean));
  const unit = byteUnit(Math.max(peak, budget ?? 0)), inside = isNumber(budget) && peak > 0.15 * budget;
  const said = isNumber(budget) ? `budget ${show.bytes(budget)}` : "";
  const scaled = ({ curve, ...line }) => {
    const all = { x: curve.x };
    for (const kind of ["mean", "min", "max"]) all[kind] = curve[kind]?.map((v) => v / unit.size);
    return { ...line, curve: all, show: (v) => show.bytes(v * unit.size) };
  };
  return card(title, `${unit.name}${said && !inside ? `, ${said}` : ""}`, {
    smoothing, limit: { value: budget / unit.size, text: said, inside }, series: lines.map(scaled) });
}

// Says what a curriculum's limit applies to: a metric's values or their percentiles. A second limit of the same metric
// is "NAME filter".
function limited(name) {
  const byPercentile = (facts.percentiles ?? []).includes(name.replace(/ filter( \d+)?$/, ""));
  return (byPercentile ? "percentile of " : "") + esc(name);
}

// Draws a card for every metric by which a curriculum admits samples.
function drawDifficulties() {
  for (const [name, curve] of Object.entries(curves).filter(([key, c]) => key.startsWith("difficulty/") && c.x.length > 0))
    card("Difficulty", `the run uses samples up to this ${limited(name.slice("difficulty/".length))}`,
         { series: [{ name: "limit", colour: "var(--c3)", curve, show: show.general }] });
}

function drawLoss({ title, unit, series }, smoothing) {
  const [train, valid] = series.map((s) => curves[s.key]);
  fill("loss", bar(title, notes[unit] ?? unit, `<button class="plain" hidden>whole run</button>` +
    `<label>Smoothing <input type="range" min="0" max="0.98" step="0.02" value="${smoothing}"></label>` +
    `<span class="switch" role="group" aria-label="scale">` +
    `<button aria-pressed="true">linear</button><button aria-pressed="false">log</button></span>`));
  const chart = new Chart($("loss"), { height: 330, smoothing, skips: data.skipped.list.map((s) => s.step),
    series: series.map((s, i) => ({ name: s.label, colour: i === 0 ? "var(--accent)" : "var(--second)", curve: curves[s.key],
      show: formats[unit], noisy: s.noisy, dots: i > 0 })) });
  const said = [];
  if (valid.x.length === 0) said.push("No validation yet.");
  if (data.skipped.count > 0) said.push("Red ticks at the bottom are skipped steps.");
  if (train.min) said.push("Each point is the mean of several steps; the band shows their minimum and maximum.");
  if (train.x.length > 10)
    said.push(`<span class="hint">Point at a chart to read all charts at that step; drag to zoom in.</span>`);
  if (said.length) fill("loss", `<p class="why">${said.join(" ")}</p>`);

  const [whole, linear, log] = $("loss").querySelectorAll("button");
  whole.onclick = () => Chart.look(...Chart.whole);
  Chart.onLook = (closer) => { whole.hidden = !closer; };
  const scale = (isLog) => {
    chart.set({ log: isLog });
    linear.ariaPressed = String(!isLog);
    log.ariaPressed = String(isLog);
  };
  linear.onclick = () => scale(false);
  log.onclick = () => scale(true);
  return chart;
}

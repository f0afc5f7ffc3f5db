// The curves over the steps of the run, with their controls.

function drawCurves() {
  if (!data.so_far) {
    fill("loss", bar("Loss") + absent(lacking("metrics.jsonl", "No step has been recorded yet.")));
    for (const id of ["lr", "grad", "speed", "memory"]) $(id).hidden = true;
    return;
  }
  const smoothing = curves.loss.x.length > 150 ? 0.7 : 0;
  const loss = drawLoss(smoothing);
  const small = (id, title, note, options) => {
    fill(id, bar(title, note));
    return new Chart($(id), { from0: true, ...options });
  };
  small("lr", "Learning rate", "", {
    series: [{ name: "rate", colour: "var(--c2)", curve: curves.lr, show: show.general }] });

  // A few spikes would press everything else flat.
  const norm = curves.grad_norm, most = norm.max ?? norm.mean, least = norm.min ?? norm.mean;
  const spiky = most.length > 0 && Math.max(...most) > 12 * median(most) && Math.min(...least) > 0;
  const grad = small("grad", "Gradient norm", spiky ? "before clipping, log scale" : "before clipping", {
    log: spiky, smoothing,
    series: [{ name: "norm", colour: "var(--c5)", curve: norm, show: show.general, noisy: true }] });

  const speed = small("speed", "Speed", "tokens a second", { smoothing,
    series: [{ name: "tokens/s", colour: "var(--c1)", curve: curves.tokens_per_s, show: show.count, noisy: true }] });

  // A budget far above the peak is said, not drawn: the curve would lie on the axis.
  const peak = Math.max(0, ...curves.memory.mean), budget = plan.budget_bytes;
  const unit = byteUnit(Math.max(peak, budget ?? 0)), inside = isNumber(budget) && peak > 0.15 * budget;
  const said = isNumber(budget) ? `budget ${show.bytes(budget)}` : "";
  const curve = { x: curves.memory.x };
  for (const kind of ["mean", "min", "max"]) curve[kind] = curves.memory[kind]?.map((v) => v / unit.size);
  small("memory", "Peak memory", `${unit.name} so far${said && !inside ? `, ${said}` : ""}`, {
    limit: { value: budget / unit.size, text: said, inside },
    series: [{ name: "peak", colour: "var(--c4)", curve, show: (v) => show.bytes(v * unit.size) }] });

  drawCurriculum(small);

  $("loss").querySelector("input").oninput = (e) => {
    for (const chart of [loss, grad, speed]) chart.set({ smoothing: +e.target.value });
  };
}

// What a curriculum's limit is of: a metric's values or their percentiles. A second limit of one metric is "NAME filter".
function limited(name) {
  const byPercentile = (facts.percentiles ?? []).includes(name.replace(/ filter( \d+)?$/, ""));
  return (byPercentile ? "percentile of " : "") + esc(name);
}

// What a curriculum and token dropping made of the steps: a card for lengths and one for every metric that admits samples.
function drawCurriculum(small) {
  const card = (id, title, note, series) => {
    if (series.every((s) => s.curve.x.length === 0)) return;
    fill("curriculum", `<section class="card" id="${esc(id)}"></section>`);
    small(id, title, note, { series });
  };
  card("length", "Sequence", "tokens", [
    { name: "length", colour: "var(--c1)", curve: curves.length, show: show.whole },
    { name: "kept where tokens are dropped", colour: "var(--second)", curve: curves.kept, show: show.whole }]);
  for (const [name, curve] of Object.entries(curves).filter(([name]) => name.startsWith("difficulty/")))
    card(name, "Difficulty", `samples up to this ${limited(name.slice("difficulty/".length))} are admitted`,
         [{ name: "limit", colour: "var(--c3)", curve, show: show.general }]);
}

function drawLoss(smoothing) {
  fill("loss", bar("Loss", "nats a token", `<button class="plain" hidden>whole run</button>` +
    `<label>Smoothing <input type="range" min="0" max="0.98" step="0.02" value="${smoothing}"></label>` +
    `<span class="switch" role="group" aria-label="scale">` +
    `<button aria-pressed="true">linear</button><button aria-pressed="false">log</button></span>`));
  const chart = new Chart($("loss"), { height: 330, smoothing, skips: data.skipped.list.map((s) => s.step), series: [
    { name: "training", colour: "var(--accent)", curve: curves.loss, show: show.loss, noisy: true },
    { name: "validation", colour: "var(--second)", curve: curves.valid, show: show.loss, dots: true }] });
  const said = [];
  if (curves.valid.x.length === 0) said.push("No validation yet.");
  if (data.skipped.count > 0) said.push("Red ticks at the bottom are skipped steps.");
  if (curves.loss.min) said.push("The band spans the least and the greatest of the steps behind each point.");
  if (curves.loss.x.length > 10)
    said.push(`<span class="hint">Point to read all charts at a step; drag to look closer.</span>`);
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

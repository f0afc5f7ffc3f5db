// Builds each section of the page from the files of the run directory. If a file is missing, the section says so.

const data = JSON.parse(document.getElementById("data").textContent);
const plan = data.plan ?? {}, summary = data.summary ?? {}, facts = data.facts ?? {}, soFar = data.so_far ?? {};
const curves = data.curves;
// Prefer the summary's prediction: it is for the steps that were measured. A curriculum may make them smaller than those
// of the plan.
const predicted = { tokens_per_step: plan.tokens_per_step, limits: plan.limits, ...plan.predicted, ...summary.predicted };
const $ = (id) => document.getElementById(id);
const fill = (id, html) => $(id).insertAdjacentHTML("beforeend", html);
const first = (...values) => values.find(isNumber);
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const absent = (text) => `<p class="absent">${text}</p>`;
const bar = (title, note = "", right = "") => `<div class="bar"><h2>${title}${note ? ` <small>${note}</small>` : ""}</h2>` +
  `${right ? `<div class="right">${right}</div>` : ""}</div>`;

// Says why a section that needs this file is empty.
function lacking(file, otherwise) {
  const state = data.files[file];
  if (state === "missing") return `The run directory has no <code>${file}</code>.`;
  return state === "ok" ? otherwise : `<code>${file}</code> cannot be read: ${esc(state)}`;
}

const measured = {  // from the summary, or from the metrics if there is no summary
  step_s: first(summary.measured?.step_s, soFar.step_s),
  peak_bytes: first(summary.measured?.peak_bytes, soFar.peak_bytes || undefined),
  memory: summary.measured?.memory,
};
const ends = Object.values(curves).flatMap((c) => c.x.length ? [c.x[0], c.x.at(-1)] : []);
if (ends.length) Chart.whole = Chart.view = [Math.min(...ends), Math.max(...ends)];

function drawHead() {
  const tones = { finished: "--good", running: "--accent", interrupted: "--warn", failed: "--bad" };
  const state = summary.state ?? (data.so_far ? "no summary yet" : "nothing recorded");
  const model = plan.model ?? {}, machine = plan.machine ?? {}, files = [facts.train ?? []].flat();
  const some = (value, text) => value === undefined || value === null ? "" : text(esc(value));
  const number = (value, text) => isNumber(value) ? text(value) : "";
  const rows = [
    ["Model", [some(facts.preset, (v) => v), some(model.arch, (v) => v), some(model.layers, (v) => `${v} layers`),
      some(model.hidden, (v) => `hidden ${v}`), some(facts.from, (v) => `from ${v}`),
      number(model.parameters, (v) => `<b>${show.count(v)}</b> parameters`)]],
    ["Data", [files.slice(0, 3).map(esc).join(", ") + (files.length > 3 ? ` and ${files.length - 3} more` : ""),
      some(facts.sequence, (v) => `sequences of ${v}`)]],
    ["Step", [number(plan.tokens_per_step, (v) => `${show.whole(v)} tokens`),
      some(plan.micro_batches, (v) => `${v} micro-batch${v === "1" ? "" : "es"}`), some(facts.optimizer, (v) => v),
      some(facts.precision, (v) => v), some(facts.seed, (v) => `seed ${v}`)]],
    ["Machine", [some(machine.cpu, (v) => v), some(machine.cores, (v) => `${v} core${v === "1" ? "" : "s"}`),
      some(plan.threads, (v) => `${v} thread${v === "1" ? "" : "s"}`), number(machine.flops, (v) => `${show.digits(v / 1e9, 3)} GFLOP/s`),
      number(machine.memory_bandwidth, (v) => `${show.digits(v / 1e9, 3)} GB/s`),
      number(plan.budget_bytes, (v) => `budget ${show.bytes(v)}`)]],
  ].map(([name, parts]) => [name, parts.filter(Boolean).join(" <span>·</span> ")]).filter(([, text]) => text);
  const broken = Object.entries(data.files).filter(([, s]) => s !== "ok" && s !== "missing");
  fill("head", `<p class="brand">Megalith · training report</p><div class="title"><h1>${esc(data.run)}</h1>` +
    `<span class="state" style="--tone:var(${tones[state] ?? "--faint"})">${esc(state)}</span></div>` +
    `<dl class="facts">${rows.map(([k, v]) => `<dt>${k}</dt><dd>${v}</dd>`).join("")}</dl>` +
    some(summary.error, (v) => `<p class="note">Stopped after step ${show.whole(summary.steps ?? 0)}` +
      `${isNumber(summary.rank) ? ` on rank ${summary.rank}` : ""}: ${v}</p>`) +
    broken.map(([f, why]) => `<p class="note"><code>${esc(f)}</code> cannot be read: ${esc(why)}</p>`).join(""));
}

function drawTiles() {
  const tiles = [];
  const tile = (name, value, text, note = "") => isNumber(value) && tiles.push(
    `<div class="tile"><label>${name}</label><b>${text(value)}</b><i>${note}&nbsp;</i></div>`);
  const withUnit = (text) => text.replace(/ (.*)/, " <small>$1</small>");
  const perplexity = (loss) => facts.compares ? "" : `perplexity ${Math.exp(loss) < 1000 ? show.digits(Math.exp(loss), 3) : show.count(Math.exp(loss))}`;
  const loss = first(summary.loss, soFar.loss), valid = first(summary.valid_loss, soFar.valid_loss);
  const best = soFar.best_valid_loss, surpassed = isNumber(best) && best < valid - 5e-5;
  tile("Validation loss", valid, show.loss,
    surpassed ? `best ${show.loss(best)} at step ${show.whole(soFar.best_valid_step)}` : perplexity(valid));
  tile("Training loss", loss, show.loss, isNumber(valid) ? "last step" : perplexity(loss));
  const steps = first(summary.steps, soFar.step), planned = Number(facts.steps);
  tile("Steps", steps, show.whole, planned > steps ? `of ${show.whole(planned)}` : planned === steps ? "all done" : "");
  const tokens = first(summary.tokens, soFar.tokens), each = tokens / plan.model?.parameters;
  tile("Tokens", tokens, show.count, isNumber(each) ? `${show.digits(each, 2)} a parameter` : "");
  tile("Time", first(summary.seconds, soFar.seconds), show.seconds,
    isNumber(measured.step_s) ? `${show.seconds(measured.step_s)} per step` : "");
  tile("Speed", median(curves.tokens_per_s.mean), (v) => withUnit(`${show.count(v)} tok/s`), "median");
  const share = Math.round(100 * measured.peak_bytes / plan.budget_bytes);
  tile("Peak memory", measured.peak_bytes, (v) => withUnit(show.bytes(v)),
    isNumber(share) ? `${share}% of ${show.bytes(plan.budget_bytes)}` : "");
  $("tiles").hidden = tiles.length === 0;
  fill("tiles", tiles.join(""));
}

function drawSamples() {
  const { list, count } = data.samples;
  fill("samples", bar("Samples", count > list.length ? `${list.length} of ${show.whole(count)}` : ""));
  if (list.length === 0) {
    fill("samples", absent("This run generated no sample text."));
    return;
  }
  const one = (s) => `<div class="when">step ${show.whole(s.step)}</div><div class="sample">${esc(s.text)}</div>`;
  const group = (some) => `<div class="samples">${some.map(one).join("")}</div>`;
  const earlier = list.slice(0, -1).reverse();
  fill("samples", group(list.slice(-1)));
  if (earlier.length)
    fill("samples", `<details><summary>earlier samples: ${earlier.length}</summary>${group(earlier)}</details>`);
}

function drawSkipped() {
  const { list, count } = data.skipped;
  $("skipped").hidden = count === 0;
  const table = `<table><tr><th>step</th><th>loss</th><th>gradient norm</th></tr>` + list.map((s) =>
    `<tr><td>${show.whole(s.step)}</td><td>${esc(s.loss)}</td><td>${esc(s.grad_norm)}</td></tr>`).join("") + `</table>`;
  fill("skipped", bar("Skipped steps", `${show.whole(count)}; their loss or gradient was not finite, so they did not change the model`) +
    (list.length > 12 ? `<details><summary>show ${list.length}</summary>${table}</details>` : table));
}

function drawConfig() {
  fill("config", bar("Configuration", "complete, with defaults"));
  if (typeof data.config !== "string") {
    fill("config", absent(lacking("config.yaml", "")));
    return;
  }
  const line = (text) => esc(text).replace(/^(\s*(?:- )?)([\w.-]+)(:)/, '$1<span class="k">$2</span>$3')
    .replace(/(^|\s)(#.*)$/, '$1<span class="c">$2</span>');
  // One block per top-level key, so that columns break between keys.
  const blocks = data.config.trimEnd().split(/\n(?=[^\s#-])/);
  const html = blocks.map((b) => `<div>${b.split("\n").map(line).join("\n")}</div>`).join("");
  fill("config", `<pre class="yaml">${html}</pre>`);
}

for (const draw of [drawHead, drawTiles, drawCurves, drawKinds, drawPromise, drawBounds, drawStalls, drawTraffic, drawExperts, drawTimeline, drawOps, drawSamples, drawSkipped, drawConfig])
  draw();
const written = new Date(data.written * 1000).toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });
$("foot").textContent = `Written ${written}${summary.checkpoint ? ` · last checkpoint ${summary.checkpoint}` : ""}`;
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));

// Load of the experts: one map per layer, experts downwards, steps to the right.

function drawExperts() {
  const records = data.experts ?? [];
  $("experts").hidden = records.length === 0;
  if (records.length === 0) return;
  const last = records.at(-1);
  fill("experts", bar("Experts", "tokens of each expert divided by the mean; one row per expert, steps from left to right") +
    `<div class="maps">${last.layers.map(() => `<figure><figcaption></figcaption><canvas></canvas></figure>`).join("")}</div>` +
    `<div class="legend"><span>${swatch(loadColour(0), "box")}no tokens</span><span>${swatch(loadColour(0.5), "box")}half of the mean</span>` +
    `<span>${swatch(loadColour(1.5), "box")}1.5 times the mean</span><span>${swatch(loadColour(2), "box")}2 times the mean or more</span></div>`);
  $("experts").querySelectorAll("figure").forEach((figure, i) => drawLoads(figure, records, i));
}

// A load equal to the mean is transparent, so that it fits any page colour.
function loadColour(load) {
  const off = Math.min(1, Math.abs(load - 1));
  return load < 1 ? `rgba(63, 102, 207, ${off})` : `rgba(224, 96, 44, ${off})`;
}

function drawLoads(figure, records, i) {
  const [caption, canvas] = figure.children, last = records.at(-1).layers[i], experts = last.load.length;
  const said = [`busiest ${show.digits(Math.max(...last.load), 3)}×`, `least ${show.digits(Math.min(...last.load), 3)}×`];
  if (last.dropped > 0) said.push(`${show.digits(100 * last.dropped, 2)}% dropped`);
  said.push(`entropy ${show.digits(last.entropy, 3)} of ${show.digits(Math.log(experts), 3)}`);
  caption.innerHTML = `<b>layer ${last.layer}</b> ${said.join(" · ")}`;
  canvas.width = records.length;
  canvas.height = experts;
  canvas.style.height = `${Math.max(48, Math.min(160, 12 * experts))}px`;
  const paint = canvas.getContext("2d");
  records.forEach((record, x) => record.layers[i]?.load.forEach((load, y) => {
    paint.fillStyle = loadColour(load);
    paint.fillRect(x, y, 1, 1);
  }));
  canvas.onpointermove = (e) => {
    const box = canvas.getBoundingClientRect(), at = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    const record = records[at((e.clientX - box.left) / box.width, records.length)];
    const y = at((e.clientY - box.top) / box.height, experts);
    canvas.title = `step ${show.whole(record.step)}, expert ${y}: ${show.digits(record.layers[i].load[y], 3)}×`;
  };
}

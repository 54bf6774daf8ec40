// The last batches as bars: a lane a worker, one for the bridge if there is one, and one for training.

const SPANS = [["fetch", 4, 5], ["write", 5, 6], ["transfer", 6, 7], ["move", 8, 9]]; // columns of a batch

function lanesOf(loader) {
  const { batches, waits } = loader.timeline;
  const { stats } = loader;
  const makers = Math.max(stats.by_worker.length, 1); // also those that were retired since
  const lanes = Array.from({ length: makers }, (_, at) => ({ label: stats.workers ? `worker ${at}` : "in line", spans: [] }));
  const bridge = { label: "to / device", spans: [] };
  for (const batch of batches) {
    for (const [name, from, to] of SPANS) {
      if (batch[to] - batch[from] <= 0 || (name === "transfer" && !stats.transferring)) continue;
      const lane = name === "move" ? bridge : lanes[batch[0]];
      if (lane) lane.spans.push({ name, from: batch[from], to: batch[to], epoch: batch[1], position: batch[2] });
    }
  }
  if (bridge.spans.length) lanes.push(bridge);
  const training = { label: "training", spans: [] };
  waits.forEach(([asked, handed], at) => {
    if (at) training.spans.push({ name: "step", from: waits[at - 1][1], to: asked });
    training.spans.push({ name: "wait", from: asked, to: handed });
  });
  lanes.push(training);
  return lanes;
}

const timeline = { lanes: [], begin: 0, end: 0, left: 84, lane: 22, gap: 6, top: 4 };

function showTimeline(loader) {
  const { batches, waits } = loader.timeline;
  byId("timeline-section").hidden = waits.length === 0;
  if (!waits.length) return;
  timeline.lanes = lanesOf(loader);
  timeline.begin = batches.length ? Math.min(...batches.slice(0, 64).map((batch) => batch[4])) : waits[0][0];
  timeline.end = Math.max(0, ...batches.slice(-64).map((batch) => batch[7]));
  timeline.lane = timeline.lanes.length > 20 ? 9 : 22;
  timeline.gap = timeline.lanes.length > 20 ? 2 : 6;
  const shown = new Set(timeline.lanes.flatMap((lane) => lane.spans.map((span) => span.name)));
  const legend = Object.keys(STATIONS).filter((name) => shown.has(name));
  byId("legend").replaceChildren(...legend.map((name) =>
    element("span", { class: "key" }, element("i", { class: name === "wait" ? "hatched" : "", style: `--tone: var(--${name})` }), STATIONS[name].label)));
  const caption = `The last ${plural(waits.length, "batch").replace("batchs", "batches")}: ${duration((timeline.end - timeline.begin) / 1e3)}.`;
  setText(byId("timeline-caption"), caption);
  byId("timeline").setAttribute("aria-label", `${caption} ${timeline.lanes.map((lane) => lane.label).join(", ")}.`);
  drawTimeline();
}

function drawTimeline() {
  const canvas = byId("timeline");
  const width = canvas.parentElement.clientWidth;
  const { lanes, lane, gap, top } = timeline;
  if (!width || !lanes.length) return;
  timeline.left = width < 520 ? 66 : 84;
  const height = top + lanes.length * (lane + gap) + 22;
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const tones = Object.fromEntries(Object.keys(STATIONS).map((name) => [name, colour(name)]));
  tones.wait = hatching(pen, tones.wait);
  const track = colour("track");
  const x = (at) => timeline.left + ((at - timeline.begin) / (timeline.end - timeline.begin || 1)) * (width - timeline.left);
  lanes.forEach((one, number) => {
    const y = top + number * (lane + gap);
    pen.fillStyle = track;
    pen.fillRect(timeline.left, y, width - timeline.left, lane);
    if (lane > 12 || number === lanes.length - 1 || (number % 4 === 0 && number < lanes.length - 3)) {
      pen.fillStyle = colour("muted");
      pen.fillText(one.label, 0, y + lane / 2, timeline.left - 8);
    }
    for (const span of one.spans) {
      const from = Math.max(x(span.from), timeline.left);
      if (x(span.to) < timeline.left) continue;
      pen.fillStyle = tones[span.name];
      pen.fillRect(from, y, Math.max(x(span.to) - from - 0.5, 0.5), lane);
    }
  });
  drawAxis(pen, width, height, x);
}

function hatching(pen, tone) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const inner = tile.getContext("2d");
  inner.fillStyle = tone;
  inner.globalAlpha = 0.45;
  inner.fillRect(0, 0, 6, 6);
  inner.globalAlpha = 1;
  inner.strokeStyle = tone;
  inner.lineWidth = 2;
  for (const shift of [-6, 0, 6]) {
    inner.beginPath();
    inner.moveTo(shift - 1, 7);
    inner.lineTo(shift + 7, -1);
    inner.stroke();
  }
  return pen.createPattern(tile, "repeat");
}

function drawAxis(pen, width, height, x) {
  const span = timeline.end - timeline.begin;
  const ticks = width < 520 ? 2 : 5;
  pen.fillStyle = colour("muted");
  for (let at = 0; at <= ticks; at += 1) {
    const ms = timeline.end - (span * (ticks - at)) / ticks;
    const text = at === ticks ? "now" : `−${duration((timeline.end - ms) / 1e3)}`;
    pen.textAlign = at === 0 ? "left" : at === ticks ? "right" : "center";
    pen.fillText(text, x(ms), height - 8);
  }
  pen.textAlign = "left";
}

function pointAt(event) {
  const box = byId("timeline").getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const number = Math.floor((y - timeline.top) / (timeline.lane + timeline.gap));
  const lane = timeline.lanes[number];
  const tip = byId("tip");
  const at = timeline.begin + ((x - timeline.left) / (box.width - timeline.left)) * (timeline.end - timeline.begin);
  const span = lane && x >= timeline.left ? lane.spans.find((one) => one.from <= at && at <= one.to) : null;
  tip.hidden = !span;
  if (!span) return;
  const which = span.position === undefined ? "" : `, epoch ${span.epoch}, position ${span.position}`;
  setText(tip, `${lane.label}: ${STATIONS[span.name].label} ${duration((span.to - span.from) / 1e3)}${which}`);
  tip.style.left = `${Math.max(0, Math.min(x + 12, box.width - tip.offsetWidth))}px`;
  tip.style.top = `${Math.max(0, y - 34)}px`;
}

// The pipeline as a flow: a card a station, with its rate and share of time. The bottleneck is named, not only coloured.

function flowCards(loader, rates) {
  const { stats } = loader;
  const workers = Math.max(stats.workers, 1);
  const making = ["idle", "fetch", "write"].reduce((sum, name) => sum + spentAt(stats, name).total, 0);
  const consuming = spentAt(stats, "wait").total - stats.starting + spentAt(stats, "step").total;
  const whose = stats.workers ? "of workers' time" : "of working time";
  const cards = [];
  const add = (name, share, of, capacity, more) => cards.push({ name, share, of, capacity, more });
  const capacity = (name, lanes) => {
    const { total } = spentAt(stats, name);
    return total > 0 ? (lanes * stats.samples) / total : Infinity;
  };
  const hits = stats.setup.has_cache && spentAt(stats, "fetch").count ? 1 - stats.calls / stats.samples : 0;
  add("fetch", spentAt(stats, "fetch").total / making, whose, capacity("fetch", workers),
    hits > 0.001 ? `${percent(hits)} out of the cache` : null);
  add("write", spentAt(stats, "write").total / making, whose, capacity("write", workers), null);
  if (stats.transferring > 0) add("transfer", null, "", Infinity, null);
  add("ready", null, "", Infinity, `${stats.units_under_way} under way, ${stats.slots_held} of ${stats.slots} slots held`);
  if (stats.moving > 0) add("move", spentAt(stats, "move").total / consuming, "of training's time", capacity("move", 1), null);
  add("step", spentAt(stats, "step").count ? spentAt(stats, "step").total / consuming : null, "of training's time", capacity("step", 1), null);
  return cards.map((card) => flowCard(card, loader, rates));
}

function flowCard({ name, share, of, capacity, more }, loader, rates) {
  const { stats } = loader;
  const isBottleneck = loader.verdict.station === name;
  const spent = spentAt(stats, name);
  const lines = [];
  if (spent.count) lines.push(`${duration(spent.p50)} a batch, 1 in 100 over ${duration(spent.p99)}`);
  if (Number.isFinite(capacity) && capacity > 0) lines.push(`could do ${count(capacity)} samples/s`);
  if (more) lines.push(more);
  const hasBytes = name !== "fetch" && rates.bytes > 0; // before that, there are samples of any kind
  const held = name !== "step" && isBottleneck ? heldUp(stats, name) : null;
  return element("div", { class: "station", "data-station": name, "data-bottleneck": isBottleneck, style: `--tone: var(--${name})` },
    isBottleneck ? element("p", { class: "badge" }, name === "step" ? "✓ Sets the pace" : "▲ Bottleneck") : null,
    element("h3", {}, STATIONS[name].label),
    element("p", { class: "about" }, STATIONS[name].about),
    element("p", { class: "rate" }, `${count(rates.samples)} samples/s`,
      hasBytes ? element("span", { class: "muted" }, ` ${bytes(rates.bytes)}/s`) : null),
    share !== null && Number.isFinite(share) ? shareBar(share, of) : null,
    ...lines.map((line) => element("p", { class: "line" }, line)),
    held ? element("p", { class: "line held" }, held) : null);
}

function shareBar(share, of) {
  const width = `${Math.min(100, Math.max(0, 100 * share)).toFixed(1)}%`;
  return element("div", { class: "share" },
    element("span", { class: "meter", "aria-hidden": "true" }, element("span", { style: `width: ${width}` })),
    element("span", {}, `${percent(share)} ${of}`));
}

function heldUp(stats, name) {
  const causes = ["fetch", "write", "transfer", "move"];
  if (!causes.includes(name)) return null;
  const all = causes.reduce((sum, cause) => sum + stats.stations[cause].while_waiting, 0);
  return all > 0 ? `${percent(stats.stations[name].while_waiting / all)} of what ran while training waited` : null;
}

function arrow() {
  return drawn("svg", { class: "arrow", viewBox: "0 0 36 16", "aria-hidden": "true" },
    drawn("path", { class: "stream", d: "M1 8H28" }), drawn("path", { class: "head", d: "M26 2l8 6-8 6z" }));
}

function showFlow(loader, rates, isMoving) {
  const flow = byId("flow");
  const cards = flowCards(loader, rates);
  const { stats } = loader;
  const workersName = stats.workers ? plural(stats.workers, "worker") : "no workers: made in your own thread";
  const group = (label, name, inside, stations) => element("div", { class: `group ${name}`, style: `--stations: ${stations}` },
    element("p", { class: "group-label" }, label), element("div", { class: "group-inside" }, ...inside));
  const last = cards.length - 1;
  const onTheWay = cards.slice(2, last).flatMap((card, at) => (at ? [arrow(), card] : [card]));
  const makers = group(workersName, "makers", [cards[0], arrow(), cards[1]], 2);
  if (loader.verdict.station === "idle") { // what takes long is none of the stations: workers have nothing to do
    makers.dataset.station = "idle";
    makers.prepend(element("p", { class: "badge" }, "▲ Workers are idle"));
  }
  flow.classList.toggle("moving", isMoving);
  flow.classList.toggle("dense", cards.length > 5);
  flow.replaceChildren(
    makers,
    arrow(),
    group("on the way", "way", onTheWay, last - 2),
    arrow(),
    group("consumer", "you", [waitCard(loader), cards[last]], 2));
}

function waitCard({ stats, verdict }) {
  const spent = spentAt(stats, "wait");
  const waited = Math.max(0, spent.total - stats.starting);
  const all = waited + spentAt(stats, "step").total;
  return element("div", { class: "station wait", "data-station": "wait", "data-alarm": verdict.station !== "step" && waited > 0.05 * all, style: "--tone: var(--wait)" },
    element("h3", {}, STATIONS.wait.label),
    element("p", { class: "about" }, STATIONS.wait.about),
    all > 0 ? shareBar(waited / all, "of training's time") : null,
    spent.count ? element("p", { class: "line" }, `${duration(spent.p50)} a batch, 1 in 100 over ${duration(spent.p99)}`) : null,
    stats.starting > 0 ? element("p", { class: "line" }, `and ${duration(stats.starting)} of start-up`) : null);
}

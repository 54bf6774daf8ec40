// Figures in tables: workers, the slowest batches, and what kind of loader it is.

function table(node, heads, rows) {
  const head = element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell, at) =>
    element(at ? "td" : "th", at ? { "data-label": heads[at] } : { scope: "row" }, cell))));
  node.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
}

function isMeasured(stats) {
  return spentAt(stats, "wait").count > 0; // else by observe=False it is not
}

function showWorkers({ stats, workers }) {
  byId("workers-section").hidden = stats.workers === 0 || (stats.batches > 0 && !isMeasured(stats));
  const nodes = stats.by_worker.some((one) => one.node);
  const known = workers.length === stats.by_worker.length;
  const heads = ["worker", ...(nodes ? ["node"] : []), ...(known ? ["process"] : []), "batches", "samples", "idle · dataset[i] · collate", "processor", ...(known ? ["memory"] : [])];
  table(byId("workers"), heads, stats.by_worker.map((one, at) => {
    const all = one.idling + one.fetching + one.writing;
    return [
      `${at}`,
      ...(nodes ? [one.node || "this machine"] : []),
      ...(known ? [`${workers[at].pid}`] : []),
      count(one.batches),
      count(one.samples),
      stacked([["idle", one.idling], ["fetch", one.fetching], ["write", one.writing]], all),
      all > 0 ? percent(one.cpu / all) : "–",
      ...(known ? [workers[at].memory ? bytes(workers[at].memory) : "–"] : []),
    ];
  }));
}

function stacked(parts, all) {
  const told = parts.map(([name, seconds]) => `${STATIONS[name].label} ${percent(all > 0 ? seconds / all : 0)}`).join(", ");
  return element("span", { class: "stacked" },
    element("span", { class: "stack", role: "img", "aria-label": told, title: told }, ...parts.map(([name, seconds]) =>
      element("span", { style: `width: ${all > 0 ? ((100 * seconds) / all).toFixed(1) : 0}%; --tone: var(--${name})` }))),
    element("span", { class: "stack-told" }, parts.map(([, seconds]) => percent(all > 0 ? seconds / all : 0)).join(" · ")));
}

function showSlowest({ stats }) {
  byId("slowest-section").hidden = stats.slowest.length === 0;
  table(byId("slowest"), ["made in", "epoch", "position", "worker"],
    stats.slowest.map((one) => [duration(one.seconds), `${one.epoch}`, `${one.position}`, `${one.worker}`]));
}

function showFacts(loader) {
  const { stats, process, workers } = loader;
  const nodes = new Set(stats.by_worker.map((one) => one.node).filter(Boolean));
  const memory = workers.reduce((sum, one) => sum + one.memory, 0);
  const slow = stats.slow_samples;
  const facts = [
    ["workers", loader.backend],
    ["state", loader.phase],
    ["epoch", `${loader.epoch}`],
    ["shard", `${loader.shard[0]} of ${loader.shard[1]}`],
    ["process", `${process.pid} on ${process.host}`],
    ["machines of workers", nodes.size ? [...nodes].join(", ") : "this one"],
    ["delivered", `${count(stats.batches)} batches, ${count(stats.samples)} samples, ${bytes(stats.nbytes)}`],
    ["skipped, replaced samples; retries", [stats.skipped, stats.replaced, stats.retries].map(count).join(", ")],
    ["deaths of workers", count(stats.deaths)],
    ...(slow.count ? [["slow samples", `${count(slow.count)}; the slowest: ${slow.slowest.map((one) => `${one.index} (${duration(one.seconds)})`).join(", ")}`]] : []),
    ["slots", `${stats.slots}, of which ${stats.slots_held} held`],
    ["memory", `${bytes(process.memory)} here${memory ? `, ${bytes(memory)} in workers (shared memory counts in each)` : ""}`],
  ];
  byId("facts").replaceChildren(...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function showFigures(loader, rates) {
  const { stats } = loader;
  const figures = [
    ["samples/s", count(rates.samples), "samples"],
    ["training waits", isMeasured(stats) ? percent(rates.waited) : "–", "waited"],
    ["data/s", bytes(rates.bytes), "bytes"],
    ["batches", count(stats.batches), "batches"],
    ["skipped", count(stats.skipped), "skipped"],
    ["worker deaths", count(stats.deaths), "deaths"],
  ];
  const list = byId("figures");
  if (list.children.length !== figures.length) {
    list.replaceChildren(...figures.map(([name, , id]) =>
      element("div", { "data-figure": id }, element("dt", {}, name), element("dd", {}))));
  }
  figures.forEach(([, value, id], at) => {
    setText(list.children[at].lastChild, value);
    list.children[at].classList.toggle("alarm", (id === "deaths" || id === "skipped") && value !== "0");
  });
}

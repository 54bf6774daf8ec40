// The page: which loaders there are, which of them is shown, and what has changed since.

const WINDOW_S = 4; // over which live rates are taken
const REMEMBERED = 900; // snapshots of a loader, for its pace
const LAG_SHARE = 0.1; // of the time: who waits for data that much longer than the others holds them up
const LAG_RATE = 0.9; // of the others' rate
const state = { live: false, loaders: [], selected: null, paused: false, over: false, history: new Map(), events: [] };

function begin() {
  const given = JSON.parse(byId("data").textContent);
  state.live = given.live;
  byId("theme").addEventListener("click", turnTheme);
  byId("pause").addEventListener("click", turnPause);
  byId("timeline").addEventListener("pointermove", pointAt);
  byId("timeline").addEventListener("pointerleave", () => { byId("tip").hidden = true; });
  window.addEventListener("resize", showSelected);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  if (state.live) {
    byId("pause").hidden = false;
    setText(byId("footer"), "Rates are of the last seconds; shares and distributions, of the time since the start.");
    listen();
  } else {
    const taken = given.loaders.length ? new Date(1000 * given.loaders[0].taken) : new Date();
    setText(byId("status"), `Report of ${taken.toISOString().slice(0, 16).replace("T", " ")} UTC`);
    setText(byId("footer"), "All figures are of the time since the start, but for the timeline and the pace, which show the last batches.");
  }
  receive(given.loaders);
}

function listen() {
  const source = new EventSource(`/events${location.search}`);
  const tell = (kind, text) => { byId("status").dataset.kind = kind; setText(byId("status"), text); };
  source.onopen = () => tell("live", state.paused ? "Paused" : "Live");
  source.onmessage = (event) => { if (!state.paused) receive(JSON.parse(event.data)); };
  source.onerror = () => tell("lost", "No connection: trying again");
  source.addEventListener("end", () => { source.close(); state.over = true; byId("pause").hidden = true; tell("over", "Ended"); showSelected(); });
}

function receive(loaders) {
  loaders.sort((one, other) => one.shard[0] - other.shard[0] || one.process.pid - other.process.pid || one.key.localeCompare(other.key, "en", { numeric: true }));
  for (const loader of loaders) remember(loader);
  state.loaders = loaders;
  if (!loaders.some((one) => one.key === state.selected)) state.selected = loaders.length ? loaders[0].key : null;
  showConsumers();
  showSelected();
}

function remember(loader) {
  const { stats } = loader;
  const known = state.history.get(loader.key) || [];
  const isRestarted = known.length && stats.elapsed < known[known.length - 1].elapsed; // other workers, in the same place
  const past = isRestarted ? [] : known;
  const before = past[past.length - 1];
  if (before && loader.taken <= before.taken) return; // it does not answer, and is shown as it was
  if (before && stats.deaths > before.deaths) {
    const time = new Date(1000 * loader.taken).toISOString().slice(11, 19);
    state.events.unshift(`${time} UTC: ${plural(stats.deaths - before.deaths, "worker")} of ${named(loader)} died and ${stats.deaths - before.deaths === 1 ? "was" : "were"} replaced`);
    state.events.length = Math.min(state.events.length, 50);
  }
  past.push({ taken: loader.taken, samples: stats.samples, nbytes: stats.nbytes, batches: stats.batches, waiting: stats.waiting, elapsed: stats.elapsed, deaths: stats.deaths });
  if (past.length > REMEMBERED) past.shift();
  state.history.set(loader.key, past);
}

function average({ stats }) {
  const time = stats.elapsed || Infinity;
  const fed = stats.elapsed - stats.starting;
  return { samples: stats.samples / time, bytes: stats.nbytes / time, batches: stats.batches / time, waited: fed > 0 ? Math.max(0, stats.waiting - stats.starting) / fed : 0 };
}

function ratesBetween(from, to) {
  const time = to.taken - from.taken;
  const busy = to.elapsed - from.elapsed;
  return { samples: (to.samples - from.samples) / time, bytes: (to.nbytes - from.nbytes) / time, batches: (to.batches - from.batches) / time, waited: busy > 0 ? Math.min(1, Math.max(0, (to.waiting - from.waiting) / busy)) : 0 };
}

function ratesOf(loader) {
  const past = state.history.get(loader.key) || [];
  if (!state.live || past.length < 2) return average(loader);
  const newest = past[past.length - 1];
  return ratesBetween(past.find((one) => newest.taken - one.taken <= WINDOW_S), newest);
}

function paceOf(loader) {
  if (!state.live) return loader.pace;
  const past = state.history.get(loader.key) || [];
  const newest = past[past.length - 1];
  const points = past.slice(1).map((one, at) => [one.taken - newest.taken, ratesBetween(past[Math.max(0, at - 2)], one)]);
  return { seconds: points.map(([at]) => at), samples: points.map(([, rates]) => rates.samples), waited: points.map(([, rates]) => rates.waited) };
}

function named({ title, shard, process }) {
  const who = shard[1] > 1 ? `rank ${shard[0]} of ${shard[1]}` : `process ${process.pid}`;
  return `${who}, ${title}`;
}

// Whoever holds up the others of its kind: ranks in step all have the same rate, but the one that lags waits for data.
function lagOf(loader, rates) {
  if (loader.shard[1] < 2) return null; // no rank: nobody waits for it
  const peers = state.loaders.filter((one) => one !== loader && one.title === loader.title && one.shard[1] === loader.shard[1] && one.phase === "running");
  if (!peers.length || !loader.stats.batches) return null;
  const middle = (values) => values.sort((one, other) => one - other)[Math.floor(values.length / 2)];
  const theirs = peers.map((peer) => rates.get(peer.key));
  const [waited, pacing] = [middle(theirs.map((one) => one.waited)), middle(theirs.map((one) => one.batches))];
  const own = rates.get(loader.key);
  if (own.waited > waited + LAG_SHARE) return `▼ lags: waits ${percent(own.waited)}, others ${percent(waited)}`;
  if (own.batches < LAG_RATE * pacing) return `▼ lags: ${percent(1 - own.batches / pacing)} slower than others`;
  return null;
}

function showConsumers() {
  byId("consumers").hidden = state.loaders.length < 2;
  const list = byId("consumer-list");
  const rates = new Map(state.loaders.map((one) => [one.key, ratesOf(one)]));
  const most = Math.max(1e-9, ...[...rates.values()].map((one) => one.samples));
  const known = new Map([...list.children].map((button) => [button.dataset.key, button]));
  state.loaders.forEach((loader, at) => {
    let button = known.get(loader.key);
    if (!button) {
      button = element("button", { type: "button", class: "consumer", "data-key": loader.key });
      button.addEventListener("click", () => { state.selected = loader.key; showConsumers(); showSelected(); });
    }
    known.delete(loader.key);
    if (list.children[at] !== button) list.insertBefore(button, list.children[at] || null); // which would take its focus
    fillConsumer(button, loader, rates, most);
  });
  for (const gone of known.values()) gone.remove();
}

function fillConsumer(button, loader, rates, most) {
  const own = rates.get(loader.key);
  const lag = lagOf(loader, rates);
  button.setAttribute("aria-pressed", String(loader.key === state.selected));
  button.toggleAttribute("data-lags", Boolean(lag));
  const who = loader.shard[1] > 1 ? `rank ${loader.shard[0]} of ${loader.shard[1]}` : `process ${loader.process.pid}`;
  const bar = (name, share) => element("span", { class: "meter", style: `--tone: var(--${name})`, "aria-hidden": "true" }, element("span", { style: `width: ${Math.min(100, 100 * share).toFixed(1)}%` }));
  button.replaceChildren(
    element("span", { class: "who" }, who, loader.phase === "running" ? "" : ` (${loader.phase})`),
    element("span", { class: "what muted" }, loader.title),
    element("span", { class: "pair" }, bar("step", own.samples / most), element("span", {}, `${count(own.samples)} samples/s`)),
    element("span", { class: "pair" }, bar("wait", own.waited), element("span", {}, `waits ${percent(own.waited)}`)),
    ...(lag ? [element("span", { class: "badge" }, lag)] : []));
}

function showSelected() {
  const loader = state.loaders.find((one) => one.key === state.selected);
  byId("detail").hidden = !loader;
  byId("nothing").hidden = Boolean(loader);
  if (!loader) {
    setText(byId("nothing"), state.over ? "The loaders were closed, and this page with them." : "No loader is running with watch=True. This page waits for one.");
    return;
  }
  const rates = ratesOf(loader);
  const points = paceOf(loader);
  document.title = `Stoker: ${loader.title}`;
  setText(byId("where"), loader.process.host);
  setText(byId("title"), `${named(loader)}, ${state.over ? "ended" : loader.phase}`);
  const [sentence, ...more] = loader.verdict.sentence.split(/(?<=\.)\s+/);
  setText(byId("sentence"), sentence);
  setText(byId("more"), more.join(" "));
  showFigures(loader, rates);
  showFlow(loader, rates, state.live && !state.paused && !state.over && rates.batches > 0);
  showPace(points.seconds, points.samples, points.waited);
  showTimeline(loader);
  showSpread(loader);
  showWorkers(loader);
  showSlowest(loader);
  showFacts(loader);
  showEvents();
}

function showEvents() {
  byId("events-section").hidden = state.events.length === 0;
  const list = byId("events");
  if (list.dataset.newest === state.events[0]) return; // else a screen reader would read it again
  list.dataset.newest = state.events[0] || "";
  list.replaceChildren(...state.events.map((text) => element("li", {}, text)));
}

function turnPause() {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
  setText(byId("pause"), state.paused ? "Continue" : "Pause");
  if (byId("status").dataset.kind === "live") setText(byId("status"), state.paused ? "Paused" : "Live");
  showSelected();
}

function turnTheme() {
  const themes = ["auto", "light", "dark"];
  const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % themes.length];
  document.documentElement.dataset.theme = next;
  setText(byId("theme"), `Theme: ${next}`);
  recolour();
}

function recolour() {
  redrawPace();
  showSelected();
}

begin();

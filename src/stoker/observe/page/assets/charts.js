// The pace over time (uPlot), and how long batches take at each station (own drawing: bars over a logarithmic axis).

const pace = { chart: null, width: 0 };

function showPace(seconds, samples, waited) {
  byId("pace-section").hidden = seconds.length < 2;
  if (seconds.length < 2) return;
  const data = [seconds, samples, waited.map((share) => 100 * share)];
  const width = byId("pace").clientWidth;
  if (!pace.chart || pace.width !== width) {
    if (pace.chart) pace.chart.destroy();
    pace.chart = new uPlot(paceOptions(width), data, byId("pace"));
    pace.width = width;
  } else {
    pace.chart.setData(data);
  }
  const newest = samples[samples.length - 1];
  const caption = `Samples a second (line, left) and share of time that training waited (filled, right), over ${duration(seconds[seconds.length - 1] - seconds[0])}.`;
  setText(byId("pace-caption"), caption);
  byId("pace").setAttribute("aria-label", `${caption} Now ${count(newest)} samples a second.`);
}

function paceOptions(width) {
  const narrow = width < 520;
  const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width,
    height: narrow ? 150 : 190,
    legend: { show: false },
    cursor: { show: false },
    padding: [10, 4, 0, 0],
    scales: { x: { time: false }, samples: { range: (_, __, top) => [0, (top || 1) * 1.1] }, waited: { range: [0, 100] } },
    axes: [
      { ...axis, grid: { show: false }, size: 30, space: narrow ? 90 : 70, values: (_, ticks) => ticks.map((at) => (at === 0 ? "now" : `−${duration(-at)}`)) },
      { ...axis, scale: "samples", size: 54, space: 36, values: (_, ticks) => ticks.map(count) },
      { ...axis, scale: "waited", side: 1, size: 48, space: 36, grid: { show: false }, values: (_, ticks) => ticks.map((at) => `${at} %`) },
    ],
    series: [
      {},
      { scale: "samples", stroke: colour("step"), width: 2, points: { show: false } },
      { scale: "waited", stroke: colour("wait"), fill: colour("wait-soft"), width: 1, points: { show: false } },
    ],
  };
}

function redrawPace() {
  if (pace.chart) pace.chart.destroy();
  pace.chart = null;
}

function showSpread(loader) {
  const { stations } = loader.stats;
  const names = Object.keys(STATIONS).filter((name) => stations[name] && stations[name].spent.count > 0);
  byId("spread-section").hidden = names.length === 0;
  const ends = names.flatMap((name) => stations[name].spent.counts.map(([upper]) => upper));
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  byId("spread").replaceChildren(...names.map((name) => spreadCard(name, stations[name].spent, low, high)));
}

const BARS = { width: 240, height: 56, count: 60 };

function spreadCard(name, spent, low, high) {
  const place = (seconds) => {
    const share = high > low ? Math.log(Math.max(seconds, low) / low) / Math.log(high / low) : 0.5;
    return Math.min(Math.max(share, 0), 1) * (BARS.width - 4) + 2;
  };
  const bins = new Array(BARS.count).fill(0);
  for (const [upper, number] of spent.counts) bins[Math.min(BARS.count - 1, Math.floor((place(upper) / BARS.width) * BARS.count))] += number;
  const most = Math.max(...bins);
  const step = BARS.width / BARS.count;
  const bars = bins.map((number, at) => {
    const height = number ? Math.max(1.5, (number / most) * (BARS.height - 4)) : 0;
    return drawn("rect", { x: (at * step).toFixed(2), y: (BARS.height - height).toFixed(2), width: (step - 0.6).toFixed(2), height: height.toFixed(2), class: "bar" });
  }).filter((bar) => bar.getAttribute("height") !== "0.00");
  const marks = [["p50", 0], ["p90", 1], ["p99", 2]].map(([which, at]) =>
    drawn("line", { x1: place(spent[which]).toFixed(2), x2: place(spent[which]).toFixed(2), y1: 0, y2: BARS.height, class: `mark m${at}` }));
  const told = `p50 ${duration(spent.p50)}, p90 ${duration(spent.p90)}, p99 ${duration(spent.p99)}, longest ${duration(spent.largest)}`;
  return element("figure", { class: "card distribution", style: `--tone: var(--${name})`, "data-station": name },
    element("figcaption", {}, element("strong", {}, STATIONS[name].label), element("span", { class: "muted" }, ` ${count(spent.count)} times`)),
    drawn("svg", { viewBox: `0 0 ${BARS.width} ${BARS.height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${STATIONS[name].label}: ${told}` },
      drawn("line", { x1: 0, x2: BARS.width, y1: BARS.height - 0.5, y2: BARS.height - 0.5, class: "ground" }), ...bars, ...marks),
    element("dl", { class: "percentiles" }, ...["p50", "p90", "p99", "largest"].map((which) =>
      element("div", {}, element("dt", {}, which === "largest" ? "max" : which), element("dd", {}, duration(spent[which]))))));
}

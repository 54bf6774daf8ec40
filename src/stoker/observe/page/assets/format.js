"use strict";
// Numbers and texts. All that comes from outside gets onto the page as text, never as HTML.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function count(number) {
  if (!Number.isFinite(number)) return "–";
  const magnitude = Math.abs(number);
  if (magnitude >= 1e9) return (number / 1e9).toFixed(1) + " G";
  if (magnitude >= 1e6) return (number / 1e6).toFixed(1) + " M";
  if (magnitude >= 100 || Number.isInteger(number)) return Math.round(number).toLocaleString("en-US");
  return number.toFixed(magnitude >= 10 ? 1 : 2);
}

function bytes(number) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (number >= 999.5 && at < units.length - 1) {
    number /= 1000;
    at += 1;
  }
  return `${at === 0 || number >= 100 ? Math.round(number) : number.toFixed(1)} ${units[at]}`;
}

function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const hundredths = 100 * share;
  return `${hundredths > 0 && hundredths < 1 ? "<1" : Math.round(hundredths)} %`;
}

function duration(seconds) {
  if (!seconds) return "0 s";
  const sized = (number) => (number >= 100 ? number.toFixed(0) : number >= 10 ? number.toFixed(1) : number.toFixed(2));
  if (seconds >= 5400) return `${(seconds / 3600).toFixed(1)} h`;
  if (seconds >= 100) return `${(seconds / 60).toFixed(1)} min`;
  if (seconds >= 1) return `${sized(seconds)} s`;
  if (seconds >= 1e-3) return `${sized(seconds * 1e3)} ms`;
  return `${sized(seconds * 1e6)} µs`;
}

const plural = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;

// The stations, in the order in which a batch passes them.
const STATIONS = {
  idle: { label: "idle", about: "a worker has nothing to do" },
  fetch: { label: "dataset[i]", about: "samples are made, or come out of a cache" },
  write: { label: "collate", about: "samples become a batch, in shared memory" },
  transfer: { label: "transfer", about: "the batch comes from another machine" },
  ready: { label: "ready", about: "the batch is done and waits for its turn" },
  move: { label: "to / device", about: "the batch becomes the framework's, on its device" },
  wait: { label: "waiting", about: "training waits for data" },
  step: { label: "training", about: "what you do between two batches" },
};

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const spentAt = (stats, name) => (stats.stations[name] ? stats.stations[name].spent : { count: 0, total: 0, counts: [] });

// Timeline of the epochs: a column for each, its height the seconds of its phases; the arrow keys select an epoch.

import { ask } from "./api.js";
import { el, svg } from "./dom.js";
import { bytes, clock, count, plural, seconds, time } from "./format.js";

const PHASES = [["fetch", "fetch_s"], ["align", "align_s"], ["spark", "spark_s"], ["collect", "collect_s"]];
const SAID = {
  fetch: "from the start of the epoch to its barrier",
  align: "until every fetch actor had passed the barrier",
  spark: "until every view was written",
  collect: "from then until every actor had reported",
};
const COLUMN = 12, HEIGHT = 150, AXIS = 58, PAGE = 200, MOST = 5000;

const total = (epoch) => PHASES.reduce((sum, [, field]) => sum + (epoch[field] ?? 0), 0);

export class EpochTimeline {
  constructor(place) {
    this.epochs = [];
    this.isLoaded = false;
    this.inFlight = [];
    this.earlier = 0;
    this.selected = null; // the epoch; null follows the last
    this.end = null; // the column on the right; null follows the last
    this.chart = el("div", { class: "chart", role: "listbox", tabindex: "0", "aria-label": "Epochs, the newest last", "aria-orientation": "horizontal" });
    this.legend = el("p", { class: "legend" }, PHASES.map(([name]) => el("span", { title: SAID[name] }, el("i", { class: `phase ${name}` }), name)));
    this.flying = el("p", { class: "hint", "aria-live": "off" });
    this.detail = el("div", { class: "detail", "aria-live": "polite" });
    this.hint = el("p", { class: "hint" });
    place.append(this.legend, this.chart, this.hint, this.flying, this.detail);
    this.chart.addEventListener("keydown", (event) => this.key(event));
    this.chart.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(place);
  }

  /** Loads the epochs that were committed since the last update. */
  async update() {
    const last = this.epochs.at(-1);
    const report = await ask("epochs", { limit: PAGE, after: last?.epoch });
    if (last && report.epochs.length === PAGE) this.epochs = []; // more than a page is new: start again
    if (!this.epochs.length) this.earlier = report.earlier;
    this.epochs = [...this.epochs, ...report.epochs].slice(-MOST);
    this.isLoaded = true;
    this.draw();
  }

  /** True if the timeline has this epoch or a later one; true without an epoch. */
  has(epoch) {
    const last = this.epochs.at(-1);
    return !epoch || (last !== undefined && BigInt(last.epoch) >= BigInt(epoch));
  }

  showInFlight({ runs, status }) {
    this.inFlight = runs && status ? status.in_flight : [];
    const said = this.inFlight.map((each) => `${clock(new Date(Number(BigInt(each.epoch) >> 16n)))} ${each.phase} for ${seconds(each.seconds)}`);
    const text = said.length ? `In flight: ${said.join("; ")}` : "";
    if (this.flying.textContent !== text) this.flying.textContent = text;
  }

  async key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    if (!Object.hasOwn(steps, event.key) || !this.epochs.length) return;
    event.preventDefault();
    const to = this.position() + steps[event.key];
    if (to < 0 && this.earlier > 0) return this.more(to);
    this.select(Math.max(0, Math.min(this.epochs.length - 1, to)));
  }

  click(event) {
    const option = event.target.closest("[data-at]");
    if (option) this.select(Number(option.dataset.at));
  }

  /** Loads a page of earlier epochs, and selects the epoch at position `to`, counted from the first loaded one. */
  async more(to) {
    const report = await ask("epochs", { limit: PAGE, before: this.epochs[0].epoch });
    this.epochs = [...report.epochs, ...this.epochs];
    this.earlier = report.earlier;
    this.select(Math.max(0, Math.min(this.epochs.length - 1, Number.isFinite(to) ? report.epochs.length + to : 0)));
  }

  position() {
    const at = this.epochs.findIndex((each) => each.epoch === this.selected);
    return at < 0 ? this.epochs.length - 1 : at;
  }

  select(at) {
    const isLast = at === this.epochs.length - 1;
    this.selected = isLast ? null : this.epochs[at].epoch;
    const room = this.room(), end = this.end ?? this.epochs.length;
    if (isLast) this.end = null;
    else if (at >= end) this.end = at + 1;
    else if (at < end - room) this.end = Math.min(this.epochs.length, at + room);
    this.draw();
  }

  room() {
    return Math.max(1, Math.floor((this.chart.clientWidth - AXIS) / COLUMN));
  }

  draw() {
    const width = this.chart.clientWidth;
    if (!width) return;
    if (!this.epochs.length) {
      this.chart.replaceChildren(el("p", { class: "hint" }, this.isLoaded ? "No epoch has been committed yet." : "Loading …"));
      return;
    }
    const room = this.room(), end = Math.min(this.end ?? this.epochs.length, this.epochs.length);
    const start = Math.max(0, end - room), shown = this.epochs.slice(start, end);
    const longest = Math.max(0.001, ...shown.map(total)), chosen = this.position();
    const picture = svg("svg", { width, height: HEIGHT + 26, viewBox: `0 0 ${width} ${HEIGHT + 26}`, role: "presentation" });
    for (const part of [0, 0.5, 1]) {
      const y = 6 + (HEIGHT - 6) * (1 - part);
      picture.append(svg("line", { x1: AXIS, x2: width, y1: y, y2: y, class: "grid" }), svg("text", { x: AXIS - 6, y: y + 4, "text-anchor": "end", class: "waits" }, part ? seconds(longest * part) : "0"));
    }
    shown.forEach((epoch, index) => picture.append(this.column(epoch, start + index, AXIS + index * COLUMN, longest, start + index === chosen)));
    const marks = [0, Math.floor((shown.length - 1) / 2), shown.length - 1].filter((at, index, all) => all.indexOf(at) === index && (at === 0 || at * COLUMN > 76 * index));
    for (const at of marks) {
      const x = AXIS + at * COLUMN + COLUMN / 2, isRight = x > width - 40;
      picture.append(svg("text", { x: at === 0 ? AXIS : isRight ? width - 2 : x, y: HEIGHT + 18, "text-anchor": at === 0 ? "start" : isRight ? "end" : "middle", class: "waits" }, clock(shown[at].committed_at)));
    }
    this.chart.replaceChildren(picture);
    this.chart.setAttribute("aria-activedescendant", `epoch-${this.epochs[chosen].epoch}`);
    const before = start + this.earlier, after = this.epochs.length - end;
    this.hint.textContent = [`${plural(shown.length, "epoch")} shown`, before ? `${count(before)} before` : "", after ? `${count(after)} after` : "", "select with the arrow keys, Page Up, Page Down, Home and End"].filter(Boolean).join("; ");
    this.describe(this.epochs[chosen]);
  }

  column(epoch, at, x, longest, isChosen) {
    let y = HEIGHT;
    const bars = PHASES.map(([name, field]) => {
      const height = ((HEIGHT - 6) * (epoch[field] ?? 0)) / longest;
      y -= height;
      return svg("rect", { x: x + 1.5, y, width: COLUMN - 3, height, class: `phase ${name}` });
    });
    const label = `${time(epoch.committed_at)}: ${seconds(total(epoch))}, ${plural(epoch.files, "file")}, ${plural(epoch.rows, "row")}`;
    return svg("g", { role: "option", id: `epoch-${epoch.epoch}`, "data-at": at, "aria-selected": String(isChosen), "aria-label": label, class: isChosen ? "column chosen" : "column" },
      svg("title", {}, label), svg("rect", { x, y: 0, width: COLUMN, height: HEIGHT + 4, class: "back" }), bars);
  }

  describe(epoch) {
    if (this.described === epoch.epoch) return;
    this.described = epoch.epoch;
    const sum = total(epoch) || 1;
    const facts = [
      ["epoch", el("code", {}, epoch.epoch)], ["committed", time(epoch.committed_at)], ["files", count(epoch.files)], ["rows", count(epoch.rows)],
      ["read", bytes(epoch.bytes)], ["requests", count(epoch.requests)], ["views changed", epoch.changed.length ? epoch.changed.join(", ") : "none"],
    ];
    const bars = PHASES.map(([name, field]) => {
      const track = svg("svg", { class: "share", width: "100%", height: 10, "aria-hidden": "true" });
      const before = PHASES.slice(0, PHASES.findIndex(([each]) => each === name)).reduce((part, [, each]) => part + (epoch[each] ?? 0), 0);
      track.append(svg("rect", { x: 0, width: "100%", height: 10, rx: 3, class: "track" }), svg("rect", { x: `${(100 * before) / sum}%`, width: `${Math.max(0.4, (100 * (epoch[field] ?? 0)) / sum)}%`, height: 10, rx: 2, class: `phase ${name}` }));
      return el("div", { class: "waterfall" }, el("span", { title: SAID[name] }, name), track, el("span", { class: "number" }, seconds(epoch[field])));
    });
    this.detail.replaceChildren(el("dl", { class: "numbers" }, facts.map(([title, value]) => el("div", {}, el("dt", {}, title), el("dd", {}, value)))), el("div", {}, bars));
  }
}

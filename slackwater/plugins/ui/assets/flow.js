// Picture of the flow: the actors, the rate of each edge, and the waiting items with their limit.

import { el, svg, table } from "./dom.js";
import { bytes, compact, count, plural, seconds } from "./format.js";

const NAMES = ["list", "dispatcher", "fetch", "merger", "materializer", "views"];
const TITLES = { list: "List", dispatcher: "Dispatcher", fetch: "Fetch", merger: "Merger", materializer: "Materializer", views: "Views" };
const WIDE = 980;
const BAR = 64;

const amount = (unit, value) => (unit === "bytes" ? bytes(value) : `${compact(value)} ${unit}`);

export class Flow {
  constructor(place) {
    this.place = place;
    this.drawn = null;
    new ResizeObserver(() => this.draw()).observe(place);
  }

  /** `status` is null without a run. */
  show(status, report) {
    this.status = status;
    this.report = report;
    this.draw();
  }

  draw() {
    if (!this.report) return;
    const inside = this.place.clientWidth - 32;
    const key = JSON.stringify([inside, this.status, this.report.state]);
    if (inside <= 0 || key === this.drawn) return;
    this.drawn = key;
    const isOpen = this.place.querySelector("details")?.open ?? false;
    const edges = this.edges();
    const picture = inside >= WIDE ? this.wide(inside, edges) : this.narrow(inside, edges);
    const columns = [
      { title: "from", cell: (edge) => edge.sender },
      { title: "to", cell: (edge) => edge.receiver },
      { title: "each second", numeric: true, cell: (edge) => amount(edge.unit, edge.per_s) },
      { title: "waiting", numeric: true, cell: (edge) => amount(edge.unit, edge.waiting) },
      { title: "limit", numeric: true, cell: (edge) => (edge.limit === null ? "–" : amount(edge.unit, edge.limit)) },
      { title: "", cell: (edge) => (edge.is_full ? "full: the sender waits" : "") },
    ];
    const focused = this.place.contains(document.activeElement) && document.activeElement.tagName === "SUMMARY";
    const details = el("details", { open: isOpen }, el("summary", {}, "The same as a table"), table("Edges of the flow", columns, edges));
    this.place.replaceChildren(picture, this.status ? details : "");
    if (focused) details.querySelector("summary").focus();
  }

  edges() {
    if (this.status?.edges.length) return this.status.edges;
    return NAMES.slice(1).map((receiver, at) => ({ sender: NAMES[at], receiver, unit: "", per_s: 0, waiting: 0, limit: null, is_full: false }));
  }

  /** The line below the name of an actor. */
  under(name) {
    const status = this.status;
    if (!status) return "";
    const says = {
      list: () => plural(Object.keys(status.sources).length, "source"),
      dispatcher: () => "by path",
      fetch: () => `× ${count(this.report.owner.fetchers || status.fetchers || 1)}`,
      merger: () => "aligns barriers",
      materializer: () => `Spark: ${status.spark}`,
      views: () => plural(Object.keys(status.views).length, "view"),
    };
    return says[name]();
  }

  coordinator() {
    const status = this.status;
    if (!status) return "not running";
    const flying = status.in_flight.length;
    return flying ? `${plural(flying, "epoch")} in flight: ${status.in_flight[0].phase}, ${seconds(status.in_flight[0].seconds)}` : "idle: nothing to commit";
  }

  frame(width, height) {
    const full = this.edges().filter((edge) => edge.is_full).map((edge) => `${edge.sender} waits for ${edge.receiver}`);
    const text = this.status ? `${this.coordinator()}. ${full.length ? full.join("; ") : "No edge is full"}.` : "Not running.";
    const title = "The flow from the buckets to the views";
    return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}. ${text}`, class: this.status ? "flow" : "flow idle" },
      svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z", class: "tip" }))));
  }

  node(x, y, width, height, title, under, kind = "") {
    return svg("g", { class: `node ${kind}` },
      svg("rect", { x, y, width, height, rx: 10 }),
      svg("text", { x: x + width / 2, y: y + height / 2 + (under ? -4 : 5), class: "name" }, title),
      svg("text", { x: x + width / 2, y: y + height / 2 + 14, class: "under" }, under));
  }

  /** The rate of an edge, and the bar of its waiting items: `x, y` is the middle of the edge. */
  label(edge, x, y, anchor) {
    if (!this.status) return "";
    const part = edge.limit ? Math.min(1, edge.waiting / edge.limit) : 0;
    const left = anchor === "middle" ? x - BAR / 2 : x;
    const waits = edge.is_full ? "full" : edge.limit === null ? (edge.waiting ? `${compact(edge.waiting)} wait` : "") : `${Math.round(part * 100)} %`;
    return svg("g", { class: edge.is_full ? "load full" : "load" },
      svg("title", {}, `${edge.sender} → ${edge.receiver}: ${amount(edge.unit, edge.per_s)} each second; ${amount(edge.unit, edge.waiting)} waiting${edge.limit === null ? "" : ` of at most ${amount(edge.unit, edge.limit)}`}`),
      svg("text", { x, y: y - 10, "text-anchor": anchor, class: "rate" }, `${amount(edge.unit, edge.per_s)}/s`),
      edge.limit === null ? "" : [
        svg("rect", { x: left, y: y + 10, width: BAR, height: 6, rx: 3, class: "track" }),
        svg("rect", { x: left, y: y + 10, width: part * BAR, height: 6, rx: 3, class: "part" }),
      ],
      svg("text", { x, y: y + 31, "text-anchor": anchor, class: "waits" }, waits));
  }

  line(edge, x1, y1, x2, y2) {
    return svg("line", { x1, y1, x2, y2, class: edge.per_s > 0 ? "edge moving" : "edge", "marker-end": "url(#tip)" });
  }

  wide(width, edges) {
    const node = 94, high = 56, gap = (width - node * NAMES.length) / (NAMES.length - 1), top = 96;
    const picture = this.frame(width, top + high + 34);
    const at = (index) => index * (node + gap);
    const last = at(4) + node;
    picture.append(this.node(0, 4, last, 44, "Coordinator", this.coordinator(), "coordinator"));
    for (const index of [0, 1, 2, 3, 4]) {
      picture.append(svg("line", { x1: at(index) + node / 2, y1: 48, x2: at(index) + node / 2, y2: top - 2, class: "barrier", "marker-end": index === 0 ? "url(#tip)" : null }));
    }
    picture.append(svg("text", { x: node / 2 + 10, y: 76, class: "waits", "text-anchor": "start" }, "barriers"));
    NAMES.forEach((name, index) => picture.append(this.node(at(index), top, node, high, TITLES[name], this.under(name))));
    edges.forEach((edge, index) => {
      const start = at(index) + node + 3, end = at(index + 1) - 3, y = top + high / 2;
      picture.append(this.line(edge, start, y, end, y), this.label(edge, (start + end) / 2, y, "middle"));
    });
    return picture;
  }

  narrow(width, edges) {
    const node = Math.min(width, 260), high = 50, gap = 62, top = 64;
    const picture = this.frame(width, top + NAMES.length * high + (NAMES.length - 1) * gap + 6);
    const at = (index) => top + index * (high + gap), middle = 40;
    picture.append(this.node(0, 4, node, 44, "Coordinator", this.coordinator(), "coordinator"));
    picture.append(svg("line", { x1: middle, y1: 48, x2: middle, y2: top - 2, class: "barrier", "marker-end": "url(#tip)" }));
    NAMES.forEach((name, index) => picture.append(this.node(0, at(index), node, high, TITLES[name], this.under(name))));
    edges.forEach((edge, index) => {
      const start = at(index) + high + 3, end = at(index + 1) - 3;
      picture.append(this.line(edge, middle, start, middle, end), this.label(edge, middle + 18, (start + end) / 2 - 4, "start"));
    });
    return picture;
  }
}

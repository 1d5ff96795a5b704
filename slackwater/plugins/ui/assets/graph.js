// The graph of sources and views, from the left to the right: what reads what, with the class and the rows of each view.

import { svg } from "./dom.js";
import { plural } from "./format.js";

const WIDE = 168, HIGH = 48, GAP = 56, ROOM = 14;
const LONGEST = 22;

const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

/** Name → column: a view is right of all that it reads. */
function columns(views) {
  const reads = new Map(views.map((view) => [view.name, view.reads]));
  const found = new Map();
  const column = (name) => {
    if (!found.has(name)) found.set(name, reads.has(name) ? 1 + Math.max(0, ...reads.get(name).map(column)) : 0);
    return found.get(name);
  };
  views.forEach((view) => column(view.name));
  return found;
}

/** The picture, if a view reads another one; else null. */
export function graph(views) {
  const names = new Set(views.map((view) => view.name));
  if (!views.some((view) => view.reads.some((each) => names.has(each)))) return null;
  const known = new Map(views.map((view) => [view.name, view]));
  const taken = [], places = new Map();
  for (const [name, column] of columns(views)) {
    taken[column] = (taken[column] ?? 0) + 1;
    places.set(name, { x: 1 + column * (WIDE + GAP), y: 1 + (taken[column] - 1) * (HIGH + ROOM) });
  }
  const width = taken.length * (WIDE + GAP) - GAP + 2, height = Math.max(...taken) * (HIGH + ROOM) - ROOM + 2;
  const lines = views.flatMap((view) => view.reads.map((name) => {
    const from = places.get(name), to = places.get(view.name);
    const x1 = from.x + WIDE, y1 = from.y + HIGH / 2, x2 = to.x - 3, y2 = to.y + HIGH / 2, middle = (x1 + x2) / 2;
    return svg("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, class: "reads", "marker-end": "url(#read)" });
  }));
  const boxes = [...places].map(([name, { x, y }]) => {
    const view = known.get(name);
    const under = view === undefined ? "source" : `${view.class}, ${plural(view.rows ?? 0, "row")}`;
    return svg("g", { class: "node", "data-node": name },
      svg("title", {}, name),
      svg("rect", { x, y, width: WIDE, height: HIGH, rx: 10 }),
      svg("text", { x: x + WIDE / 2, y: y + HIGH / 2 - 4, class: "name" }, short(name)),
      svg("text", { x: x + WIDE / 2, y: y + HIGH / 2 + 14, class: "under" }, under));
  });
  const text = views.map((view) => `${view.name} reads ${view.reads.join(" and ")}`).join("; ");
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `The graph of views: ${text}`, class: "flow" },
    svg("defs", {}, svg("marker", { id: "read", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z", class: "tip" }))),
    lines, boxes);
}

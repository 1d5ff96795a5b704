// DOM elements from text: no text of a root is ever parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

// Control characters, line separators, and marks of the writing direction: as `actors/telemetry/text.py`.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const NAMED = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** The text with every control character as an escape, except the characters in `keep`. */
export function visible(text, keep = "") {
  return String(text).replace(INVISIBLE, (found) => {
    if (keep.includes(found)) return found;
    const code = found.codePointAt(0);
    return NAMED[found] ?? (code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`);
  });
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(child, element.tagName === "PRE" ? "\n\t" : "")));
  }
  return element;
}

/** An element: its name, its attributes (`onclick: f` listens), and its children, which are elements or text. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

/** A table that scrolls sideways if it is too wide.  Columns: `{title, cell(row), numeric}`; cells are elements or text. */
export function table(caption, columns, rows) {
  const head = el("tr", {}, columns.map((each) => el("th", { scope: "col", class: each.numeric ? "number" : null }, each.title)));
  const body = rows.map((row) =>
    el("tr", {}, columns.map((each) => el("td", { class: each.numeric ? "number" : each.class }, each.cell(row)))),
  );
  const found = el("table", {}, el("caption", { class: "hidden" }, caption), el("thead", {}, head), el("tbody", {}, body));
  return el("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" }, found);
}

export function badge(text, kind = text) {
  return el("span", { class: "badge", "data-kind": kind }, text);
}

// Views: class, lag, rows, the error of a failed one, and on demand a sample.

import { ask } from "./api.js";
import { badge, byId, el, table } from "./dom.js";
import { bytes, count, epochTime, plural, quantity, seconds, time } from "./format.js";
import { graph } from "./graph.js";

const SAMPLE = 20;

/** The last epoch of a view that gets no more rows. */
function staleness(view) {
  const epoch = view.reflects_epoch;
  return epoch === null ? "it has no rows" : `it is stale since ${time(epochTime(epoch))}, epoch ${epoch}`;
}

/** What an epoch has cost a view, as facts. */
function costs(view) {
  if (view.cost === null) return [];
  const { cost, epochs, seconds: took } = view.cost;
  const rows = `${count(cost.given)} into Spark, ${count(cost.found)} looked up, ${count(cost.written)} written (${bytes(cost.written_bytes)})`;
  return [["work of an epoch", `${seconds(took)}, the median of ${epochs}`], ["its rows", rows]];
}

/** The windows of a view that shows a group when its window closes, and the described numbers of a view, as facts. */
function windows(view, live, columns) {
  const known = columns.map(({ name, title, unit }) => [title, view[name] ?? live?.[name] ?? null, unit]);
  const numbers = known.filter(([, value]) => value !== null).map(([title, value, unit]) => [title, quantity(value, unit)]);
  if (view.late_rows === null || !view.definition.endsWith("-- emit on close")) return numbers;
  return [["windows closed until", view.closed_until === null ? "none yet" : time(view.closed_until)], ...numbers];
}

/** The expectations of a view, with the rows that violate them, as facts. */
function expectations(view) {
  const rows = (each) => `${plural(each.rows, "row")} violate${each.accepted ? `, ${count(each.accepted)} accepted` : ""}${each.error === null ? "" : `: ${each.error}`}`;
  return view.expectations.map((each) => [`expected: ${each.expectation}`, rows(each)]);
}

const isHeld = (view) => view.expectations.some((each) => each.is_held);

/** The rows that views keep for their joins, windows and groups within. */
function kept(internal) {
  if (!internal.length) return "";
  const columns = [
    { title: "internal view", cell: (each) => each.names.join(", ") },
    { title: "used by", cell: (each) => each.used_by.join(", ") },
    { title: "reads", cell: (each) => each.reads.join(", ") },
    { title: "rows", numeric: true, cell: (each) => count(each.rows) },
    { title: "size", numeric: true, cell: (each) => bytes(each.bytes) },
    { title: "rows in memory", numeric: true, cell: (each) => count(each.rows_in_memory) },
    { title: "memory", numeric: true, cell: (each) => bytes(each.bytes_in_memory) },
  ];
  return el("div", { class: "kept" },
    el("p", { class: "hint" }, "Kept for joins, windows and groups within:"),
    table("Internal views", columns, internal));
}

/** The tables that follow views beside the run; a failed one has its reason in a line of its own. */
function published(publications, runs) {
  if (!publications.length) return "";
  const lag = (each) => (each.behind_epochs ? `${plural(each.behind_epochs, "epoch")}, ${seconds(each.behind_s)}` : "up to date");
  const columns = [
    { title: "view", cell: (each) => el("strong", {}, each.view) },
    { title: "table", class: "path", cell: (each) => el("code", { class: "small" }, each.table) },
    { title: "behind", cell: (each) => [lag(each), each.error === null ? "" : badge("failed")] },
    { title: "commits", numeric: true, cell: (each) => count(each.commits) },
    { title: "rows written", numeric: true, cell: (each) => count(each.rows) },
  ];
  const failed = publications.filter((each) => each.error !== null).map((each) =>
    el("p", { class: "bad", "data-publication": each.view }, `${each.view} to ${each.table}: ${each.error}. ${runs ? "It is tried again." : "The next run goes on."}`));
  return el("div", { class: "kept" }, el("p", { class: "hint" }, runs ? "Published beside the run:" : "Published beside the last run, by its last word:"),
    table("Publications", columns, publications), failed);
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

export class Views {
  constructor() {
    this.live = {};
    this.columns = [];
    this.publications = [];
    this.runs = false;
    this.open = new Set();
  }

  showLive({ runs, status, columns }) {
    this.live = runs && status ? status.views : {};
    this.columns = columns.views;
    this.publications = status?.publications ?? [];
    this.runs = runs;
  }

  /** Shows the views; `root` is the root as an argument of a command. */
  show(report, root) {
    const key = JSON.stringify([report.views, report.backfills, report.internal_views]);
    const lags = JSON.stringify([report.views.map((view) => this.behind(view)), this.publications, this.runs]);
    if (key + lags === this.drawn) return;
    this.drawn = key + lags;
    const rebuilt = new Set(report.backfills.map((view) => view.name));
    const cards = report.views.map((view) => this.card(view, report.epoch, rebuilt.has(view.name)));
    const warnings = report.views.filter((view) => view.error !== null).map((view) =>
      el("p", { class: "bad", "data-failed": view.name }, `${view.name} failed: ${view.error}. ${capital(staleness(view))}. Correct it or its files, and rebuild it with `,
        el("code", {}, `slackwater retry ${root} --view ${view.name}`)));
    const shown = new Set(report.views.map((view) => view.name));
    const late = report.backfills.map((view) =>
      el("li", {}, el("strong", {}, view.name), ` (${view.class ?? "?"}) ${shown.has(view.name) ? "is rebuilt beside the rows that it shows" : "catches up; it is readable after that"}`, view.fraction === null ? "" : `: ${Math.floor(view.fraction * 100)} %`));
    const focused = document.activeElement?.closest?.("#view-list [data-view]")?.dataset.view;
    const picture = graph(report.views);
    byId("view-list").replaceChildren(
      ...warnings,
      picture === null ? "" : el("div", { class: "scroll graph", role: "region", "aria-label": "The graph of views", tabindex: "0" }, picture),
      ...(cards.length ? cards : [el("p", { class: "hint" }, this.runs ? "The run has not committed a view yet." : "No run has committed a view yet.")]),
      late.length ? el("ul", {}, late) : "",
      published(this.publications, this.runs),
      kept(report.internal_views));
    if (focused !== undefined) cards.find((card) => card.dataset.view === focused)?.querySelector("summary").focus();
  }

  behind(view) {
    return Object.hasOwn(this.live, view.name) ? this.live[view.name].behind_s : view.behind_s;
  }

  lag(view, isRebuilt) {
    if (view.error !== null) return staleness(view);
    if (view.stopped) return isRebuilt ? `rebuilding; until then ${staleness(view)}` : "stopped: no longer declared";
    const behind = this.behind(view);
    return behind === null ? "not committed yet" : behind > 0 ? `${seconds(behind)} behind` : "up to date";
  }

  card(view, epoch, isRebuilt) {
    const place = el("div", {}, el("p", { class: "hint" }, "Reading…"));
    const lag = this.lag(view, isRebuilt);
    const facts = [["class", badge(view.class)], ["rows", count(view.rows)], ["lag", lag], ["reads", view.reads.join(", ") || "–"], ["key", view.key.join(", ") || "none"], ["version", count(view.version)], ...windows(view, this.live[view.name], this.columns), ...expectations(view), ...costs(view)];
    const details = el("details", { class: "panel view", "data-view": view.name, open: this.open.has(view.name) },
      el("summary", {}, el("strong", {}, view.name), badge(view.class), view.error === null ? "" : badge("failed"), isHeld(view) ? badge("held") : "", el("span", { class: "hint" }, `${plural(view.rows ?? 0, "row")}, ${lag}`)),
      el("dl", { class: "numbers" }, facts.map(([title, value]) => el("div", {}, el("dt", {}, title), el("dd", {}, value)))),
      el("pre", { tabindex: "0", "aria-label": `Definition of ${view.name}` }, view.definition),
      view.path ? el("p", { class: "small" }, "Any Lance reader opens ", el("code", {}, view.path), " at its tag ", el("code", {}, "committed")) : "",
      view.missing.length ? el("p", { class: "bad" }, `${plural(view.missing.length, "file")} not in the view, gone before its backfill read them: ${view.missing.slice(0, 10).join(", ")}`) : "",
      place);
    details.addEventListener("toggle", () => {
      if (details.open) this.open.add(view.name);
      else this.open.delete(view.name);
      if (details.open) this.sample(view, epoch, place);
    });
    return details;
  }

  async sample(view, epoch, place) {
    if (view.version === null) return place.replaceChildren(el("p", { class: "hint" }, "It has no rows yet."));
    try {
      const report = await ask("sample", { view: view.name, limit: SAMPLE });
      const isNumber = report.columns.map((_, at) => report.sample.some((row) => typeof row[at] === "number"));
      const columns = report.columns.map((column, at) => ({
        title: [column.name, el("div", { class: "type" }, column.type)], numeric: isNumber[at],
        cell: (row) => (row[at] === null ? el("span", { class: "null" }, "null") : typeof row[at] === "number" ? row[at].toLocaleString("en-GB", { maximumFractionDigits: 6 }) : String(row[at])),
      }));
      place.replaceChildren(
        el("p", { class: "hint" }, `${count(report.sample.length)} of ${plural(report.rows, "row")}${report.left_out ? `; ${plural(report.left_out, "column")} more` : ""}`),
        table(`Rows of ${view.name}`, columns, report.sample));
    } catch (error) {
      place.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
    }
  }
}

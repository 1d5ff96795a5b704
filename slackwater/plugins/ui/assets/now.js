// Present state: the run, its numbers, the picture of the flow, and the sources.

import { badge, byId, el, table } from "./dom.js";
import { Flow } from "./flow.js";
import { bytes, compact, count, plural, quantity, seconds, time } from "./format.js";

const STATUSES = ["waiting", "reading", "done", "quarantined", "vanished"];
const WORDS = {
  none: "no run yet",
  silent: "no sign of life",
  gone: "process is gone",
  ended: "not running",
};

const FINISHED = ["done", "quarantined", "vanished"];

/** The files that the run has listed and that no committed epoch has as finished. */
function inFlight({ store, run }) {
  const listed = STATUSES.reduce((total, status) => total + run[status], 0);
  return Math.max(0, listed - FINISHED.reduce((total, status) => total + (store?.files[status] ?? 0), 0));
}

/** The number of a source without a run: files by status, and the rows; undefined for others. */
function stored(store, name) {
  return STATUSES.includes(name) ? store.files[name] ?? 0 : store[name];
}

export class Now {
  constructor() {
    this.flow = new Flow(byId("picture"));
    this.sources = this.report = null;
  }

  show(report) {
    this.report = report;
    const { owner, status, state, runs: isLive } = report;
    const name = owner?.pipeline ?? "Slackwater";
    document.title = `${name} – Slackwater`;
    byId("now-title").textContent = name;
    const word = isLive ? owner.phase : WORDS[state];
    if (byId("state").textContent !== word) byId("state").replaceChildren(badge(word, isLive ? owner.phase : state));
    byId("root").replaceChildren(el("code", {}, report.root));
    byId("said").replaceChildren(...this.said(report, isLive));
    byId("numbers").replaceChildren(...this.numbers(report, isLive).map(([title, value]) => el("div", {}, el("dt", {}, title), el("dd", {}, value))));
    this.flow.show(isLive ? status : null, report);
    this.drawSources();
    byId("foot").textContent = `Slackwater ${report.version}; times are in UTC`;
  }

  said({ owner, status, state, now, warnings }, isLive) {
    const warned = warnings.flatMap((warning) => [el("strong", { class: "bad" }, `Warning: ${warning}`), el("br")]);
    return [...warned, ...this.saidOfRun({ owner, status, state, now }, isLive)];
  }

  saidOfRun({ owner, status, state, now }, isLive) {
    if (!owner) return ["No pipeline has run on this root yet. The content of the store is below."];
    const ago = seconds((Date.parse(now) - Date.parse(owner.renewed_at)) / 1000);
    const where = `process ${owner.pid} on ${owner.host}`;
    const lines = [];
    if (isLive && status?.message) lines.push(el("strong", {}, status.message), ...this.startup(status, ago));
    if (state === "ended") lines.push(`No pipeline runs on this root. The last run, ${where}, ended ${ago} ago: ${owner.phase}.`);
    if (state === "gone") lines.push(`No pipeline runs on this root: ${where} is gone. Its last status, ${ago} ago: ${owner.phase}.`);
    if (state === "silent") lines.push(`Probably no pipeline runs on this root: ${where} is silent. Its last status, ${ago} ago: ${owner.phase}.`);
    if (isLive) lines.push(`${where[0].toUpperCase()}${where.slice(1)}, since ${time(owner.since)}.`);
    if (owner.last_error) lines.push(el("span", { class: "bad" }, `Last error: ${owner.last_error}`));
    return lines.flatMap((line) => [line, el("br")]).slice(0, -1);
  }

  /** The running steps of a start, with their seconds up to now. */
  startup(status, ago) {
    const steps = status.startup.filter((step) => !step.done).map((step) => `${step.name}: ${seconds(step.seconds)}`);
    return steps.length ? [`${steps.join(", ")}, as of ${ago} ago`] : [];
  }

  numbers({ owner, status, epoch, committed_at, now }, isLive) {
    const found = [["last epoch", epoch ? el("span", { title: `epoch ${epoch}` }, `${seconds((Date.parse(now) - Date.parse(committed_at)) / 1000)} ago`) : "none yet"]];
    if (!isLive || !status) return found;
    const sources = Object.values(status.sources);
    const sum = (name) => sources.reduce((total, each) => total + each[name], 0);
    const fresh = sources.map((each) => each.freshness_s).filter((each) => each !== null);
    found.push(
      ["files", `${compact(sum("files_per_s"))}/s`],
      ["rows", `${compact(sum("rows_per_s"))}/s`],
      ["read", `${bytes(sum("bytes_per_s"))}/s`],
      ["requests", `${compact(sum("requests_per_s"))}/s`],
      ["freshness", fresh.length ? seconds(Math.max(...fresh)) : "–"],
      ["epochs of this run", count(status.epochs)],
      ["recoveries", count(status.recoveries)],
      ["fetch actors", count(owner.fetchers)],
    );
    return found;
  }

  showSources(sources) {
    this.sources = sources;
    this.drawSources();
  }

  /** The sources: by the status of the run, or by the store for a source that the run does not have. */
  drawSources() {
    if (!this.sources || !this.report) return;
    const live = this.report.runs ? this.report.status : null;
    const known = new Map(this.sources.map((each) => [each.name, each]));
    // The store has a source from its first commit on.
    const names = new Set([...known.keys(), ...Object.keys(live?.sources ?? {})]);
    const rows = [...names].map((name) => ({ name, store: known.get(name) ?? null, run: live && Object.hasOwn(live.sources, name) ? live.sources[name] : null }));
    const flying = (row) => row.run && inFlight(row) ? [el("br"), el("span", { class: "small" }, `${plural(inFlight(row), "file")} in flight`)] : [];
    const place = (store) => store ? [el("code", { class: "small" }, store.url), el("span", { class: "small" }, ` ${store.format}`)] : el("span", { class: "small" }, "nothing of it is committed yet");
    const columns = [
      { title: "source", class: "path", cell: (row) => [el("strong", {}, row.name), el("br"), place(row.store), flying(row)].flat() },
      ...this.report.columns.sources.map(({ name, title, unit }) => ({ title, numeric: true, cell: ({ store, run }) => quantity(run ? run[name] : stored(store, name), unit) })),
      ...(rows.some(({ store, run }) => run?.watermark ?? store?.watermark)
        ? [{ title: "watermark", class: "nowrap", cell: ({ store, run }) => time(run?.watermark ?? store?.watermark) }]
        : []),
      { title: "listed", class: "nowrap", cell: ({ store, run }) => time(run?.listed_at ?? store?.listed_at) },
    ];
    const left = this.sources.flatMap((each) => each.left_out.map((column) => `${column.column} (${each.name}, first in ${column.path})`));
    const none = this.report.runs ? "The run has not reported its sources yet." : "No run has committed a source yet.";
    const text = rows.length ? table("Sources", columns, rows) : el("p", { class: "hint" }, none);
    const note = left.length ? el("p", { class: "hint" }, `${plural(left.length, "column")} of files left out: ${left.join("; ")}`) : "";
    const paused = rows.map(({ name, store, run }) => [name, run ? run.paused_removals : store.paused_removals]).filter(([, files]) => files);
    const warnings = paused.map(([name, files]) => el("p", { class: "bad" },
      `${name}: removals are paused. ${plural(files, "file")} ${files === 1 ? "is" : "are"} missing, and the rows stay in the views. Bring the files back, or let them go with `,
      el("code", {}, `slackwater allow-removals ${this.report.argument} --source ${name}`)));
    for (const { name, store, run } of rows) {
      const reason = run ? run.paused : store.paused;
      if (reason) warnings.push(el("p", { class: "bad" }, `${name} is paused. ${reason}`));
    }
    for (const each of this.sources) {
      const columns = each.missing.map((column) => `${column.column} (first in ${column.path})`);
      if (columns.length) warnings.push(el("p", { class: "bad" },
        `${each.name}: files lack ${plural(columns.length, "column")}, null in their rows: ${columns.join("; ")}`));
    }
    const key = JSON.stringify([rows, left]);
    if (key === this.drawn) return;
    this.drawn = key;
    byId("sources").replaceChildren(...warnings, text, note);
  }
}

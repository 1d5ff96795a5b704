// Quarantine: unreadable files with their errors, and bad records with their raw content.

import { ask } from "./api.js";
import { byId, el, table, visible } from "./dom.js";
import { bytes, count, epochTime, plural, time } from "./format.js";

const PAGE = 25;
const RARELY_MS = 10_000;

export class Quarantine {
  constructor() {
    this.epoch = undefined;
    this.next = 0;
    this.isBrowsing = false;
  }

  /** Reads again after a new epoch, but not while a later page is shown. */
  async update(sources, epoch) {
    if (epoch === this.epoch || this.isBrowsing || performance.now() < this.next) return;
    this.epoch = epoch;
    this.next = performance.now() + RARELY_MS;
    await Promise.all([this.files(null), this.records(null)]);
  }

  async files(after) {
    const report = await ask("files", { status: "quarantined", limit: PAGE, after });
    const columns = [
      { title: "file", class: "path", cell: (file) => el("code", {}, file.path) },
      { title: "why", class: "why", cell: (file) => el("span", { class: "bad" }, file.error ?? "no reason was recorded") },
      { title: "rows in views", numeric: true, cell: (file) => count(file.rows_read) },
      { title: "since", class: "nowrap", cell: (file) => time(epochTime(file.done_epoch)) },
    ];
    this.show("bad-files", "Files that could not be read", report, report.files, columns, "No file is quarantined.", (place) => this.files(place));
  }

  async records(after) {
    const report = await ask("quarantine", { limit: PAGE, after });
    const columns = [
      { title: "place", class: "path", cell: (record) => [el("code", {}, record.path), record.row === null ? "" : ` row ${count(record.row)}`] },
      { title: "why", class: "why", cell: (record) => el("span", { class: "bad" }, record.reason) },
      { title: "record", cell: (record) => [el("pre", { class: "raw", tabindex: "0", "aria-label": `Raw record in ${visible(record.path)}` }, record.raw), record.raw_bytes > 4096 ? el("span", { class: "hint" }, `the first 4 KiB of ${bytes(record.raw_bytes)}`) : ""] },
      { title: "since", class: "nowrap", cell: (record) => time(epochTime(record.epoch)) },
    ];
    this.show("bad-records", "Records that do not fit", report, report.records, columns, "No record is quarantined.", (place) => this.records(place));
  }

  show(id, caption, report, rows, columns, nothing, more) {
    const again = (after) => async () => {
      this.isBrowsing = after !== null;
      if (!this.isBrowsing) this.epoch = undefined;
      await more(after);
      byId(id).querySelector("button, [tabindex]")?.focus();
    };
    const buttons = [
      this.isBrowsing ? el("button", { type: "button", onclick: again(null) }, "First page") : "",
      report.after ? el("button", { type: "button", onclick: again(report.after) }, "Next page") : "",
    ];
    byId(id).replaceChildren(...(rows.length || this.isBrowsing
      ? [el("p", { class: "hint" }, `${plural(report.matches, id === "bad-files" ? "file" : "record")} in total; row numbers begin at 0`), table(caption, columns, rows), el("p", { class: "buttons" }, buttons)]
      : [el("p", { class: "hint" }, nothing)]));
  }
}

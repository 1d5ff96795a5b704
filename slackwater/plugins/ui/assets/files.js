// Search in the ledger: files, their status, and the history of each.

import { ask, Refused } from "./api.js";
import { badge, byId, el, visible } from "./dom.js";
import { bytes, count, epochTime, plural, time } from "./format.js";

const PAGE = 50;
const TYPING_MS = 350;

export class FileSearch {
  constructor() {
    this.round = 0;
    this.timer = null;
    byId("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search(true);
    });
    byId("search-text").addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.search(false), TYPING_MS);
    });
    byId("search-text").addEventListener("keydown", (event) => {
      if (event.key === "Escape" && byId("search-text").value === "") byId("search-text").blur();
    });
    for (const id of ["search-source", "search-status"]) byId(id).addEventListener("change", () => this.search(false));
  }

  showSources(sources) {
    const select = byId("search-source"), chosen = select.value;
    const names = sources.map((each) => each.name);
    if (JSON.stringify(names) === this.names) return;
    this.names = JSON.stringify(names);
    select.replaceChildren(el("option", { value: "" }, "all"), ...names.map((name) => el("option", { value: name }, name)));
    select.value = names.includes(chosen) ? chosen : "";
  }

  /** `wantsHistory`: the text may be a whole name; if no listed file matches, its history is shown. */
  async search(wantsHistory) {
    clearTimeout(this.timer);
    const text = byId("search-text").value.trim();
    const asked = { text, source: byId("search-source").value, status: byId("search-status").value };
    const round = ++this.round;
    if (!text && !asked.source && !asked.status && !wantsHistory) return byId("found").replaceChildren();
    byId("found").setAttribute("aria-busy", "true");
    try {
      const page = await ask("files", { ...asked, limit: PAGE });
      if (round !== this.round) return;
      if (page.files.length) this.draw(page, asked);
      else byId("found").replaceChildren(await this.nothing(text, wantsHistory));
    } catch (error) {
      if (round === this.round) byId("found").replaceChildren(wrong(error));
    } finally {
      if (round === this.round) byId("found").removeAttribute("aria-busy");
    }
  }

  async nothing(text, wantsHistory) {
    if (!text) return el("p", { class: "hint" }, "No file matches.");
    if (wantsHistory || text.includes("://") || text.startsWith("/")) return fileHistory(await ask("why", { path: text }));
    return el("p", { class: "hint" }, "No listed file has this text in its path. Press Enter for the history of the object with this name.");
  }

  draw(page, asked) {
    const body = el("tbody");
    const titles = ["file", "status", "rows", "bad rows", "since", "size"];
    const head = el("tr", {}, titles.map((title) => el("th", { scope: "col", class: ["rows", "bad rows", "size"].includes(title) ? "number" : null }, title)));
    const table = el("table", {}, el("caption", { class: "hidden" }, "Files"), el("thead", {}, head), body);
    const more = el("p");
    const add = (found) => {
      body.append(...found.files.flatMap((file) => this.rows(file)));
      more.replaceChildren(found.after ? el("button", { type: "button", onclick: () => next(found.after) }, "More") : "");
    };
    const next = async (after) => {
      try {
        add(await ask("files", { ...asked, limit: PAGE, after }));
      } catch (error) {
        more.replaceChildren(wrong(error));
      }
    };
    add(page);
    byId("found").replaceChildren(
      el("p", { class: "hint" }, `${plural(page.matches, "file")} found; click the name of a file for its history`),
      el("div", { class: "scroll", role: "region", "aria-label": "Files", tabindex: "0" }, table), more);
  }

  rows(file) {
    const place = el("td", { colspan: 6 });
    const below = el("tr", { class: "history-row", hidden: true }, place);
    const name = el("button", { type: "button", class: "link", "aria-expanded": "false", onclick: () => this.open(file, name, below, place) }, file.path);
    const since = file.removed_epoch ?? file.done_epoch ?? file.first_epoch ?? file.listed_epoch;
    const row = el("tr", {},
      el("td", { class: "path" }, name),
      el("td", {}, mark(file), file.error ? el("div", { class: "bad small" }, file.error) : ""),
      el("td", { class: "number" }, count(file.rows_read)), el("td", { class: "number" }, count(file.rows_bad)),
      el("td", { class: "nowrap", title: since === null ? null : `epoch ${since}` }, time(epochTime(since))), el("td", { class: "number nowrap" }, bytes(file.size)));
    return [row, below];
  }

  async open(file, name, below, place) {
    const isOpen = name.getAttribute("aria-expanded") === "true";
    name.setAttribute("aria-expanded", String(!isOpen));
    below.hidden = isOpen;
    if (isOpen) return;
    place.replaceChildren(el("p", { class: "hint" }, "Reading…"));
    try {
      place.replaceChildren(fileHistory(await ask("why", { path: file.path })));
    } catch (error) {
      place.replaceChildren(wrong(error));
    }
  }
}

/** The status of a file; a file that is read to its end, but for bad rows, is not marked as a good one. */
function mark({ status, rows_bad }) {
  return status === "done" && rows_bad ? badge(`done, ${plural(rows_bad, "bad row")}`, "flawed") : badge(status.replace("_", " "), status);
}

/** The history of one object. */
function fileHistory(report) {
  const lines = report.text.split("\n").map((line) => el("p", {}, line));
  const isIn = ["done", "reading"].includes(report.status) || (report.status === "quarantined" && report.source);
  const views = report.source && isIn ? el("p", {}, report.views.length ? `Views over ${visible(report.source)}: ${report.views.join(", ")}.` : `No view is declared over ${visible(report.source)}.`) : "";
  return el("div", { class: "history" }, el("p", {}, mark(report), " ", el("code", {}, report.path)), lines, views);
}

function wrong(error) {
  return el("p", { class: "bad", role: "alert" }, error instanceof Refused ? error.message : `The server of this page does not answer (${error.message})`);
}

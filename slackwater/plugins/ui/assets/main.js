// The page: asks for the state of the root every second, and updates the changed parts.

import { ask, Refused, setToken, takeToken } from "./api.js";
import { byId, el } from "./dom.js";
import { EpochTimeline } from "./epochs.js";
import { FileSearch } from "./files.js";
import { Now } from "./now.js";
import { Quarantine } from "./quarantine.js";
import { startTheme } from "./theme.js";
import { Views } from "./views.js";

const EVERY_MS = 1000;
const AFTER_TROUBLE_MS = 3000;
const SLOWLY_MS = 3000;

const now = new Now();
const timeline = new EpochTimeline(byId("timeline"));
const search = new FileSearch();
const views = new Views();
const quarantine = new Quarantine();

let shownEpoch, slowlyAt = 0, isAsking = false, isAskedAgain = false, timer = null;

/** Shows an error, and asks for the token if it is missing. */
export function showError(error) {
  const isToken = error instanceof Refused && error.status === 401;
  byId("token").hidden = !isToken;
  byId("content").hidden = isToken;
  byId("trouble").hidden = false;
  const text = error instanceof Refused ? error.message
    : error instanceof TypeError ? `The server of this page does not answer: is \`slackwater ui\` still running? (${error.message})`
    : String(error);
  byId("trouble").replaceChildren(el("p", {}, text));
  if (isToken) byId("token-text").focus();
  return isToken;
}

async function look() {
  const report = await ask("now");
  byId("trouble").hidden = true;
  byId("token").hidden = true;
  byId("content").hidden = false;
  now.show(report);
  timeline.showInFlight(report);
  views.showLive(report);
  const isNew = report.epoch !== shownEpoch;
  if (isNew) await timeline.update();
  if (isNew || performance.now() > slowlyAt) {
    slowlyAt = performance.now() + SLOWLY_MS;
    const [sources, list] = await Promise.all([ask("sources"), ask("views")]);
    now.showSources(sources.sources);
    search.showSources(sources.sources);
    views.show(list, report.argument);
    await quarantine.update(sources.sources, report.epoch);
  }
  // Answers are cached apart: the timeline may not have the epoch yet, and is then asked again.
  if (timeline.has(report.epoch)) shownEpoch = report.epoch;
}

/** Asks, and once more at once if that was called for meanwhile: the answer that is under way may be to an old token. */
async function loop() {
  isAskedAgain = isAsking;
  if (isAsking || document.hidden) return;
  isAsking = true;
  clearTimeout(timer);
  let wait = EVERY_MS;
  try {
    await look();
  } catch (error) {
    wait = showError(error) ? null : AFTER_TROUBLE_MS;
  }
  isAsking = false;
  if (isAskedAgain) loop();
  else if (wait !== null) timer = setTimeout(loop, wait);
}

function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName));
}

startTheme();
takeToken();
document.addEventListener("visibilitychange", loop);
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  event.preventDefault();
  byId("search-text").focus();
  byId("search-text").select();
});
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token-text").value.trim());
  byId("token-text").value = "";
  loop();
});
loop();

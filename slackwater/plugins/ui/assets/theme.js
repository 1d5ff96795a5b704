// Theme: light, dark, or the system's; kept in this browser.

import { byId } from "./dom.js";

const KEPT = "slackwater.theme";
const NEXT = { system: "dark", dark: "light", light: "system" };
const SAID = { system: "as the system", dark: "dark", light: "light" };

function show(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${SAID[theme]}`;
}

export function startTheme() {
  const kept = localStorage.getItem(KEPT);
  show(Object.hasOwn(NEXT, kept) ? kept : "system");
  byId("theme").addEventListener("click", () => {
    const theme = NEXT[document.documentElement.dataset.theme];
    localStorage.setItem(KEPT, theme);
    show(theme);
  });
}

// Requests to the server: with the token if one is set; an unchanged answer is not sent again.

const KEPT = "slackwater.token";
const latest = new Map();

/** An error that the server answers with. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Moves the token from behind the # of the URL, which no server sees, to the session storage. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return;
  setToken(given);
  history.replaceState(null, "", location.pathname);
}

export function setToken(token) {
  sessionStorage.setItem(KEPT, token);
}

/** Requests `/api/NAME`; returns the document, the same object as before if it is unchanged. */
export async function ask(name, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  const url = `/api/${name}${query ? `?${query}` : ""}`;
  const before = latest.get(name);
  const known = before?.url === url ? before : null;
  const headers = {};
  const token = sessionStorage.getItem(KEPT);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (known) headers["If-None-Match"] = known.etag;
  const response = await fetch(url, { headers, cache: "no-store", credentials: "omit" });
  if (response.status === 304) return known.value;
  const value = await response.json();
  if (!response.ok) throw new Refused(response.status, value.error);
  latest.set(name, { url, value, etag: response.headers.get("ETag") });
  return value;
}

// Numbers, sizes and times as text.

const COUNT = new Intl.NumberFormat("en-GB");
const COMPACT = new Intl.NumberFormat("en-GB", { notation: "compact", maximumFractionDigits: 1 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A whole number; a number that is too large for JSON comes as text, and is shown unchanged. */
export function count(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" ? COUNT.format(Math.round(value)) : String(value);
}

export function compact(value) {
  return value < 10 && value > 0 && !Number.isInteger(value) ? value.toFixed(1) : COMPACT.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let size = Number(value), unit = 0;
  while (size >= 1024 && unit < UNITS.length - 1) { size /= 1024; unit += 1; }
  return `${unit && size < 100 ? size.toFixed(1) : Math.round(size)} ${UNITS[unit]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.0005) return "0 ms";
  if (value < 1) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 120) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

/** A number in its unit, for example files, bytes/s or seconds. */
export function quantity(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "seconds") return seconds(value);
  if (unit.startsWith("bytes")) return bytes(value);
  return unit.endsWith("/s") ? compact(value) : count(value);
}

/** A time in UTC, to the second. */
export function time(text) {
  return text ? `${new Date(text).toISOString().slice(0, 19).replace("T", " ")} UTC` : "–";
}

export function clock(text) {
  return new Date(text).toISOString().slice(11, 19);
}

/** The time of an epoch: its upper bits are milliseconds since 1970, 16 bits to the left. */
export function epochTime(epoch) {
  return epoch === null || epoch === undefined ? null : new Date(Number(BigInt(epoch) >> 16n)).toISOString();
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

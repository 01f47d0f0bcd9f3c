// Where the reader is: everything that is needed to show the same again lives in the address, after '#', so that one
// page serves a live server, a static host and a single file alike.
import { signal } from "@preact/signals";

export interface Place {
  path: string[];
  query: URLSearchParams;
}

export type Query = Record<string, string | number | null | undefined>;

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // an address that somebody typed
  }
}

function read(): Place {
  const address = location.hash.replace(/^#\/?/, "");
  const at = address.indexOf("?");
  const path = at < 0 ? address : address.slice(0, at);
  return {
    path: path.split("/").filter(Boolean).map(decode),
    query: new URLSearchParams(at < 0 ? "" : address.slice(at + 1)),
  };
}

export const place = signal<Place>(read());
window.addEventListener("hashchange", () => {
  place.value = read();
});

/** The address of a page, as a link takes it. */
export function href(path: readonly string[], query: Query = {}): string {
  const parts = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(parts.map(([name, value]) => [name, String(value)])).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Go to an address of `href`; with `replace` the back button does not stop here. */
export function go(address: string, replace = false): void {
  if (address === location.hash) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = read();
}

/** Change parts of the query and keep the rest; null removes a part. */
export function setQuery(changes: Query, replace = true): void {
  const query: Query = Object.fromEntries(place.value.query);
  go(href(place.value.path, { ...query, ...changes }), replace);
}

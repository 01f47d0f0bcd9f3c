// Where the data comes from, chosen once by what the page says about itself.
import { signal } from "@preact/signals";
import { place } from "../address";
import type { Index, Pulse, Source } from "../types";
import { fetchBytes, inlineBytes } from "./files";
import { LiveSource } from "./live";
import { StaticSource } from "./static";

const kind = document.querySelector('meta[name="agentunit-source"]')?.getAttribute("content");

export const source: Source = kind === "bundle" ? new StaticSource("bundle", fetchBytes)
  : kind === "file" ? new StaticSource("file", inlineBytes) : new LiveSource();

/** What the source says about itself; null until it has. */
export const index = signal<Index | null>(null);

/** Whether personal data is shown. */
export const personal = signal(false);

/** Changes whenever what was loaded may be out of date: part of the key of useLoad. */
export const stamp = signal("");

/** The latest word about what is being recorded; null where the source is not live. */
export const pulse = signal<Pulse | null>(null);

export function showPersonal(shown: boolean): void {
  source.showPersonal(shown);
  personal.value = shown;
  stamp.value = `${stamp.peek().replace(/ personal$/, "")}${shown ? " personal" : ""}`;
}

const LIVE_MS = 2_000;
const IDLE_MS = 10_000;

/** Ask the live server now and then whether anything is new; static sources have nothing new to say. */
export async function follow(): Promise<void> {
  if (source.kind !== "live") return;
  const { path } = place.value;
  try {
    const found = await source.pulse(path[0] === "run" ? (path[1] ?? null) : null);
    pulse.value = found;
    stamp.value = found.stamp + (personal.peek() ? " personal" : "");
  } catch {
    // The server may have ended: what was loaded stays, and the next question says so.
  }
  setTimeout(whenSeen, pulse.value?.live ? LIVE_MS : IDLE_MS);
}

function whenSeen(): void {
  if (document.hidden) document.addEventListener("visibilitychange", () => void follow(), { once: true });
  else void follow();
}

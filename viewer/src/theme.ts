// Light, dark, or what the system says. The choice is kept where the browser lets us keep it.
import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const KEY = "agentunit-theme";
const ORDER: Theme[] = ["auto", "light", "dark"];

// What a browser refuses to keep (some frames, private windows, a full disk) is kept as long as the page is open.
const inMemory = new Map<string, string | null>();

export function recall(key: string): string | null {
  if (inMemory.has(key)) return inMemory.get(key) ?? null;
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function remember(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
    inMemory.delete(key);
  } catch {
    inMemory.set(key, value);
  }
}

const stored = recall(KEY) as Theme | null;
export const theme = signal<Theme>(stored && ORDER.includes(stored) ? stored : "auto");

/** Counts changes of the colors: what is drawn on a canvas reads it and draws again. */
export const colorsChanged = signal(0);

effect(() => {
  const chosen = theme.value;
  if (chosen === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", chosen);
  remember(KEY, chosen === "auto" ? null : chosen);
  colorsChanged.value = colorsChanged.peek() + 1;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colorsChanged.value += 1;
});

export function nextTheme(): void {
  theme.value = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] ?? "auto";
}

/** What a color variable stands for now, for a canvas. */
export function colorOf(variable: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

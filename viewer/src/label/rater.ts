// Who labels: the name that was given last in this browser, else the one that the server knows.
import { recall, remember } from "../theme";
import type { Index } from "../types";

const KEY = "agentunit-rater";

export function raterName(index: Index | null): string {
  return recall(KEY) ?? index?.rater ?? "";
}

export function rememberRater(name: string): void {
  if (name.trim()) remember(KEY, name.trim());
}

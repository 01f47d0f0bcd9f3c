import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 640px)");
const narrow = signal(query.matches);
query.addEventListener("change", () => (narrow.value = query.matches));

/** Whether the window is as narrow as a phone; what asks is drawn again when that changes. */
export function useIsNarrow(): boolean {
  return narrow.value;
}

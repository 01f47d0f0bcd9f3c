// Keys: a page says what its keys do while it is shown, and '?' lists them.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface Key {
  /** One key as KeyboardEvent.key names it ("j", "ArrowDown", "?"), or two pressed one after the other ("g r"). */
  key: string;
  /** What it does, in a few words, for the list of keys. A key without it is not listed. */
  does?: string;
  act: (event: KeyboardEvent) => void;
}

const layers = signal<readonly { title: string; keys: readonly Key[] }[]>([]);
export const keysShown = signal(false);
let pending = "";
let pendingUntil = 0;

export function listedKeys(): readonly { title: string; keys: readonly Key[] }[] {
  return layers.value.map(({ title, keys }) => ({ title, keys: keys.filter((key) => key.does) }))
    .filter(({ keys }) => keys.length > 0);
}

/** Bind keys while the component is there; the latest layer is asked first. */
export function useKeys(title: string, keys: readonly Key[]): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    // The handlers of the latest rendering act, although the layer is registered once.
    const layer = {
      title,
      get keys() {
        return current.current;
      },
    };
    layers.value = [...layers.peek(), layer];
    return () => {
      layers.value = layers.peek().filter((each) => each !== layer);
    };
  }, [title]);
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

/** Buttons and links keep the keys that press them. */
function isPressing(event: KeyboardEvent): boolean {
  const pressed = event.key === "Enter" || event.key === " ";
  return pressed && event.target instanceof HTMLElement && event.target.closest("a, button, summary") !== null;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && isTyping(event)) {
    (event.target as HTMLElement).blur();
    return;
  }
  if (isTyping(event) || isPressing(event)) return;
  const pair = pending && event.timeStamp < pendingUntil ? `${pending} ${event.key}` : "";
  const found = find(pair) ?? find(event.key);
  pending = found ? "" : event.key;
  pendingUntil = event.timeStamp + 1_000;
  if (found) {
    event.preventDefault();
    found.act(event);
  }
}

function find(name: string): Key | undefined {
  if (!name) return undefined;
  for (const layer of [...layers.peek()].reverse()) {
    const found = layer.keys.find((each) => each.key === name);
    if (found) return found;
  }
  return undefined;
}

window.addEventListener("keydown", onKey);

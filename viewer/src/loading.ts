// Data that is on its way: what it is, whether it failed, and nothing of an older question.
import { useEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  data: T | null;
  error: Error | null;
  busy: boolean;
}

/**
 * Load something whenever `key` changes. While the next is on its way the former stays in `data` (with `busy`), so that
 * a page does not blink; the signal lets the source stop work that nobody waits for.
 */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<Loaded<T>>({ data: null, error: null, busy: true });
  useEffect(() => {
    const stop = new AbortController();
    setState((before) => ({ ...before, busy: true }));
    load(stop.signal).then(
      (data) => {
        if (!stop.signal.aborted) setState({ data, error: null, busy: false });
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        setState({ data: null, error: error instanceof Error ? error : new Error(String(error)), busy: false });
      },
    );
    return () => stop.abort();
  }, [key]);
  return state;
}

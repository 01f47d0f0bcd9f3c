// Puts a text on the clipboard, and says whether it could.
import { useState } from "preact/hooks";

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [word, setWord] = useState("Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setWord("Copied");
    } catch {
      // Refused, or a page that came without encryption from another machine: there is no clipboard then.
      setWord("Not permitted");
    }
  };
  return <button type="button" aria-live="polite" onClick={() => void copy()}>{word} <span class="sr">{what}</span></button>;
}

// A word with an explanation, by pointer, touch and keyboard.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

export function Tip({ text, children }: { text: ComponentChildren; children: ComponentChildren }) {
  const id = useId();
  return (
    <span class="tip">
      <span class="tip-word" tabIndex={0} aria-describedby={id}>{children}</span>
      <span class="tip-text" role="tooltip" id={id}>{text}</span>
    </span>
  );
}

// A word with an explanation, by pointer, touch and keyboard. The explanation lies above everything (a popover), so that
// no frame cuts it off, and within the window.
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

const GAP_PX = 6;
const EDGE_PX = 8;

export function Tip({ text, children }: { text: ComponentChildren; children: ComponentChildren }) {
  const id = useId();
  const word = useRef<HTMLSpanElement>(null);
  const note = useRef<HTMLSpanElement>(null);
  const show = () => {
    if (!word.current || !note.current || note.current.matches(":popover-open")) return;
    note.current.showPopover();
    const at = word.current.getBoundingClientRect();
    const size = note.current.getBoundingClientRect();
    const isAbove = at.bottom + GAP_PX + size.height > innerHeight && at.top > size.height + GAP_PX;
    note.current.style.left = `${Math.max(EDGE_PX, Math.min(at.left, innerWidth - size.width - EDGE_PX))}px`;
    note.current.style.top = `${isAbove ? at.top - GAP_PX - size.height : at.bottom + GAP_PX}px`;
  };
  const hide = () => {
    if (note.current?.matches(":popover-open")) note.current.hidePopover();
  };
  return (
    <span class="tip">
      <span class="tip-word" tabIndex={0} ref={word} aria-describedby={id} onMouseEnter={show} onMouseLeave={hide} onFocus={show} onBlur={hide}
        onKeyDown={(event) => { if (event.key === "Escape") hide(); }}>{children}</span>
      <span class="tip-text" role="tooltip" id={id} ref={note} popover="manual">{text}</span>
    </span>
  );
}

// The keys of this page, on '?'.
import { useEffect, useRef } from "preact/hooks";
import { keysShown, listedKeys } from "../keys";

const NAMES: Record<string, string> = {
  ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", " ": "Space",
};

export function KeyList() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isShown = keysShown.value;
  useEffect(() => {
    if (isShown && !dialog.current?.open) dialog.current?.showModal();
    if (!isShown && dialog.current?.open) dialog.current.close();
  }, [isShown]);
  return (
    <dialog ref={dialog} class="keys" aria-labelledby="keys-title" onClose={() => (keysShown.value = false)}
      onClick={(event) => { if (event.target === dialog.current) keysShown.value = false; }}>
      <div class="keys-body">
        <h2 id="keys-title">Keys</h2>
        {isShown && listedKeys().map(({ title, keys }) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {keys.map(({ key, does }) => (
                <div key={key}>
                  <dt>{key.split(/(?<=\S) (?=\S)/).map((part) => <kbd key={part}>{NAMES[part] ?? part}</kbd>)}</dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <button type="button" onClick={() => (keysShown.value = false)}>Close</button>
      </div>
    </dialog>
  );
}

// Markdown written by strangers. The only place where data becomes markup, and only through DOMPurify.
import DOMPurify from "dompurify";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { markupOf } from "../text/markup";

const MOST_CHARACTERS = 100_000;
// A text without any sign of Markdown is shown as it is: reading it would find nothing, and long transcripts scroll faster.
const SIGNS = /[*_`#[\]<>|~&\\]|https?:|www\.|@|^\s*(?:[-+]|\d+[.)])\s|^(?: {4}|\t)|^[=-]{2,}\s*$/m;
const ALLOWED_TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span",
  "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
];

// Links lead to strangers, whatever their words say: where they lead stands beside them.
DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName !== "A") return;
  const host = foreignHost(node.getAttribute("href") ?? "");
  if (host === null) {
    node.removeAttribute("href");
    return;
  }
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("target", "_blank");
  node.setAttribute("class", "foreign");
  node.append(Object.assign(document.createElement("span"), { className: "foreign-host", textContent: ` (${host} ↗)` }));
});

function foreignHost(address: string): string | null {
  try {
    const { protocol, host } = new URL(address);
    return protocol === "http:" || protocol === "https:" ? host : null;
  } catch {
    return null; // an address within nothing: there is no page that it could be of
  }
}

/** Markup as safe elements: no pictures, controls, styles or ids; links to http(s) only, marked as foreign. */
function safeElements(markup: string): DocumentFragment {
  return DOMPurify.sanitize(markup, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ["href", "start"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    KEEP_CONTENT: true,
    RETURN_DOM_FRAGMENT: true,
  });
}

export function Markdown({ text }: { text: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const isLong = text.length > MOST_CHARACTERS;
  const isPlain = isLong || !SIGNS.test(text);
  const markup = useMemo(() => (isPlain ? null : markupOf(text)), [text, isPlain]);
  useLayoutEffect(() => {
    if (markup !== null) frame.current?.replaceChildren(safeElements(markup));
  }, [markup]);
  if (markup !== null) return <div class="markdown" dir="auto" ref={frame} />;
  if (isLong) return <pre class="plain">{text}</pre>;
  return (
    <>
      {!isPlain && <p class="soft small">Shown as text: its Markdown is nested too deeply to be drawn.</p>}
      <div class="markdown plain-text" dir="auto">{text}</div>
    </>
  );
}

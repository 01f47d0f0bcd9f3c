// Markdown written by strangers. The only place where data becomes markup, and only through DOMPurify.
import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";
import { useLayoutEffect, useRef } from "preact/hooks";

const MOST_CHARACTERS = 100_000;
// A text without any sign of Markdown is shown as it is: reading it would find nothing, and long transcripts scroll faster.
const SIGNS = /[*_`#[\]<>|~&\\]|https?:|www\.|@|^\s*(?:[-+]|\d+[.)])\s|^(?: {4}|\t)|^[=-]{2,}\s*$/m;
const ALLOWED_TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span",
  "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
];

function escaped(text: string): string {
  const signs: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (sign) => signs[sign] ?? sign);
}

const reader = new Marked({
  gfm: true,
  breaks: true,
  async: false,
  renderer: {
    // Markup that an answer holds is a part of the answer: a reader wants to see it, not what it would do.
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escaped(text),
    // A picture from elsewhere would tell its owner who reads: its address is shown in its place.
    image: ({ href, text }: Tokens.Image) => `<span>[picture${text ? ` “${escaped(text)}”` : ""}, not loaded: ${escaped(href)}]</span>`,
    // A checkbox would be a control of the page.
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? "☑ " : "☐ "),
  },
});

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

/** Markdown as safe elements: no pictures, controls, styles or ids; links to http(s) only, marked as foreign. */
export function safeElements(text: string): DocumentFragment {
  return DOMPurify.sanitize(reader.parse(text) as string, {
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
  useLayoutEffect(() => {
    if (!isPlain) frame.current?.replaceChildren(safeElements(text));
  }, [text, isPlain]);
  if (isPlain) return isLong ? <pre class="plain">{text}</pre> : <div class="markdown plain-text" dir="auto">{text}</div>;
  return <div class="markdown" dir="auto" ref={frame} />;
}

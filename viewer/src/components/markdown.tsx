// Markdown written by strangers. The only place where data becomes markup, and only through DOMPurify.
import DOMPurify from "dompurify";
import { marked } from "marked";
import { useMemo } from "preact/hooks";

const MOST_CHARACTERS = 200_000;
const ALLOWED_TAGS = [
  "a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p",
  "pre", "s", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
];

// Headings of an answer are not headings of our page, and links lead to strangers: both are said.
DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName !== "A") return;
  const address = node.getAttribute("href") ?? "";
  if (!/^https?:\/\//i.test(address)) {
    node.removeAttribute("href");
    return;
  }
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("target", "_blank");
  node.setAttribute("title", `foreign link: ${address}`);
  node.setAttribute("class", "foreign");
});

/** Markdown as safe markup: no images, no styles, no ids; links only to http(s), marked as foreign. */
export function safeMarkup(text: string): string {
  const markup = marked.parse(text, { async: false, gfm: true, breaks: true });
  return DOMPurify.sanitize(markup, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ["href", "start"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    KEEP_CONTENT: true,
  });
}

export function Markdown({ text }: { text: string }) {
  const markup = useMemo(() => (text.length > MOST_CHARACTERS ? null : safeMarkup(text)), [text]);
  if (markup === null) return <pre class="plain">{text}</pre>;
  return <div class="markdown" dangerouslySetInnerHTML={{ __html: markup }} />;
}

// Markdown as markup. What comes out is not safe yet: components/markdown.tsx purifies it, and nothing else may take it.
import { Marked, type Tokens } from "marked";

/** Deeper quotes and lists leave no width to read in; far deeper ones are more than a browser reads at all. */
const DEEPEST = 30;
const NESTING = /<(\/?)(?:blockquote|ul|ol)\b/g;

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

/** The markup of a text; null where its marks are nested too deeply to be drawn. */
export function markupOf(text: string): string | null {
  let markup: string;
  try {
    markup = reader.parse(text) as string;
  } catch (error) {
    if (error instanceof RangeError) return null; // the reader calls itself for every level
    throw error;
  }
  let depth = 0;
  for (const [, closing] of markup.matchAll(NESTING)) {
    depth += closing ? -1 : 1;
    if (depth > DEEPEST) return null;
  }
  return markup;
}

// Verdicts: an icon and a word, never color alone.
import type { ComponentChildren } from "preact";

export type Tone = "good" | "bad" | "warn" | "soft" | "accent";

const VERDICTS: Record<string, { tone: Tone; icon: string; word: string }> = {
  pass: { tone: "good", icon: "✓", word: "pass" },
  met: { tone: "good", icon: "✓", word: "met" },
  fixed: { tone: "good", icon: "✓", word: "fixed" },
  better: { tone: "good", icon: "↑", word: "better" },
  fail: { tone: "bad", icon: "✕", word: "fail" },
  missed: { tone: "bad", icon: "✕", word: "missed" },
  worse: { tone: "bad", icon: "↓", word: "worse" },
  broken: { tone: "bad", icon: "✕", word: "broken" },
  wrong: { tone: "bad", icon: "✕", word: "wrong" },
  "newly failing": { tone: "bad", icon: "✕", word: "newly failing" },
  "still failing": { tone: "bad", icon: "✕", word: "still failing" },
  "newly flaky": { tone: "warn", icon: "≈", word: "newly flaky" },
  flaky: { tone: "warn", icon: "≈", word: "flaky" },
  lost: { tone: "warn", icon: "–", word: "lost" },
  doubtful: { tone: "soft", icon: "?", word: "doubtful" },
  doubt: { tone: "soft", icon: "?", word: "doubt" },
  fact: { tone: "warn", icon: "!", word: "fact" },
  "wrong, allowed": { tone: "soft", icon: "✕", word: "wrong, allowed" },
  error: { tone: "bad", icon: "!", word: "error" },
  errors: { tone: "bad", icon: "!", word: "errors" },
  unknown: { tone: "warn", icon: "?", word: "unknown" },
  "cannot tell": { tone: "warn", icon: "?", word: "cannot tell" },
  running: { tone: "accent", icon: "●", word: "running" },
  interrupted: { tone: "warn", icon: "‖", word: "interrupted" },
  same: { tone: "soft", icon: "=", word: "same" },
};

/** A verdict by its word ("pass", "FAIL", "cannot tell"); words that are not known are shown as they are. */
export function Verdict({ word, title }: { word: string | null | undefined; title?: string }) {
  if (!word) return <span class="soft">–</span>;
  const known = signOf(word);
  return <Badge tone={known.tone} icon={known.icon} title={title}>{known.word}</Badge>;
}

/** The sign of a word that says how a run or its cases stand. */
export function signOf(word: string): { tone: Tone; icon: string; word: string } {
  return VERDICTS[word.toLowerCase()] ?? { tone: "soft", icon: "", word };
}

export function Badge({ tone, icon, title, children }: {
  tone: Tone; icon?: string; title?: string; children: ComponentChildren;
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {icon && <span class="badge-icon" aria-hidden="true">{icon}</span>}
      {children}
    </span>
  );
}

export function Chip({ children, title }: { children: ComponentChildren; title?: string }) {
  return <span class="chip" title={title}>{children}</span>;
}

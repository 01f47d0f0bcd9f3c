// Two texts, word by word: what both have, and what only one of them has.

export interface Part {
  text: string;
  isShared: boolean;
}

const WORDS = /\s*(?:[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s])|\s+$/gu;
// The comparison takes time that grows with the square of what differs: past this nobody would read the marks anyway.
const MOST_WORDS = 3_000;
const MOST_EDITS = 1_500;
// Two texts that share less than this are different as a whole: marks on every word would say nothing.
const LEAST_SHARED = 0.2;

/** Both texts cut into parts that are shared and parts that are not; null where they share too little to tell. */
export function wordDiff(left: string, right: string): [Part[], Part[]] | null {
  const mine = left.match(WORDS) ?? [];
  const theirs = right.match(WORDS) ?? [];
  if (!mine.length || !theirs.length || mine.length + theirs.length > MOST_WORDS) return null;
  // Spaces are in every text and say nothing about likeness: only the words are compared.
  const pairs = commonWords(mine.map((word) => word.trim()), theirs.map((word) => word.trim()));
  if (!pairs || (2 * pairs.length) / (mine.length + theirs.length) < LEAST_SHARED) return null;
  return [parts(mine, new Set(pairs.map(([at]) => at))), parts(theirs, new Set(pairs.map(([, at]) => at)))];
}

function parts(words: readonly string[], shared: ReadonlySet<number>): Part[] {
  const found: Part[] = [];
  const add = (text: string, isShared: boolean) => {
    const last = found[found.length - 1];
    if (last && last.isShared === isShared) last.text += text;
    else if (text) found.push({ text, isShared });
  };
  words.forEach((text, at) => {
    const isShared = shared.has(at);
    // The space before a word that differs is part of the difference only between two such words.
    const space = !isShared && (at === 0 || shared.has(at - 1)) ? text.length - text.trimStart().length : 0;
    if (space) add(text.slice(0, space), true);
    add(text.slice(space), isShared);
  });
  return found;
}

export interface Word {
  text: string;
  kind: "same" | "was" | "is";
}

/** One text turned into the other: what stays, what was there before, what is there now. */
export function words(before: string, after: string): Word[] {
  if (before === after) return before ? [{ text: before, kind: "same" }] : [];
  const old = before.match(WORDS) ?? [];
  const now = after.match(WORDS) ?? [];
  const fits = old.length + now.length <= MOST_WORDS;
  const pairs = fits ? commonWords(old.map((word) => word.trim()), now.map((word) => word.trim())) : null;
  const found: Word[] = [];
  const add = (text: string, kind: Word["kind"]) => {
    const last = found[found.length - 1];
    if (last && last.kind === kind) last.text += text;
    else if (text) found.push({ text, kind });
  };
  let left = 0;
  let right = 0;
  for (const [a, b] of [...(pairs ?? []), [old.length, now.length] as const]) {
    add(old.slice(left, a).join(""), "was");
    add(now.slice(right, b).join(""), "is");
    if (b < now.length) add(now[b] ?? "", "same");
    left = a + 1;
    right = b + 1;
  }
  return found;
}

/** The longest common subsequence by Myers' method, as pairs of places; null where too much differs. */
function commonWords(left: readonly string[], right: readonly string[]): [number, number][] | null {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  let leftEnd = left.length;
  let rightEnd = right.length;
  while (leftEnd > start && rightEnd > start && left[leftEnd - 1] === right[rightEnd - 1]) {
    leftEnd -= 1;
    rightEnd -= 1;
  }
  const pairs: [number, number][] = [];
  for (let at = 0; at < start; at += 1) pairs.push([at, at]);
  const inner = shortestEdit(left.slice(start, leftEnd), right.slice(start, rightEnd));
  if (!inner) return null;
  for (const [a, b] of inner) pairs.push([a + start, b + start]);
  for (let at = 0; leftEnd + at < left.length; at += 1) pairs.push([leftEnd + at, rightEnd + at]);
  return pairs;
}

function shortestEdit(left: readonly string[], right: readonly string[]): [number, number][] | null {
  const n = left.length;
  const m = right.length;
  const most = Math.min(n + m, MOST_EDITS);
  const shift = most + 1;
  const reach = new Int32Array(2 * most + 3);
  const steps: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits += 1) {
    steps.push(reach.slice(shift - edits - 1, shift + edits + 2));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (reach[shift + k - 1] ?? 0) < (reach[shift + k + 1] ?? 0));
      let x = down ? (reach[shift + k + 1] ?? 0) : (reach[shift + k - 1] ?? 0) + 1;
      while (x < n && x - k < m && left[x] === right[x - k]) x += 1;
      reach[shift + k] = x;
      if (x >= n && x - k >= m) return walkBack(steps, n, m);
    }
  }
  return null;
}

function walkBack(steps: readonly Int32Array[], n: number, m: number): [number, number][] {
  const pairs: [number, number][] = [];
  let x = n;
  let y = m;
  for (let edits = steps.length - 1; edits >= 0; edits -= 1) {
    const reach = steps[edits] as Int32Array;
    const at = (k: number) => reach[k + edits + 1] ?? 0;
    const k = x - y;
    const down = k === -edits || (k !== edits && at(k - 1) < at(k + 1));
    const before = down ? k + 1 : k - 1;
    const fromX = edits === 0 ? 0 : at(before);
    const fromY = edits === 0 ? 0 : fromX - before;
    while (x > fromX && y > fromY) {
      x -= 1;
      y -= 1;
      pairs.push([x, y]);
    }
    x = fromX;
    y = fromY;
  }
  return pairs.reverse();
}

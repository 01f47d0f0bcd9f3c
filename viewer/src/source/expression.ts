// Filter expressions: faithfulness < 0.5 and not (verdict == fail or answer ~ "refund"). The server reads the same language
// (src/agentunit/addons/viewer/filters.py); viewer/filter_cases.json tests both.
import { ViewerError } from "./errors";

/** What a name stands for in one row; null is unknown, and so is an empty text. */
export type Value = number | string | null;
export type Test = (read: (name: string) => Value) => boolean;

interface Token {
  kind: "operator" | "number" | "text" | "quoted" | "word" | "other";
  text: string;
  at: number;
}

export const VERDICTS = ["pass", "fail", "error", "aside", "unknown"];
export const TEXT_FIELDS = ["id", "question", "answer", "state"];
export const NUMBER_FIELDS = ["time", "repeat", "labels"];
const MOST_LENGTH = 2_000;
const MOST_DEPTH = 50;
const COMPARISONS = ["<", "<=", ">", ">=", "==", "!=", "="];
const KINDS = ["operator", "number", "text", "quoted", "word", "other"] as const;
const TOKEN = new RegExp([
  String.raw`(<=|>=|==|!=|[<>=~()])`,
  String.raw`([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))`,
  String.raw`("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`,
  "`([^`]+)`",
  "([^\\s<>=!~()\"'`]+)",
  String.raw`(\S)`,
].join("|"), "gsu");

function tokensOf(expression: string): Token[] {
  return [...expression.matchAll(TOKEN)].map((found) => {
    const place = KINDS.findIndex((_, at) => found[at + 1] !== undefined);
    return { kind: KINDS[place] ?? "other", text: found[place + 1] ?? "", at: found.index };
  });
}

/** A test of rows; `columns` are the names of numbers beside our own. Throws ViewerError with the place of what is wrong. */
export function parseFilter(expression: string, columns: readonly string[]): Test {
  if (expression.length > MOST_LENGTH) {
    throw new ViewerError(`a filter has at most ${MOST_LENGTH} characters; received ${expression.length}`, { at: MOST_LENGTH });
  }
  return new Parser(expression, columns).parse();
}

class Parser {
  private readonly tokens: Token[];
  private at = 0;
  private depth = 0;

  constructor(private readonly expression: string, private readonly columns: readonly string[]) {
    this.tokens = tokensOf(expression);
  }

  parse(): Test {
    const test = this.either();
    const left = this.peek();
    if (left) this.fail(`'and', 'or' or the end must stand in place of '${left.text}'`);
    return test;
  }

  private peek(): Token | undefined {
    return this.tokens[this.at];
  }

  private fail(sentence: string, at = this.peek()?.at ?? this.expression.length): never {
    throw new ViewerError(sentence, { at });
  }

  private take(word: string): boolean {
    const token = this.peek();
    const isNext = token !== undefined && (token.kind === "word" || token.kind === "operator") && token.text.toLowerCase() === word;
    if (isNext) this.at += 1;
    return isNext;
  }

  private either(): Test {
    const parts = [this.both()];
    while (this.take("or")) parts.push(this.both());
    return (read) => parts.some((part) => part(read));
  }

  private both(): Test {
    const parts = [this.one()];
    while (this.take("and")) parts.push(this.one());
    return (read) => parts.every((part) => part(read));
  }

  private one(): Test {
    this.depth += 1;
    if (this.depth > MOST_DEPTH) this.fail(`a filter is at most ${MOST_DEPTH} parts deep`);
    const test = this.part();
    this.depth -= 1;
    return test;
  }

  private part(): Test {
    if (this.take("not")) {
      const inner = this.one();
      return (read) => !inner(read);
    }
    if (this.take("(")) {
      const inner = this.either();
      if (!this.take(")")) this.fail("a ')' is missing");
      return inner;
    }
    return this.test();
  }

  private test(): Test {
    const token = this.peek();
    if (!token || !["word", "quoted"].includes(token.kind) || ["and", "or", "not"].includes(token.text.toLowerCase())) {
      this.fail("a metric's name must stand here, as in 'faithfulness < 0.5'");
    }
    const name = token.text;
    const known = [...this.columns, ...NUMBER_FIELDS, ...TEXT_FIELDS, "verdict"];
    if (!known.includes(name)) this.fail(`there is no column '${name}'; ${nearest(name, known)}`);
    this.at += 1;
    if (this.take("is")) return this.known(name);
    const allowed = this.isNumber(name) ? COMPARISONS : TEXT_FIELDS.includes(name) ? ["==", "!=", "=", "~"] : ["==", "!=", "="];
    const operator = this.peek();
    if (!operator || operator.kind !== "operator" || !allowed.includes(operator.text)) this.fail(`one of ${allowed.join(" ")} must follow '${name}'`);
    this.at += 1;
    return this.compared(name, operator.text === "=" ? "==" : operator.text);
  }

  private isNumber(name: string): boolean {
    return this.columns.includes(name) || NUMBER_FIELDS.includes(name);
  }

  private known(name: string): Test {
    const isWanted = !this.take("not");
    if (!this.take("known")) this.fail("'known' or 'not known' must follow 'is'");
    const none = name === "verdict" ? "unknown" : "";
    return (read) => {
      const value = read(name);
      return (value !== null && value !== none) === isWanted;
    };
  }

  private compared(name: string, sign: string): Test {
    const value = this.peek();
    if (this.isNumber(name)) {
      if (value?.kind !== "number") this.fail(`a number must follow '${name} ${sign}'`);
      this.at += 1;
      return numberTest(name, sign, Number(value.text));
    }
    if (!value || value.kind === "operator" || value.kind === "other") this.fail(`a text must follow '${name} ${sign}'`);
    const text = (value.kind === "text" ? value.text.slice(1, -1).replace(/\\(.)/gsu, "$1") : value.text).toLowerCase();
    if (name === "verdict" && !VERDICTS.includes(text)) this.fail(`a verdict is one of ${VERDICTS.join(", ")}; received '${text}'`);
    this.at += 1;
    if (sign === "~") return (read) => String(read(name) ?? "").toLowerCase().includes(text);
    return (read) => (String(read(name) ?? "").toLowerCase() === text) === (sign === "==");
  }
}

/** Values that differ by rounding alone are equal, as in gates. */
function numberTest(name: string, sign: string, wanted: number): Test {
  const near = Math.max(1e-9 * Math.abs(wanted), 1e-12);
  const [low, high] = [wanted - near, wanted + near];
  const tests: Record<string, (value: number) => boolean> = {
    "<": (value) => value < low,
    "<=": (value) => value <= high,
    ">": (value) => value > high,
    ">=": (value) => value >= low,
    "==": (value) => value >= low && value <= high,
    "!=": (value) => value < low || value > high,
  };
  const holds = tests[sign] as (value: number) => boolean;
  return (read) => {
    const value = read(name);
    return typeof value === "number" && holds(value);
  };
}

function nearest(name: string, known: readonly string[]): string {
  const ranked = known.map((each) => ({ each, distance: distanceOf(name.toLowerCase(), each.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best && best.distance <= Math.max(2, name.length / 3) ? `did you mean '${best.each}'?` : `there are ${known.slice(0, 12).join(", ")}`;
}

/** How many letters must be changed, added or left out (Levenshtein). */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

// Filter expressions: faithfulness < 0.5 and not (verdict == pass or answer ~ "refund"). The server reads the same language.
import { ViewerError } from "./errors";

export type Value = number | string | null;

/** What a name stands for in one row; undefined where there is no such name. */
export interface Names {
  has: (name: string) => boolean;
  isText: (name: string) => boolean;
  /** All names, to suggest one. */
  known: readonly string[];
}

export type Test = (read: (name: string) => Value) => boolean;

interface Token {
  kind: "name" | "quoted name" | "number" | "text" | "operator" | "bracket" | "end";
  text: string;
  at: number;
}

const TOKEN = /\s*(?:(`[^`]*`)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(<=|>=|==|!=|<|>|=|~)|([()])|([\p{L}_][\p{L}\p{N}_.\-/:]*(?:\[[^\]]*\])?))/uy;

function tokensOf(expression: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < expression.length) {
    const start = TOKEN.lastIndex;
    const found = TOKEN.exec(expression);
    if (!found) {
      const at = start + (/^\s*/.exec(expression.slice(start))?.[0].length ?? 0);
      if (at >= expression.length) break;
      throw new ViewerError(`The filter has '${expression[at]}' where a name, a number or a text should be.`, { at });
    }
    const at = start + found[0].length - found[0].trimStart().length;
    const [, quotedName, text, number, operator, bracket, name] = found;
    if (quotedName !== undefined) tokens.push({ kind: "quoted name", text: quotedName.slice(1, -1), at });
    else if (text !== undefined) tokens.push({ kind: "text", text: text.slice(1, -1).replace(/\\(.)/gs, "$1"), at });
    else if (number !== undefined) tokens.push({ kind: "number", text: number, at });
    else if (operator !== undefined) tokens.push({ kind: "operator", text: operator === "=" ? "==" : operator, at });
    else if (bracket !== undefined) tokens.push({ kind: "bracket", text: bracket, at });
    else tokens.push({ kind: "name", text: name ?? "", at });
  }
  tokens.push({ kind: "end", text: "", at: expression.length });
  return tokens;
}

/** A test of rows; throws ViewerError with the place of what cannot be read. */
export function parseFilter(expression: string, names: Names): Test {
  const reader = new Reader(tokensOf(expression), names);
  const test = reader.either();
  reader.expectEnd();
  return test;
}

class Reader {
  private at = 0;

  constructor(private readonly tokens: Token[], private readonly names: Names) {}

  private get next(): Token {
    return this.tokens[this.at] as Token;
  }

  private isWord(word: string): boolean {
    return this.next.kind === "name" && this.next.text.toLowerCase() === word;
  }

  private takeWord(word: string): boolean {
    const found = this.isWord(word);
    if (found) this.at += 1;
    return found;
  }

  private takeBracket(bracket: "(" | ")"): boolean {
    const found = this.next.kind === "bracket" && this.next.text === bracket;
    if (found) this.at += 1;
    return found;
  }

  private fail(expected: string): never {
    const { kind, text, at } = this.next;
    const seen = kind === "end" ? "The filter ends" : `The filter has '${text}'`;
    throw new ViewerError(`${seen} where ${expected} should be.`, { at });
  }

  expectEnd(): void {
    if (this.next.kind !== "end") this.fail("'and', 'or' or the end");
  }

  either(): Test {
    const parts = [this.both()];
    while (this.takeWord("or")) parts.push(this.both());
    return parts.length === 1 ? (parts[0] as Test) : (read) => parts.some((part) => part(read));
  }

  private both(): Test {
    const parts = [this.factor()];
    while (this.takeWord("and")) parts.push(this.factor());
    return parts.length === 1 ? (parts[0] as Test) : (read) => parts.every((part) => part(read));
  }

  private factor(): Test {
    if (this.takeWord("not")) {
      const inner = this.factor();
      return (read) => !inner(read);
    }
    if (this.takeBracket("(")) {
      const inner = this.either();
      if (!this.takeBracket(")")) this.fail("')'");
      return inner;
    }
    return this.comparison();
  }

  private comparison(): Test {
    const token = this.next;
    if (token.kind !== "name" && token.kind !== "quoted name") this.fail("a name");
    if (!this.names.has(token.text)) throw new ViewerError(unknownName(token.text, this.names.known), { at: token.at });
    this.at += 1;
    const name = token.text;
    if (this.takeWord("is")) return this.known(name);
    const operator = this.next;
    if (operator.kind !== "operator") this.fail("<, <=, >, >=, ==, !=, ~ or 'is known'");
    this.at += 1;
    const value = this.next;
    if (value.kind === "end" || value.kind === "operator" || value.kind === "bracket") this.fail("a number or a text");
    this.at += 1;
    if (this.names.isText(name)) return textTest(name, operator, value.text);
    if (operator.text === "~") {
      throw new ViewerError(`'~' looks into texts, and ${name} is a number.`, { at: operator.at });
    }
    if (value.kind !== "number") {
      throw new ViewerError(`${name} is a number; '${value.text}' is not.`, { at: value.at });
    }
    return numberTest(name, operator.text, Number(value.text));
  }

  private known(name: string): Test {
    const isNegated = this.takeWord("not");
    if (!this.takeWord("known")) this.fail("'known'");
    return (read) => (read(name) === null) === isNegated;
  }
}

function textTest(name: string, operator: Token, wanted: string): Test {
  const lower = wanted.toLowerCase();
  const compare: Record<string, (value: string) => boolean> = {
    "==": (value) => value === wanted,
    "!=": (value) => value !== wanted,
    "~": (value) => value.toLowerCase().includes(lower),
  };
  const holds = compare[operator.text];
  if (!holds) throw new ViewerError(`${name} is a text: it can be compared with ==, != and ~.`, { at: operator.at });
  return (read) => {
    const value = read(name);
    return value !== null && holds(String(value));
  };
}

function numberTest(name: string, operator: string, wanted: number): Test {
  const compare: Record<string, (value: number) => boolean> = {
    "<": (value) => value < wanted && !isSame(value, wanted),
    "<=": (value) => value < wanted || isSame(value, wanted),
    ">": (value) => value > wanted && !isSame(value, wanted),
    ">=": (value) => value > wanted || isSame(value, wanted),
    "==": (value) => isSame(value, wanted),
    "!=": (value) => !isSame(value, wanted),
  };
  const holds = compare[operator] as (value: number) => boolean;
  return (read) => {
    const value = read(name);
    return typeof value === "number" && holds(value);
  };
}

/** 0.1 + 0.2 is 0.3 for who filters. */
function isSame(a: number, b: number): boolean {
  const distance = Math.abs(a - b);
  return distance <= 1e-9 * Math.max(Math.abs(a), Math.abs(b)) || distance <= 1e-12;
}

function unknownName(name: string, known: readonly string[]): string {
  const near = known.map((each) => ({ each, distance: distanceOf(name.toLowerCase(), each.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0];
  const hint = near && near.distance <= Math.max(2, name.length / 3) ? ` Did you mean '${near.each}'?` : "";
  return `There is no column '${name}'.${hint}`;
}

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

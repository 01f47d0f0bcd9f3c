// Numbers as people read them.

const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3, notation: "compact" });
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** 1234567 → 1,234,567 */
export function count(value: number): string {
  return whole.format(value);
}

/** "1 case", "2,000 cases" */
export function counted(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`;
}

/** A score: three decimals between −10 and 10, three digits beyond; a dash where there is none. */
export function score(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 10_000) return short.format(value);
  if (size >= 10) return value.toPrecision(4).replace(/\.?0+$/, "");
  if (size > 0 && size < 0.5 * 10 ** -digits) return value.toPrecision(2).replace(/e([+-])0?/, "e$1");
  return value.toFixed(digits);
}

/** A share in percent; no rounding says all or none where that is not so: "> 99.9 %", "< 0.1 %". */
export function percent(value: number | null | undefined, digits = 1): string {
  if (value === null || value === undefined) return "–";
  const shown = (100 * value).toFixed(digits);
  const least = 10 ** -digits;
  if (value < 1 && Number(shown) === 100) return `> ${(100 - least).toFixed(digits)} %`;
  if (value > 0 && Number(shown) === 0) return `< ${least.toFixed(digits)} %`;
  return `${shown} %`;
}

/** Dollars with as many decimals as they need: $0.0042, $12.30. */
export function dollars(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size === 0) return "$0";
  return `${value < 0 ? "−" : ""}$${size >= 1 ? size.toFixed(2) : size.toPrecision(2).replace(/e-0?/, "e-")}`;
}

/** Seconds as 12 ms, 3.4 s, 2 min 5 s, 1 h 2 min. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === 0) return "0 s";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const total = Math.round(seconds);
  if (total < 3600) return `${Math.floor(total / 60)} min ${total % 60} s`;
  return `${Math.floor(total / 3600)} h ${Math.floor((total % 3600) / 60)} min`;
}

const STEPS: [number, string][] = [[60, "min"], [3600, "h"], [86_400, "d"]];

/** A time in seconds since 1970 as "5 min ago", or as a date when it is long ago. */
export function ago(time_s: number, now_s = Date.now() / 1000): string {
  const age = now_s - time_s;
  if (age < 60) return "just now";
  if (age > 7 * 86_400) return date(time_s).slice(0, 10);
  const [step, unit] = STEPS.filter(([least]) => age >= least).pop() ?? [60, "min"];
  return `${Math.floor(age / step)} ${unit} ago`;
}

/** 2026-01-31 13:05, in the reader's own time zone. */
export function date(time_s: number): string {
  const when = new Date(time_s * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ${two(when.getHours())}:${two(when.getMinutes())}`;
}

export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  return value < 1e6 ? `${(value / 1e3).toFixed(1)} kB` : `${(value / 1e6).toFixed(1)} MB`;
}

/** A value in its unit: 0.857, $0.0032, 15,234, 1.25 s. */
export function quantity(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined) return "–";
  if (unit === "" || unit === "score") return score(value);
  if (unit === "USD") return dollars(value);
  if (unit === "tokens") return count(value);
  if (unit === "s") return duration(value);
  return `${Math.abs(value) >= 1000 ? count(value) : Number(value.toPrecision(3))} ${unit}`;
}

/** An interval: "± 0.031" where it lies evenly around the value, else "0.44 to 0.88"; nothing where it is not known. */
export function plusMinus(value: number | null, low: number | null, high: number | null, unit: string): string {
  if (value === null || low === null || high === null) return "";
  const isEven = Math.abs(high - value - (value - low)) <= 0.1 * (high - low);
  return isEven ? `± ${quantity((high - low) / 2, unit)}` : `${quantity(low, unit)} to ${quantity(high, unit)}`;
}

export const DIRECTIONS = {
  higher: { mark: "↑", words: "higher is better" },
  lower: { mark: "↓", words: "lower is better" },
  none: { mark: "", words: "neither high nor low is better" },
} as const;

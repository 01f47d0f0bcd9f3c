// Small pictures of numbers, as SVG: each says in words what it shows.
import { percent, score } from "../figures";

export interface Range {
  least: number;
  most: number;
}

/** A range that holds 0 and all numbers; scores from 0 to 1 keep their whole scale. */
export function rangeOf(values: readonly (number | null | undefined)[], unit = "score"): Range {
  const known = values.filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  const least = Math.min(...known, 0);
  const most = Math.max(...known);
  if (known.length === 0) return { least: 0, most: 1 };
  if (unit === "score" && least >= 0 && most <= 1) return { least: 0, most: 1 };
  return { least, most: most > least ? most : least + 1 };
}

/** A value with its interval on a scale, and a mark where a threshold is. */
export function IntervalBar({ value, low, high, range, threshold, isBad }: {
  value: number | null | undefined;
  low?: number | null;
  high?: number | null;
  range?: Range;
  threshold?: number | null;
  isBad?: boolean;
}) {
  if (value === null || value === undefined) return null;
  const { least, most } = range ?? rangeOf([value, low, high, threshold]);
  const at = (x: number) => 2 + 96 * Math.min(1, Math.max(0, (x - least) / (most - least)));
  const spread = typeof low === "number" && typeof high === "number" ? ` (${score(low)} to ${score(high)})` : "";
  const limit = typeof threshold === "number" ? `, threshold ${score(threshold)}` : "";
  return (
    <svg class={`interval ${isBad ? "bad" : ""}`} viewBox="0 0 100 12" preserveAspectRatio="none" role="img"
      aria-label={`${score(value)}${spread}${limit}`}>
      <rect class="track" x="0" y="4.5" width="100" height="3" rx="1.5" />
      {typeof low === "number" && typeof high === "number" && (
        <rect class="span" x={at(low)} y="3" width={Math.max(1, at(high) - at(low))} height="6" rx="1" />
      )}
      {typeof threshold === "number" && <rect class="limit" x={at(threshold) - 0.5} y="0" width="1" height="12" />}
      <rect class="mean" x={at(value) - 1} y="1.5" width="2" height="9" rx="0.5" />
    </svg>
  );
}

/** The latest of some values in order, the last marked; gaps where a value is unknown. */
export function Sparkline({ values, label }: { values: readonly (number | null)[]; label: string }) {
  const known = values.filter((value): value is number => value !== null);
  if (known.length < 2) return <span class="soft" title={label}>–</span>;
  const least = Math.min(...known);
  const most = Math.max(...known);
  const x = (at: number) => 2 + (at * 76) / Math.max(1, values.length - 1);
  const y = (value: number) => (most === least ? 10 : 17 - (14 * (value - least)) / (most - least));
  let path = "";
  let isOpen = false;
  values.forEach((value, at) => {
    if (value === null) isOpen = false;
    else {
      path += `${isOpen ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      isOpen = true;
    }
  });
  const last = values.length - 1 - [...values].reverse().findIndex((value) => value !== null);
  const words = `${label}: ${known.length} values, ${score(least)} to ${score(most)}, last ${score(known[known.length - 1])}`;
  return (
    <svg class="spark" viewBox="0 0 80 20" role="img" aria-label={words}>
      <title>{words}</title>
      <path d={path} />
      <circle cx={x(last)} cy={y(values[last] ?? 0)} r="2" />
    </svg>
  );
}

/** An end of a scale: 0, 0.043, 39. */
function round(value = 0): string {
  return String(Number(value.toPrecision(3)));
}

export interface Bin {
  low: number;
  high: number;
  n: number;
}

/** A histogram; one bar a bin, with its count on hover. */
export function Distribution({ bins, label }: { bins: readonly Bin[]; label: string }) {
  const total = bins.reduce((sum, bin) => sum + bin.n, 0);
  const most = Math.max(...bins.map((bin) => bin.n));
  if (total === 0 || bins.length === 0) return null;
  const width = 100 / bins.length;
  const busiest = bins.reduce((best, bin) => (bin.n > best.n ? bin : best));
  const words = `${label}: ${total} values; most (${percent(busiest.n / total, 0)}) from ${score(busiest.low)} to ${score(busiest.high)}`;
  return (
    <figure class="distribution">
      <svg viewBox="0 0 100 28" preserveAspectRatio="none" role="img" aria-label={words}>
        {bins.map((bin, at) => {
          const height = bin.n === 0 ? 0 : Math.max(1, (26 * bin.n) / most);
          return (
            <rect key={at} x={at * width + 0.4} y={28 - height} width={width - 0.8} height={height}>
              <title>{`${score(bin.low)} to ${score(bin.high)}: ${bin.n} (${percent(bin.n / total)})`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption>
        <span>{round(bins[0]?.low)}</span>
        <span>{round(bins[bins.length - 1]?.high)}</span>
      </figcaption>
    </figure>
  );
}

/** A difference with its interval, zero in the middle. */
export function DifferenceBar({ value, low, high, most, tone }: {
  value: number | null; low: number | null; high: number | null; most: number | null; tone: "good" | "bad" | "";
}) {
  if (value === null) return null;
  const reach = (most ?? Math.max(Math.abs(value), Math.abs(low ?? 0), Math.abs(high ?? 0))) || 1;
  const at = (x: number) => 50 + 48 * Math.max(-1, Math.min(1, x / reach));
  const spread = low !== null && high !== null ? ` (${score(low)} to ${score(high)})` : "";
  return (
    <svg class={`interval ${tone}`} viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label={`difference ${score(value)}${spread}`}>
      <rect class="track" x="0" y="4.5" width="100" height="3" rx="1.5" />
      <rect class="zero" x="49.6" y="0" width="0.8" height="12" />
      {low !== null && high !== null && <rect class="span" x={at(low)} y="3" width={Math.max(0.8, at(high) - at(low))} height="6" rx="1" />}
      <rect class="mean" x={at(value) - 1} y="1.5" width="2" height="9" rx="0.5" />
    </svg>
  );
}

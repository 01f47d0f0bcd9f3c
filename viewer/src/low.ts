// Where a score counts as low: the rule of cut_offs.py, for cells of tables.
import type { Column } from "./types";

/** On the bad side of its own threshold, or of the middle of its scale; at the line only what is counted is low. */
export function isLow(value: number, { low, high, unit, direction, mean_of }: Column, cut: number | null): boolean {
  if (unit !== "score" || direction === "none") return false;
  const line = cut ?? (low === null || high === null ? 0.5 : (low + high) / 2);
  if (Math.abs(value - line) < 1e-9) return mean_of === "";
  return direction === "higher" ? value < line : value > line;
}

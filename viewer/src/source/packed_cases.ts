// Cases of a bundle, in which what most cases of a shard share stands once.
import type { CaseDetail, PackedCases, ScoreDetail } from "../types";

/** One case of a shard, whole. */
export function unpackedCase({ common, scores, rows }: PackedCases, at: number): CaseDetail | undefined {
  const row = rows[at];
  if (!row) return undefined;
  const given = (row.scores ?? []) as [string, Partial<ScoreDetail>][];
  const detail = {
    ...common, ...row,
    scores: given.map(([metric, own]) => ({ ...scores[metric], ...own })),
  } as unknown as CaseDetail;
  return { ...detail, repeats: detail.repeats ?? [detail.key], subject: detail.subject ?? "" };
}

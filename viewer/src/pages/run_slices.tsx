// Slices and variants as small multiples: one panel a metric, one line a slice, all on one scale.
import { place, setQuery } from "../address";
import { IntervalBar, rangeOf } from "../components/charts";
import { Failure, Waiting } from "../components/states";
import { count, counted, DIRECTIONS, quantity } from "../figures";
import { useLoad } from "../loading";
import { source, stamp } from "../source";
import type { RunPage, SliceRow, SliceTable } from "../types";

const MOST_ROWS = 24;
/** Adding up a longer run by a field takes a while: only on request. */
const MOST_UNASKED = 20_000;

export function Slices({ page }: { page: RunPage }) {
  const fields = [...new Set([...page.slices.map((table) => table.by), ...page.slice_fields])];
  const by = place.value.query.get("by") ?? page.slices[0]?.by ?? (page.n_records <= MOST_UNASKED ? fields[0] : undefined) ?? "";
  if (fields.length === 0) return null;
  return (
    <section aria-labelledby="slices">
      <div class="row section-head">
        <h2 id="slices">Slices</h2>
        <label class="row small no-print">
          <span class="soft">by</span>
          <select value={by} onChange={(event) => setQuery({ by: event.currentTarget.value })}>
            {by === "" && <option value="">choose a field</option>}
            {fields.map((field) => <option key={field} value={field}>{field}</option>)}
          </select>
        </label>
      </div>
      {by !== "" && <Chosen page={page} by={by} />}
    </section>
  );
}

function Chosen({ page, by }: { page: RunPage; by: string }) {
  const made = page.slices.find((table) => table.by === by);
  const loaded = useLoad(made ? "" : `${page.line.id} ${by} ${stamp.value}`, async () => made ?? source.slices(page.line.id, by));
  if (made) return <Panels table={made} />;
  if (loaded.error) return <Failure error={loaded.error} />;
  return loaded.data && loaded.data.by === by ? <Panels table={loaded.data} /> : <Waiting what={`Adding up by ${by}`} />;
}

export function Panels({ table }: { table: SliceTable }) {
  const groups = new Map<string, SliceRow[]>();
  for (const row of table.rows) {
    if (row.mean === null) continue;
    // Scores that are for information are means of their own: in one panel with the others each slice would stand twice.
    const name = `${row.metric}\n${row.backend}\n${row.status}`;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return (
    <>
      <div class="cards">{[...groups].map(([name, rows]) => <Panel key={name} rows={rows} />)}</div>
      {table.note && <p class="soft small">{table.note}</p>}
    </>
  );
}

function Panel({ rows }: { rows: SliceRow[] }) {
  const first = rows[0] as SliceRow;
  const range = rangeOf(rows.flatMap((row) => [row.mean, row.low, row.high]), first.unit);
  return (
    <article class="card">
      <h3>{first.metric} <span class="soft">{DIRECTIONS[first.direction].mark} {first.backend}{first.status === "informational" && ", informational"}</span></h3>
      <table class="slices">
        <caption class="sr">{first.metric} by slice</caption>
        <thead class="sr"><tr><th>slice</th><th>interval</th><th>mean</th><th>cases</th></tr></thead>
        <tbody>
          {rows.slice(0, MOST_ROWS).map((row) => (
            <tr key={row.slice} class={row.too_small ? "soft" : ""}>
              <td class="clip" title={row.slice}>{row.slice}</td>
              <td><IntervalBar value={row.mean} low={row.low} high={row.high} range={range} isBad={isApart(row) && isWorse(row)} /></td>
              <td class="num" title={isApart(row) ? `${row.difference?.toFixed(1)} standard deviations from the rest` : undefined}>
                {quantity(row.mean, row.unit)}
                {isApart(row) && <span class={isWorse(row) ? "bad-text" : "good-text"}> {isWorse(row) ? "▼" : "▲"}</span>}
              </td>
              <td class="num soft small" title={row.too_small ? "too few to tell" : "cases"}>{count(row.n_cases)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > MOST_ROWS && <p class="soft small">and {counted(rows.length - MOST_ROWS, "more slice")}</p>}
    </article>
  );
}

/** Further from the rest than noise takes it. */
function isApart(row: SliceRow): boolean {
  return !row.too_small && row.difference !== null && Math.abs(row.difference) >= 2;
}

function isWorse(row: SliceRow): boolean {
  if (row.mean === null || row.rest_mean === null) return false;
  return row.direction === "lower" ? row.mean > row.rest_mean : row.mean < row.rest_mean;
}

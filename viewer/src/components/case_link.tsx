// A case by its id: opens the page of one repeat, the first unless named, which lists the others, or the table where
// several cases have the id.
import { go, href } from "../address";
import { source } from "../source";

export function CaseLink({ run, id, repeat = null }: { run: string; id: string; repeat?: number | null }) {
  const table = href(["run", run, "cases"], { filter: `id == ${JSON.stringify(id)}` });
  const open = async (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const keys = await source.keys(run, id).catch(() => []);
    const isOne = new Set(keys.map((key) => key.split("-")[0])).size === 1;
    const key = keys.find((each) => each.endsWith(`-${repeat}`)) ?? keys[0];
    go(isOne && key ? href(["run", run, "case", key]) : table);
  };
  return <a class="case-link" href={table} title={id} onClick={(event) => void open(event)}>{id}</a>;
}

const SHOWN = 8;

/** Some cases, and how many more there are. */
export function CaseLinks({ run, ids, total = ids.length }: { run: string; ids: readonly string[]; total?: number }) {
  if (ids.length === 0) return null;
  const more = total - Math.min(ids.length, SHOWN);
  return (
    <span class="case-links">
      {ids.slice(0, SHOWN).map((id) => <CaseLink key={id} run={run} id={id} />)}
      {more > 0 && <span class="soft small nowrap">and {more.toLocaleString("en-US")} more</span>}
    </span>
  );
}

// The catalog: what each metric says, what it needs, and how far its scores agree with people.
import { useEffect, useRef } from "preact/hooks";
import { place, setQuery } from "../address";
import { Badge, Chip } from "../components/badges";
import { Empty, Shown } from "../components/states";
import { count, counted, DIRECTIONS } from "../figures";
import { useLoad } from "../loading";
import { source } from "../source";
import type { Catalog, CatalogEntry } from "../types";

export function MetricsView() {
  const loaded = useLoad("catalog", () => source.catalog());
  return (
    <>
      <header class="run-header">
        <div class="row"><h1>Metrics</h1></div>
        <p class="soft">What each metric says, what it needs, and its trust: how well its scores agree with people's labels, measured on data that nothing was tuned on.</p>
      </header>
      <Shown of={loaded} what="the catalog">{(catalog) => <List catalog={catalog} />}</Shown>
    </>
  );
}

function List({ catalog }: { catalog: Catalog }) {
  const { query } = place.value;
  const search = query.get("q") ?? "";
  const chosen = query.get("metric");
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = catalog.metrics.filter((entry) => {
    const text = [entry.name, entry.family, entry.summary, ...entry.inputs, entry.extra ?? ""].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const families = [...new Set(found.map((entry) => entry.family))];
  return (
    <>
      <div class="row tools no-print">
        <input type="search" data-search class="grow search" placeholder="Search metrics  /" aria-label="Search metrics" value={search}
          onInput={(event) => setQuery({ q: event.currentTarget.value })} />
        <span class="soft small" role="status">{search ? `${count(found.length)} of ${counted(catalog.metrics.length, "metric")}` : counted(found.length, "metric")}</span>
      </div>
      {found.length === 0 && <Empty title={`No metric has "${search}" in its name, family, summary or inputs.`} />}
      {families.map((family) => (
        <section key={family} aria-label={family}>
          <h2>{family} <span class="soft">{found.filter((entry) => entry.family === family).length}</span></h2>
          <div class="catalog">
            {found.filter((entry) => entry.family === family).map((entry) => <Entry key={entry.name} entry={entry} isChosen={entry.name === chosen} />)}
          </div>
        </section>
      ))}
    </>
  );
}

function Entry({ entry, isChosen }: { entry: CatalogEntry; isChosen: boolean }) {
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isChosen) element.current?.scrollIntoView({ block: "center" });
  }, [isChosen]);
  const trust = Object.entries(entry.trust);
  const parameters = Object.entries(entry.parameters);
  return (
    <article class={`card catalog-entry ${isChosen ? "is-chosen" : ""}`} ref={element}>
      <div>
        <h3><code>{entry.name}</code></h3>
        <div class="chips">
          {entry.direction !== "none" && <Chip>{DIRECTIONS[entry.direction].mark} {DIRECTIONS[entry.direction].words}</Chip>}
          <Chip>{rangeText(entry)}</Chip>
          {entry.check && <Chip>a check: passes at 1.0</Chip>}
          {entry.extra && <Chip title={`${installCommand(entry.extra)} in a checkout of AgentUnit`}>needs {entry.extra}</Chip>}
        </div>
      </div>
      <div>
        <p>{entry.summary}</p>
        {entry.question && <p class="small"><span class="soft">People are asked:</span> {entry.question}</p>}
        <p class="small"><span class="soft">reads</span> {entry.inputs.join(", ") || "nothing"}</p>
        {parameters.length > 0 && (
          <details class="small"><summary>{counted(parameters.length, "parameter")}</summary>
            <dl class="facts">{parameters.map(([name, value]) => <div key={name}><dt><code>{name}</code></dt><dd><code>{JSON.stringify(value)}</code></dd></div>)}</dl>
          </details>
        )}
      </div>
      <dl class="trust-list small">
        {trust.map(([backend, words]) => (
          <div key={backend}>
            <dt>{backend || entry.backend} {entry.informational.includes(backend) && <Badge tone="soft">for information</Badge>}</dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </article>
  );
}

/** AgentUnit is on no index, where anybody could register its names: a checkout is what pip is asked to install. */
function installCommand(extra: string): string {
  if (extra === "local") return "pip install . ./packages/agentunit-local";
  return `pip install ".[${extra}]"`;
}

function rangeText(entry: CatalogEntry): string {
  const [low, high] = entry.range;
  const unit = entry.unit === "score" ? "" : ` ${entry.unit}`;
  if (low === null && high === null) return `any number${unit}`;
  return high === null ? `from ${low}${unit}` : low === null ? `up to ${high}${unit}` : `${low} to ${high}${unit}`;
}

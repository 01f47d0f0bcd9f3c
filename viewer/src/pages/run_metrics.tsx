// Metric cards: the value and how far to trust it. Amounts: what it all took.
import { href } from "../address";
import { CaseLinks } from "../components/case_link";
import { Badge, Verdict } from "../components/badges";
import { Distribution, IntervalBar, rangeOf, type Bin } from "../components/charts";
import { Tip } from "../components/tip";
import { count, DIRECTIONS, percent, plusMinus, quantity, score } from "../figures";
import type { Amount, LabeledRate, MetricCard, RunPage } from "../types";

export function Metrics({ page }: { page: RunPage }) {
  const scored = page.metrics.filter((card) => card.n_scored > 0);
  const main = scored.filter((card) => card.status === "ok");
  const aside = scored.filter((card) => card.status !== "ok");
  if (scored.length === 0) return null;
  return (
    <section aria-labelledby="metrics">
      <h2 id="metrics">Metrics</h2>
      <div class="cards">{main.map((card) => <Card key={`${card.metric} ${card.backend}`} page={page} card={card} />)}</div>
      {aside.length > 0 && (
        <details class="aside" open={main.length === 0}>
          <summary>{count(aside.length)} shown for information <span class="soft">(no gate counts them unless it names them)</span></summary>
          <div class="cards">{aside.map((card) => <Card key={`${card.metric} ${card.backend}`} page={page} card={card} />)}</div>
        </details>
      )}
      {page.notes.length > 0 && <ul class="lines small soft">{page.notes.map((note) => <li key={note}>{note}</li>)}</ul>}
    </section>
  );
}

function Card({ page, card }: { page: RunPage; card: MetricCard }) {
  const shown = card.amount ?? { unit: card.unit, mean: card.mean, low: card.low, high: card.high };
  const threshold = card.amount ? null : (card.thresholds.find((each) => each.aggregate === "mean")?.threshold ?? null);
  // A gate that found no value to look at says nothing about this one.
  const isDecided = (each: MetricCard["thresholds"][number]) =>
    page.gates.some((gate) => gate.metric === card.metric && gate.threshold === each.threshold && gate.value !== null);
  const isMissed = card.thresholds.some((each) => isDecided(each) && toneOf(each.word) === "bad");
  const range = card.amount ? rangeOf([shown.mean, shown.low, shown.high, card.amount.p95], card.amount.unit) : boundsOf(card, [shown.low, shown.high, threshold]);
  return (
    <article class="card metric">
      <header class="row apart">
        <h3><a href={href(["metrics"], { metric: card.metric })}>{card.metric}</a></h3>
        <span class="soft small nowrap" title={`scored by ${card.backend}, version ${card.version}`}>{card.backend}</span>
      </header>
      <p class="soft small metric-summary">{card.summary}</p>
      <p class="figure">
        <b>{quantity(shown.mean, shown.unit)}</b>
        <Tip text={card.interval ? `95 % interval: ${quantity(shown.low, shown.unit)} to ${quantity(shown.high, shown.unit)}, by ${card.interval}.` : "No interval is known."}>
          <span class="soft">{plusMinus(shown.mean, shown.low, shown.high, shown.unit) || "no interval"}</span>
        </Tip>
        <span class="soft small nowrap">{DIRECTIONS[card.direction].mark} {card.direction === "none" ? "" : DIRECTIONS[card.direction].words}</span>
      </p>
      <IntervalBar value={shown.mean} low={shown.low} high={shown.high} range={range} threshold={threshold} isBad={isMissed} />
      {card.thresholds.map((each) => (
        <p class="small threshold" key={`${each.aggregate} ${each.operator} ${each.threshold}`}>
          {isDecided(each) ? <Verdict word={each.word} /> : <Badge tone="warn" icon="?">not decided</Badge>} <code>{each.aggregate} {each.operator} {each.threshold}</code>
        </p>
      ))}
      {card.distribution && <Distribution bins={binsOf(card.distribution)} label={`${card.metric}, all scores`} />}
      <Figures card={card} />
      {card.labeled && <Labeled labeled={card.labeled} />}
      {card.trust && (
        <p class="small trust"><span class="soft">trust</span> <Tip text={card.trust_at_length || card.trust}>{card.trust}</Tip></p>
      )}
      {card.n_below_best > 0 && card.worst_cases.length > 0 && (
        <details class="small">
          <summary>{count(card.n_below_best)} could be better</summary>
          <CaseLinks run={page.line.id} ids={card.worst_cases} total={card.n_below_best} />
        </details>
      )}
    </article>
  );
}

function Figures({ card }: { card: MetricCard }) {
  const unit = card.amount?.unit ?? card.unit;
  const entries: [string, string][] = [["scored", card.n_scored === card.n_records ? count(card.n_scored) : `${count(card.n_scored)} of ${count(card.n_records)}`]];
  if (card.amount) entries.push(["p95", quantity(card.amount.p95, unit)], ["total", quantity(card.amount.total, unit)]);
  else if (card.unit === "score" || card.unit === "") {
    if (card.share_low !== null && card.cut !== null) {
      const share = card.direction === "lower" ? card.share_low : 1 - card.share_low;
      entries.push([`${card.direction === "lower" ? "above" : "at or above"} ${cutWords(card.cut)}`, percent(share)]);
    } else if (card.share_from_half !== null) entries.push(["at 0.5 or above", percent(card.share_from_half)]);
  } else entries.push(["median", quantity(card.p50, unit)], ["p95", quantity(card.p95, unit)]);
  if (card.pass_all !== null) entries.push([`pass^${card.n_repeats}`, score(card.pass_all)]);
  if (card.pass_any !== null) entries.push([`pass@${card.n_repeats}`, score(card.pass_any)]);
  if (card.within_case_sd !== null) entries.push(["sd within a case", score(card.within_case_sd)]);
  return <dl class="facts small">{entries.map(([name, text]) => <div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}</dl>;
}

/** A threshold, or the lowest and the highest where they differ from case to case. */
function cutWords([low, high]: [number, number]): string {
  return high - low < 0.0005 ? String(Number(low.toPrecision(3))) : `${low.toFixed(2)}–${high.toFixed(2)}`;
}

function Labeled({ labeled }: { labeled: LabeledRate }) {
  const who = `${count(labeled.n_labels)} of ${count(labeled.n_cases)} labeled by ${labeled.raters.join(", ") || "people"}` +
    (labeled.n_disagreed > 0 ? `; raters disagree on ${labeled.n_disagreed}` : "") +
    (labeled.alpha !== null ? `; Krippendorff's alpha ${score(labeled.alpha, 2)}` : "");
  return (
    <p class="small">
      <Tip text={`The rate that people would give over all cases, from the labels of some and the scores of all. ${who}. ${labeled.method}`}>
        labeled rate
      </Tip>{" "}
      {labeled.rate === null ? <span class="soft">{labeled.reason ?? "the labels cannot tell"}</span> : (
        <><b>{score(labeled.rate)}</b> <span class="soft">{plusMinus(labeled.rate, labeled.low, labeled.high, "score")}</span></>
      )}
    </p>
  );
}

export function Amounts({ amounts }: { amounts: Amount[] }) {
  if (amounts.length === 0) return null;
  return (
    <section aria-labelledby="amounts">
      <h2 id="amounts">Amounts</h2>
      <dl class="amounts">
        {amounts.map((amount) => (
          <div class="card" key={`${amount.name} ${amount.metric}`}>
            <dt class="soft small">{amount.name}</dt>
            <dd>
              <b>{quantity(amount.total, amount.unit)}</b>
              <div class="soft small">
                {quantity(amount.mean, amount.unit)} a case · p95 {quantity(amount.p95, amount.unit)}
                {amount.n_scored < amount.n_records && <> · known of {count(amount.n_scored)} of {count(amount.n_records)}</>}
              </div>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** The metric's own scale, where it has one. */
function boundsOf(card: MetricCard, others: (number | null)[]) {
  const [low, high] = card.range;
  if (low !== null && high !== null && high > low) return { least: low, most: high };
  return rangeOf([card.mean, card.p95, ...others], card.unit);
}

function binsOf({ low, high, counts }: { low: number; high: number; counts: number[] }): Bin[] {
  const step = (high - low) / counts.length;
  return counts.map((n, at) => ({ low: low + at * step, high: low + (at + 1) * step, n }));
}

function toneOf(word: string): "good" | "bad" | "warn" {
  const lower = word.toLowerCase();
  if (lower === "pass" || lower === "met") return "good";
  return lower.startsWith("fail") || lower.startsWith("error") || lower === "missed" ? "bad" : "warn";
}

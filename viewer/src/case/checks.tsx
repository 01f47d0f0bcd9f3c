// The checks of a case in all of its tries: which passed, which failed, and why.
import { href, place } from "../address";
import { count } from "../figures";
import type { CaseCheck, CaseDetail, CheckTry } from "../types";

const MOST_WHYS = 4;

export function Checks({ detail }: { detail: CaseDetail }) {
  if (detail.checks.length === 0) return null;
  return (
    <section class="card checks" aria-labelledby="checks-title">
      <h2 id="checks-title">Checks</h2>
      <ul>{detail.checks.map((check) => <Check key={check.check} detail={detail} check={check} />)}</ul>
    </section>
  );
}

function Check({ detail, check }: { detail: CaseDetail; check: CaseCheck }) {
  const n_failed = check.tries.filter((each) => !each.passed).length;
  const planned = check.tries.filter((each) => !each.again);
  const again = check.tries.filter((each) => each.again);
  const whys = [...new Set(check.tries.map((each) => each.why).filter(Boolean))];
  const said = n_failed === 0 ? `passed ${count(check.tries.length)} of ${count(check.tries.length)}` : `failed ${count(n_failed)} of ${count(check.tries.length)}`;
  return (
    <li>
      <div class="row">
        <b><bdi>{check.check}</bdi></b>
        <span class={n_failed > 0 ? "bad-text small" : "soft small"}>{said}</span>
      </div>
      <div class="row small tries">
        {planned.map((each) => <Try key={each.number} detail={detail} each={each} />)}
        {again.length > 0 && <span class="soft">tried again</span>}
        {again.map((each) => <Try key={each.number} detail={detail} each={each} />)}
      </div>
      {whys.slice(0, MOST_WHYS).map((why) => <p key={why} class="small" dir="auto">{why}</p>)}
      {whys.length > MOST_WHYS && <p class="soft small">and {count(whys.length - MOST_WHYS)} more</p>}
    </li>
  );
}

function Try({ detail, each }: { detail: CaseDetail; each: CheckTry }) {
  const words = `${each.again ? "try again" : "repeat"} ${each.number}: ${each.passed ? "passed" : each.why || "failed"}`;
  const sign = <><span aria-hidden="true">{each.passed ? "✓" : "✕"}</span><span class="sr">{words}</span></>;
  const look = `repeat ${each.passed ? "good-text" : "bad-text"}`;
  if (each.key === null) return <span class={look} title={words}>{sign}</span>;
  const address = href(["run", detail.run, "case", each.key], { tab: place.value.query.get("tab") });
  return <a class={look} href={address} title={words} aria-current={each.key === detail.key ? "page" : undefined}>{sign}</a>;
}

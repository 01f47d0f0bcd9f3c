"use strict";
// Everything below is built with createElement and textContent: what a case wrote can never become markup.
(() => {
  const index = JSON.parse(document.getElementById("index").textContent);
  const bodies = document.getElementById("bodies").textContent.split("\n").slice(1);
  const AT_ONCE = 100;
  const byId = (id) => document.getElementById(id);
  const rows = byId("rows"), count = byId("count"), more = byId("more");
  const search = byId("search"), only = byId("only"), order = byId("order"), which = byId("which");
  const several = index.runs.length > 1;

  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    for (const child of children) if (child !== null && child !== undefined) element.append(child);
    return element;
  }
  function drawn(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  // Numbers as the rest of the report writes them.
  function digits(value, unit) {
    if (unit === "score") return value.toFixed(2);
    if (unit === "USD") {
      return Math.abs(value) >= 10
        ? value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })
        : value.toFixed(4);
    }
    if (unit === "tokens" || Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(3)));
  }
  function quantity(value, unit) {
    const text = digits(value, unit);
    if (unit === "USD") return "$" + text;
    return unit === "score" || unit === "tokens" ? text : text + " " + unit;
  }
  function seconds(value) {
    if (value < 60) return value.toFixed(value < 10 ? 2 : 1) + " s";
    return Math.floor(value / 60) + " min " + Math.floor(value % 60) + " s";
  }
  // 0 is the worst a metric can say, 1 the best; null where its range has no ends or no direction.
  function goodness(value, metric) {
    if (value === null || metric.low === null || metric.high === null || metric.direction === "none") return null;
    if (metric.high <= metric.low) return null;
    const share = Math.min(1, Math.max(0, (value - metric.low) / (metric.high - metric.low)));
    return metric.direction === "lower" ? 1 - share : share;
  }
  function badness(value, metric) {
    if (value === null) return -Infinity;
    return metric.direction === "higher" ? -value : value;
  }
  function chip(value, status, metric) {
    if (status === "error") return make("span", "broken", "error");
    if (value === null || value === undefined) return make("span", "soft", "–");
    const good = goodness(value, metric);
    const shade = status === "informational" ? " aside" : good === null ? "" : " g" + Math.min(4, Math.floor(good * 5));
    const shown = make("span", "chip" + shade, quantity(value, metric.unit));
    if (status === "informational") shown.title = "informational";
    return shown;
  }

  // The list of cases.
  const shownMetrics = index.metrics.map((metric, at) => at).filter((at) => index.metrics[at].shown);
  let listed = [], rendered = 0, haystacks = null;

  function strings(value, into) {
    if (typeof value === "string") into.push(value);
    else if (typeof value === "number") into.push(String(value));
    else if (value && typeof value === "object") for (const each of Object.values(value)) strings(each, into);
    return into;
  }
  function haystack(at) {
    haystacks = haystacks || new Array(index.cases.length);
    if (haystacks[at] === undefined) {
      const entry = index.cases[at], body = bodyOf(at) || {};
      const { timeline, scores, answer_parts, expected_parts, pictures, ...rest } = body;
      const reasons = (scores || []).map((score) => score.reason || "");
      haystacks[at] = strings([entry.id, entry.query || "", rest, reasons], []).join("\n").toLowerCase();
    }
    return haystacks[at];
  }
  function bodyOf(at) {
    const line = bodies[at];
    return line ? JSON.parse(line) : null;
  }
  const filters = {
    all: () => true,
    newly: (entry) => entry.newly_failing,
    failed: (entry) => entry.failed,
    errors: (entry) => entry.failed || entry.statuses.includes("e"),
    imperfect: (entry) => entry.failed || entry.values.some((value, at) => {
      const good = entry.statuses[at] === "o" ? goodness(value, index.metrics[at]) : null;
      return good !== null && good < 1;
    }),
  };
  function update() {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const keep = filters[only.value] || filters.all;
    const run = which && which.value ? Number(which.value) : null;
    listed = [];
    index.cases.forEach((entry, at) => {
      if (run !== null && entry.run !== run) return;
      if (keep(entry) && words.every((word) => haystack(at).includes(word))) listed.push(at);
    });
    const by = order.value;
    if (by === "id") listed.sort((a, b) => index.cases[a].id.localeCompare(index.cases[b].id, "en", { numeric: true }));
    else if (by === "slow") listed.sort((a, b) => index.cases[b].elapsed_s - index.cases[a].elapsed_s);
    else if (by.startsWith("m")) {
      const metric = Number(by.slice(1));
      const key = (at) => badness(index.cases[at].values[metric], index.metrics[metric]);
      const keys = new Map(listed.map((at) => [at, key(at)]));
      listed.sort((a, b) => (keys.get(b) > keys.get(a)) - (keys.get(b) < keys.get(a)) || a - b);
    }
    rows.textContent = "";
    rendered = 0;
    renderMore();
    const total = index.cases.length.toLocaleString("en-US"), noun = index.repeated || several ? " records" : " cases";
    count.textContent = listed.length === index.cases.length ? index.size
      : listed.length.toLocaleString("en-US") + " of " + total + noun;
    for (const header of document.querySelectorAll("th[data-order]")) {
      if (header.dataset.order === by) header.setAttribute("aria-sort", "other"); else header.removeAttribute("aria-sort");
    }
  }
  function renderMore() {
    const next = listed.slice(rendered, rendered + AT_ONCE);
    rows.append(...next.map(rowOf));
    rendered += next.length;
    const left = listed.length - rendered;
    more.hidden = left <= 0;
    more.textContent = "Show " + Math.min(AT_ONCE, left) + " more of " + left.toLocaleString("en-US");
    if (!listed.length) rows.append(make("tr", "", Object.assign(make("td", "soft", "No case fits."), { colSpan: columns })));
  }
  const columns = 3 + shownMetrics.length;

  function rowOf(at) {
    const entry = index.cases[at];
    const button = make("button", "open mono", entry.id);
    button.type = "button";
    button.id = "open-" + at;
    button.setAttribute("aria-expanded", "false");
    const identity = make("td", "id", button);
    if (several) identity.append(" ", make("span", "soft", index.runs[entry.run].label));
    if (index.repeated) identity.append(make("span", "soft", " repeat " + entry.repeat));
    if (entry.failed) identity.append(" ", make("span", "tag", "failed"));
    const question = make("td", "", make("span", "clip", entry.query || ""));
    question.dataset.name = "question";
    question.dir = "auto";
    const row = make("tr", "row", identity, question);
    for (const number of shownMetrics) {
      const metric = index.metrics[number];
      const cell = make("td", "num", chip(entry.values[number], { e: "error", i: "informational" }[entry.statuses[number]], metric));
      cell.dataset.name = metric.name;
      row.append(cell);
    }
    const time = make("td", "num", seconds(entry.elapsed_s));
    time.dataset.name = "time";
    row.append(time);
    row.addEventListener("click", (event) => {
      // Somebody who marks text in a row does not want it opened.
      if (!event.target.closest("button") && String(getSelection())) return;
      toggle(row, at, button);
    });
    return row;
  }
  function toggle(row, at, button) {
    const next = row.nextElementSibling;
    if (next && next.classList.contains("body")) {
      next.remove();
      button.setAttribute("aria-expanded", "false");
      button.removeAttribute("aria-controls");
      return;
    }
    const cell = make("td", "", ...sections(at));
    cell.colSpan = columns;
    const body = make("tr", "body", cell);
    body.id = "case-" + at;
    row.after(body);
    button.setAttribute("aria-expanded", "true");
    button.setAttribute("aria-controls", body.id);
    try {
      history.replaceState(null, "", "#" + anchor(at));
    } catch (_) { /* a page opened from a file may not be allowed to */ }
  }
  function anchor(at) {
    const entry = index.cases[at];
    const run = several ? "/" + encodeURIComponent(index.runs[entry.run].id) : "";
    return encodeURIComponent(entry.id) + run + (index.repeated ? "/" + entry.repeat : "");
  }
  function openFromAddress() {
    const wanted = location.hash.slice(1);
    if (!wanted) return;
    const names = (entry) => [encodeURIComponent(entry.id), encodeURIComponent(entry.id) + "/" + encodeURIComponent(index.runs[entry.run].id)];
    const at = index.cases.findIndex((entry, each) => anchor(each) === wanted || names(entry).includes(wanted));
    if (at < 0) return;
    if (!listed.includes(at)) { search.value = ""; only.value = "all"; if (which) which.value = ""; update(); }
    while (!byId("open-" + at) && rendered < listed.length) renderMore();
    const button = byId("open-" + at);
    if (!button) return;
    if (button.getAttribute("aria-expanded") === "false") toggle(button.closest("tr"), at, button);
    button.scrollIntoView({ block: "start" });
    button.focus({ preventScroll: true });
  }

  // One case, opened.
  function sections(at) {
    const view = bodyOf(at);
    if (!view) {
      const command = "agentunit show " + index.runs[index.cases[at].run].id + " " + index.cases[at].id;
      return [make("p", "soft", "This run is too large for one page: ", make("code", "", command), " shows the case.")];
    }
    const out = [];
    const titled = (title, ...content) => out.push(make("section", "", make("h3", "", title), ...content));
    const cut = (list) => list.length < index.entries ? null : make("p", "soft", "only the first " + index.entries + " are in this page");
    if (view.failed || view.error) {
      const kind = view.failure ? " (" + view.failure + ")" : "";
      titled((view.failed ? "The agent failed" : "The agent reports an error") + kind, text(view.error || "no message", "error"));
    }
    (view.earlier_failures || []).forEach((each, number) => titled("Attempt " + (number + 1), text(each, "error")));
    if (view.user_failure) titled("Not scored", text(view.user_failure, "error"));
    if (view.turns) titled("Conversation", make("ol", "turns", ...view.turns.map(turn)), cut(view.turns));
    else if (view.query) titled("Question", text(view.query));
    if (view.recorded !== false && (!view.turns || view.expected)) out.push(answerAndExpected(view));
    if (view.context) titled("Context", make("ol", "passages", ...view.context.map((each) => make("li", "", text(each)))), cut(view.context));
    if (view.agents) titled("Agents", agents(view), ...(view.pictures || []).map(picture));
    if (view.tool_calls) titled("Tool calls", ...view.tool_calls.map(call), cut(view.tool_calls));
    if (view.timeline) titled("Timeline", timeline(view.timeline), cut(view.timeline));
    for (const [name, printed] of Object.entries(view.printed || {})) titled("Printed (" + name + ")", text(printed, "mono"));
    if (view.scores) titled("Scores", scores(view.scores));
    for (const [title, data] of [["State", view.state], ["Case metadata", view.case_metadata], ["Trace metadata", view.trace_metadata]]) {
      if (data && Object.keys(data).length) out.push(folded(title, data));
    }
    return out;
  }
  function text(content, className) {
    const shown = make("div", "text" + (className ? " " + className : ""), content);
    shown.dir = "auto";
    return shown;
  }
  function turn(each) {
    const said = (who, what) => make("div", "said", make("span", "soft", who), what);
    const parts = [said("user", text(each.query))];
    if (each.tool_calls) parts.push(said("tools", text(each.tool_calls.map((one) => one.name + (one.ok === false ? " ✗" : "")).join(", "), "soft")));
    parts.push(said("agent", each.answer === undefined ? text("(no answer)", "error") : text(each.answer)));
    if (each.expected) parts.push(said("expected", text(each.expected.join(" | "))));
    return make("li", "", ...parts);
  }
  function answerAndExpected(view) {
    const answer = view.answer === undefined ? make("p", "soft", "(none)") : text(marked(view.answer, view.answer_parts, "mine"));
    const pair = make("div", "pair", make("div", "", make("h3", "", "Answer"), answer));
    if (view.expected) {
      const shown = view.expected.length === 1
        ? [text(marked(view.expected[0], view.expected_parts, "theirs"))]
        : [make("ol", "passages", ...view.expected.map((each) => make("li", "", text(each))))];
      pair.append(make("div", "", make("h3", "", view.expected.length === 1 ? "Expected" : "Expected, any of"), ...shown));
    }
    return pair;
  }
  function marked(whole, parts, className) {
    if (!parts) return whole;
    const shown = document.createDocumentFragment();
    for (const [part, same] of parts) shown.append(same || !part.trim() ? part : make("mark", className, part));
    return shown;
  }
  function json(value) {
    if (typeof value === "string") return value;
    const short = JSON.stringify(value);
    return short.length <= 100 ? short : JSON.stringify(value, null, 2);
  }
  function call(each) {
    const state = each.ok === true ? "" : each.ok === false ? " bad" : " unknown";
    const word = each.ok === true ? "succeeded" : each.ok === false ? "failed" : "no status";
    const head = make("div", "", make("strong", "mono", each.name), " ", make("span", "soft", (each.agent ? "by " + each.agent + ", " : "") + (each.status || word)));
    const shown = make("div", "call" + state, head);
    if (each.arguments !== undefined) shown.append(make("pre", "", json(each.arguments)));
    if (each.error) shown.append(make("pre", "broken", each.error));
    if (each.result !== undefined) {
      shown.append(make("details", "", make("summary", "soft", "result"), make("pre", "", json(each.result))));
    }
    return shown;
  }
  function kindOf(entry) {
    if (entry.failed) return "kind-bad";
    if (entry.kind === "tool_call" || entry.kind === "retrieval") return "kind-tool";
    if (entry.kind === "llm_call") return "kind-llm";
    return entry.kind === "message" ? "kind-talk" : "kind-other";
  }
  function timeline(entries) {
    const span = Math.max(...entries.map((entry) => entry.offset_s || 0), 1e-9);
    let before = 0;
    return make("ol", "timeline", ...entries.map((entry) => {
      const at = entry.offset_s;
      const item = make("li", "", make("span", "at mono", at === undefined ? "" : "+" + at.toFixed(2) + " s"));
      item.append(make("span", "kind mono " + kindOf(entry), entry.kind), make("span", "what" + (entry.failed ? " broken" : ""), entry.label));
      if (at !== undefined) {
        // A bar reaches from the entry before to this one: what took long is what stands at its end.
        const start = Math.min(before, at) / span * 100, width = Math.max(0.8, Math.abs(at - before) / span * 100);
        item.append(drawn("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
          drawn("rect", { x: 0, y: 3, width: 100, height: 2, class: "track" }),
          drawn("rect", { x: Math.min(start, 99.2), y: 0, width, height: 8, class: kindOf(entry) })));
        before = at;
      }
      return item;
    }));
  }
  function agents(view) {
    const titles = ["agent", "messages", "calls", "failed", "tokens", "share", "linked to"];
    const share = (value) => value === null || value === undefined ? "–" : Math.round(value * 100) + " %";
    const body = make("tbody", "", ...view.agents.map((row) => make("tr", "", ...[
      row.agent, row.messages, row.tool_calls, row.outcomes ? row.failures + " of " + row.outcomes : "–",
      row.tokens === null || row.tokens === undefined ? "–" : row.tokens.toLocaleString("en-US"), share(row.share), share(row.centrality),
    ].map((value, at) => {
      const cell = make("td", at ? "num" : "", String(value));
      cell.dataset.name = titles[at];
      return cell;
    }))));
    const head = make("thead", "", make("tr", "", ...titles.map((title, at) => make("th", at ? "num" : "", title))));
    return make("div", "card agents", make("table", "wide", head, body));
  }
  // A picture comes as nested [tag, attributes, children]; what agents wrote stands in children only, as text.
  function built(node) {
    return typeof node === "string" ? node : drawn(node[0], node[1], ...node[2].map(built));
  }
  function picture(node) {
    const frame = make("div", "picture", built(node));
    // What can be scrolled must be within reach of the keyboard.
    frame.tabIndex = 0;
    return frame;
  }
  function scores(list) {
    const body = make("tbody", "");
    for (const score of list) {
      const metric = index.metrics.find((each) => each.name === score.metric) || { unit: "score", low: null, high: null, direction: "none" };
      const why = make("td", "");
      if (score.status !== "ok") why.append(make("div", score.status === "error" ? "broken" : "soft", score.status.replace("_", " ")));
      if (score.reason) why.append(make("div", "", score.reason));
      for (const each of Array.isArray((score.detail || {}).turns) ? score.detail.turns : []) {
        const of_turn = typeof each.value === "number" ? String(Math.round(each.value * 1e4) / 1e4) : each.reason || "–";
        why.append(make("div", "soft", "turn " + each.turn + ": " + of_turn));
      }
      const detail = Object.fromEntries(Object.entries(score.detail || {}).filter(([, value]) => value !== null));
      if (Object.keys(detail).length) {
        why.append(make("details", "detail", make("summary", "", "detail"), make("pre", "", json(detail))));
      }
      if (score.judge_calls) {
        const asked = "judge calls (" + score.judge_calls.length + ")";
        why.append(make("details", "detail", make("summary", "", asked), ...score.judge_calls.map(judgeCall)));
      }
      const value = make("td", "num", chip(score.value, score.status, metric));
      value.dataset.name = "value";
      const by = make("td", "soft", score.backend);
      by.dataset.name = "backend";
      const name = make("td", "mono", score.metric);
      name.title = metric.summary || "";
      body.append(make("tr", score.status === "informational" ? "aside" : "", name, value, by, why));
    }
    const head = make("thead", "", make("tr", "", ...["metric", "value", "backend", "why"].map((title) => make("th", title === "value" ? "num" : "", title))));
    return make("div", "card", make("table", "scores wide", head, body));
  }
  function judgeCall(each) {
    const { system, user, reply, problem, schema, ...facts } = each;
    const parts = [["instructions", system], ["asked", user], ["reply", reply], ["problem", problem]];
    const shown = parts.filter(([, said]) => said).map(([name, said]) => make("div", "", make("span", "soft", name), text(said, "mono")));
    return make("div", "", ...shown, make("pre", "", json(facts)));
  }
  function folded(title, data) {
    return make("details", "detail note", make("summary", "soft", title), make("pre", "text mono", json(data)));
  }

  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(update, 150); });
  only.addEventListener("change", update);
  order.addEventListener("change", update);
  if (which) which.addEventListener("change", update);
  more.addEventListener("click", () => {
    const last = rendered;
    renderMore();
    const button = byId("open-" + listed[last]);
    if (button) button.focus();
  });
  for (const header of document.querySelectorAll("th[data-order] button")) {
    header.addEventListener("click", () => { order.value = header.parentElement.dataset.order; update(); });
  }
  addEventListener("hashchange", openFromAddress);
  byId("browser").hidden = false;
  update();
  openFromAddress();
})();

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import combinations, pairwise, permutations
from math import hypot

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit import DatasetCase, Record, TraceEvent, TraceLog
from agentunit.addons.drawing._agent_positions import MOST_AGENTS, MOST_ARROWS, Circle
from agentunit.addons.drawing._shapes import label, n_units, shape
from agentunit.addons.drawing._timeline import MOST_MARKS
from agentunit.core.trace import AgentInteraction, HandoffEvent
from agentunit.multiagent import interaction_graph, timeline
from agentunit.multiagent.team import lanes_of, network_of

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted\" 'twice' & <b>",
    "]]><!-- -->",
    "\u202eknab\u202c",
    "בנק מרכזי",
    "x" * 300,
    "名" * 300,
    "\x00\x1b[31m\ud800\ufffe",
    "   ",
)


def trace(*messages, **more):
    """Messages of (sender, receiver) or (sender, receiver, success)."""
    return TraceLog(interactions=[AgentInteraction(a, b, success=(*ok, True)[0]) for a, b, *ok in messages], **more)


def read(picture):
    """The drawing as a strict XML parser finds it."""
    return ET.fromstring(picture.svg)


def of_class(root, name):
    return [each for each in root.iter() if name in each.get("class", "").split()]


def titles_of(root, name):
    """The tooltips of the groups in which something of a class is drawn."""
    groups = [each for each in root.iter(f"{SVG}g") if each.find(f"{SVG}title") is not None]
    return {group.findtext(f"{SVG}title") for group in groups if any(name in e.get("class", "") for e in group)}


def nodes(root):
    circles = (each for each in root.iter(f"{SVG}g") if each.find(f"{SVG}title") is not None)
    return [(float(c.get("cx")), float(c.get("cy")), float(c.get("r"))) for g in circles for c in g if c.get("r")]


@pytest.mark.parametrize("draw", [interaction_graph, timeline])
def test_hostile_names_stay_text(draw):
    events = [TraceEvent("tool_call", {"name": name, "agent": name, "status": "error"}) for name in HOSTILE]
    events += [TraceEvent("llm_call", {"model": name, "agent": name}) for name in HOSTILE]
    recorded = trace(*permutations(HOSTILE, 2), events=events)
    root = read(draw(recorded))
    known = {"svg", "title", "desc", "style", "g", "rect", "circle", "path", "polygon", "text"}
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= known
    attributes = {name for each in root.iter() for name in each.attrib}
    assert not {name for name in attributes if name.startswith("on") or name in ("href", "style", "id")}
    names = [text.text for text in of_class(root, "au-name")]
    assert len(names) == len(HOSTILE)
    assert max(map(n_units, names)) <= 24
    assert "<script>alert(1)</scrip…" in names
    assert not set("\x00\x1b\u202e\ufffe") & set("".join(root.itertext()))


@given(st.text(), st.integers(2, 40))
def test_a_label_fits_and_can_be_written_as_xml(text, most):
    shown = label(text, most)
    assert n_units(shown) <= most or shown == "(no name)"
    assert ET.fromstring(shape("text", "", shown, name=shown).markup()).text == shown


def test_bottlenecks_and_failures_are_marked_by_shape():
    root = read(interaction_graph(trace(("a", "hub"), ("hub", "b", False), ("b", "hub"), ("hub", "c", None))))
    diamonds = titles_of(root, "au-bottleneck")
    assert diamonds == {"hub: 2 sent, a bottleneck: without it, others cannot reach each other"}
    assert titles_of(root, "au-cross") == {"hub → b: 1 message, 1 failed"}
    assert "stroke-dasharray" in root.findtext(f"{SVG}style")
    explained = "".join(root.itertext())
    for word in ("some failed", "bottleneck: others need it", "messages sent"):
        assert word in explained


def test_marks_that_do_not_occur_are_neither_drawn_nor_explained():
    root = read(interaction_graph(trace(("a", "b"), ("b", "c"), ("c", "a"))))
    assert not of_class(root, "au-cross")
    assert not of_class(root, "au-bottleneck")
    assert "bottleneck" not in "".join(t for each in root if each.tag != f"{SVG}style" for t in each.itertext())


def test_busier_links_are_wider():
    root = read(interaction_graph(trace(*[("a", "b")] * 9, ("b", "a"))))
    groups = {g.findtext(f"{SVG}title"): g for g in root.iter(f"{SVG}g") if g.find(f"{SVG}path") is not None}
    widths = {title: float(g.find(f"{SVG}path").get("stroke-width")) for title, g in groups.items() if title}
    assert widths["a → b: 9 messages"] > widths["b → a: 1 message"]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 12, 13, 24, 25, 48, 60, MOST_AGENTS])
def test_agents_and_the_marks_around_them_never_touch(n):
    names = [f"agent {number}" for number in range(n)]
    events = [TraceEvent("tool_call", {"name": "x", "agent": name}) for name in names]
    root = read(interaction_graph(trace(*pairwise(names), events=events)))
    drawn = nodes(root)
    assert len(drawn) == n
    reach = Circle(n).reach
    for (x1, y1, r1), (x2, y2, r2) in combinations(drawn, 2):
        assert hypot(x1 - x2, y1 - y2) > max(r1 + r2, 2 * reach)
    # All of it lies on the sheet.
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(abs(x) + reach < width / 2 and abs(y) + reach < height / 2 for x, y, _ in drawn)


def test_too_many_agents_or_links_are_counted_not_dropped():
    names = [f"a{number}" for number in range(100)]
    words = "".join(read(interaction_graph(trace(*pairwise(names)))).itertext())
    assert f"the busiest {MOST_AGENTS} of 100 agents are drawn" in words
    mesh = list(permutations(names[:40], 2))
    assert len(mesh) > MOST_ARROWS
    root = read(interaction_graph(trace(*mesh, *mesh[:5], ("a7", "a9", False))))
    (thin,) = of_class(root, "au-thin")
    assert thin.get("d").count("M") == len(mesh) - 6
    assert f"thin lines: {len(mesh) - 6:,} links" in "".join(root.itertext())
    assert len(of_class(root, "au-cross")) >= 1


def test_the_same_run_is_drawn_the_same():
    messages = [(f"a{n % 7}", f"a{n * 3 % 7}", n % 5 > 0) for n in range(60)]
    for draw in (interaction_graph, timeline):
        assert draw(trace(*messages)).svg == draw(trace(*messages)).svg


@pytest.mark.parametrize("draw", [interaction_graph, timeline])
def test_nothing_to_draw_is_said(draw):
    assert "No event names an agent." in "".join(read(draw({})).itertext())


def test_screen_readers_are_told_what_is_drawn():
    root = read(interaction_graph(trace(("a", "b"), ("a", "b", False), ("b", "c"))))
    assert (root.get("role"), root[0].tag, root[1].tag) == ("img", f"{SVG}title", f"{SVG}desc")
    assert root[0].text == root.get("aria-label") == "Who writes to whom: 3 agents, 2 links, 3 messages"
    assert root[1].text == "a to b: 2, 1 failed; b to c: 1; bottlenecks: b."


def test_a_picture_shows_itself_and_is_saved(tmp_path):
    record = Record(DatasetCase("q"), trace(("a", "b")), "done")
    picture = interaction_graph(record)
    assert picture.svg in picture._repr_html_()
    assert picture.save(tmp_path / "team.svg").read_text(encoding="utf-8") == picture.svg
    with pytest.raises(ValueError, match=r"\.svg files; received 'team\.png'"):
        picture.save(tmp_path / "team.png")


def test_links_count_messages_handoffs_and_known_failures():
    recorded = trace(("a", "b"), ("a", "b", False), ("a", "b", None), ("a", "a"), ("a", ["b", "c"]))
    recorded.handoffs = [HandoffEvent("a", "b", success=False), HandoffEvent("c", "d", success=None)]
    network = network_of(recorded)
    assert [(each.sender, each.receiver, each.messages, each.handoffs, each.failed) for each in network.links] == [
        ("a", "b", 4, 1, 2),
        ("a", "c", 1, 0, 0),
        ("c", "d", 0, 1, 0),
    ]
    assert network.sent == {"a": 4}
    assert network.agents == ["a", "b", "c", "d"]


def events_of(*given):
    return [TraceEvent(kind, payload, at) for kind, payload, at in given]


def test_lanes_hold_messages_calls_and_model_calls_in_order_of_time():
    log = TraceLog(
        events_of(
            ("message", {"role": "assistant", "agent": "lead", "content": "Test it."}, 10.0),
            ("llm_call", {"agent": "tester", "model": "m"}, 12.0),
            ("tool_call", {"agent": "tester", "name": "pytest", "status": "error"}, 13.0),
            ("message", {"role": "assistant", "content": "nobody's"}, 13.5),
            ("message", {"role": "assistant", "agent": "tester", "content": "Broken."}, 11.0),
        ),
        interactions=[AgentInteraction("lead", "tester", content="Test it.", timestamp=10.0)],
        handoffs=[HandoffEvent("tester", "lead", success=False, timestamp=15.0)],
    )
    lanes = lanes_of(log)
    assert lanes.timed
    assert lanes.n_nameless == 1
    assert lanes.agents == ["lead", "tester"]
    assert [(m.agent, m.kind, m.step, m.to, m.at_s, m.failed) for m in lanes.marks] == [
        ("lead", "message", 0, ["tester"], 0.0, None),
        ("tester", "message", 3, [], 1.0, None),
        ("tester", "model", None, [], 2.0, None),
        ("tester", "call", 1, [], 3.0, True),
        ("tester", "handoff", None, ["lead"], 5.0, True),
    ]


def test_a_message_that_is_also_an_interaction_is_drawn_once():
    said = events_of(*[("message", {"role": "assistant", "agent": a, "content": "again"}, None) for a in "aab"])
    both = [AgentInteraction("a", "b", content="again"), AgentInteraction("a", "c", content="again", success=False)]
    lanes = lanes_of(TraceLog(said, interactions=[*both, AgentInteraction("c", "a", content="new")]))
    assert [(m.agent, m.to, m.failed) for m in lanes.marks] == [
        ("a", ["b"], None),
        ("a", ["c"], True),
        ("b", [], None),
        ("c", ["a"], False),
    ]
    assert not lanes.timed


def test_the_timeline_marks_failures_by_shape_and_stands_by_time_where_known():
    calls = [
        ("tool_call", {"agent": "a", "name": "x", "status": s}, at) for s, at in (("error", 0.0), ("success", 9.0))
    ]
    calls.append(("tool_call", {"agent": "a", "name": "y"}, 10.0))
    root = read(timeline(TraceLog(events_of(*calls))))
    assert titles_of(root, "au-cross") == {"step 0, tool call, failed, a: x"}
    marks = [g for g in root.iter(f"{SVG}g") if g.find(f"{SVG}title") is not None]
    first, second, third = (float(g.find(f"{SVG}rect").get("x")) for g in marks)
    assert (second - first) / (third - second) == pytest.approx(9, rel=0.05)
    assert marks[2].get("class") == "au-unknown"
    assert "10 s" in "".join(root.itertext())
    untimed = read(timeline(TraceLog(events_of(*[(kind, payload, None) for kind, payload, _ in calls]))))
    assert "by order" in "".join(untimed.itertext())


def test_lanes_do_not_overlap_and_lie_on_the_sheet():
    names = [f"agent {number}" for number in range(60)]
    root = read(timeline(trace(*pairwise(names))))
    levels = sorted(float(text.get("y")) for text in of_class(root, "au-name"))
    assert len(levels) == 60
    assert min(b - a for a, b in pairwise(levels)) >= 16
    assert levels[-1] < float(root.get("height"))
    places = [float(each.get("cx")) for each in of_class(root, "au-message") if each.get("cx") != "0"]
    assert len(places) == 59
    assert max(places) < float(root.get("width"))


def test_a_long_run_says_what_is_left_out():
    root = read(timeline(trace(*[("a", "b"), ("b", "a")] * MOST_MARKS)))
    assert f"{MOST_MARKS} of {2 * MOST_MARKS} marks are drawn" in "".join(root.itertext())

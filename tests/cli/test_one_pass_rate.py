"""A try in which the agent raised is a failure of the agent alone: all screens show the same pass rate of a metric."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

from agentunit.addons.viewer._library import Library

SUITE = """
from agentunit import Suite

CASES = [{"id": f"c{n}", "query": f"Where is order {n}?", "expected_output": f"Room {n}"} for n in range(60)]
seen = {}

def agent(case):
    number = int(case.id[1:])
    seen[number] = seen.get(number, 0) + 1
    if number % 15 == 0 or (number == 7 and seen[number] == 2):
        raise ValueError("no such order")
    return "no idea" if number % 14 == 1 else f"Room {number}"

suite = Suite(dataset=CASES, agent=agent, metrics=["exact_match"], name="rooms")
"""
RATE = 52 / 56


def test_every_screen_gives_the_same_pass_rate_of_a_run_in_which_the_agent_raised(invoke, tmp_path):
    Path("suite.py").write_text(SUITE)
    shown = {"run": json.loads(invoke("run", "suite.py", "--repeats", "2", "--concurrency", "1", "--json").stdout)}
    shown["show"] = json.loads(invoke("show", "last", "--json").stdout)
    rates = {}
    for command, data in shown.items():
        (row,) = data["summary"]["metrics"]
        rates[command] = row["mean"]
        assert (row["n_scored"], row["n_cases"]) == (111, 120)
    rates["doctor"] = json.loads(invoke("doctor", "last", "--json").stdout)["rate"]
    run_id = shown["run"]["run"]["id"]
    library = Library(str(tmp_path / ".agentunit" / "runs.db"))
    try:
        page = library.run_page(run_id, wait=True)
    finally:
        library.close()
    (card,) = page["metrics"]
    rates["viewer"] = card["mean"]
    assert page["line"]["metrics"][0]["mean"] == card["mean"]
    assert (page["n_cases"], page["n_repeats"], page["n_records"]) == (60, 2, 120)
    assert rates == dict.fromkeys(rates, rates["run"])
    assert round(rates["run"], 9) == round(RATE, 9)

    assert invoke("export", "last", "--to", "run.md").exit_code == 0
    lines = Path("run.md").read_text().splitlines()
    row = next(line for line in lines if line.startswith("| ") and "exact_match" in line)
    assert f"{RATE:.2f} [" in row
    assert invoke("export", "last", "--to", "run.xml").exit_code == 0
    properties = ElementTree.parse("run.xml").iter("property")
    value = next(each.get("value") or "" for each in properties if (each.get("name") or "").startswith("exact_match["))
    assert re.match(rf"{RATE:.6g}\b", value)


def test_every_command_says_the_size_of_a_run_in_cases_and_repeats(invoke):
    Path("suite.py").write_text(SUITE)
    ran = invoke("run", "suite.py", "--repeats", "2", "--concurrency", "1")
    assert "60 cases × 2 repeats" in ran.stdout
    said = [
        invoke("export", "last", "--to", "run.json").stdout,
        invoke("export", "last", "--to", "run.html").stdout,
        invoke("runs", "--import", "run.json", "--as", "copy").stdout,
        invoke("runs", "--delete", "copy").stdout,
    ]
    assert [text for text in said if "60 cases × 2 repeats" not in text] == []

"""Run ``scenarios/vercel.mjs``, the Vercel AI SDK in Node: ``python run_vercel.py ENVIRONMENT OUT.json [VARIANT]``.

ENVIRONMENT is a folder with the packages of ``environments/vercel.json``. No Python package is needed. Variant
``stream`` has the model's answers streamed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import support_desk as desk
from otlp_dump import without_machine_details
from scripted_openai import ScriptedOpenAI

EXPECTED = desk.expected(desk.TWO_AGENTS, ["triage", "billing"])


def record(environment: Path, out: Path, *variant: str) -> None:
    """Run the scenario and write its spans as one OTLP/JSON document."""
    told = {"question": desk.QUESTION, "model": desk.MODEL, "policy": desk.POLICY}
    told |= {"invoice": desk.INVOICE, "refused": desk.REFUSED}
    # Node looks for packages beside the script.
    script = shutil.copy(Path(__file__).parent / "scenarios" / "vercel.mjs", environment)
    facts = environment / "desk.json"
    facts.write_text(json.dumps(told), encoding="utf-8")
    with ScriptedOpenAI(desk.TWO_AGENTS) as model:
        command = ["node", script, model.base_url, str(facts), str(environment / "spans.json"), *variant]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.stdout.strip() != desk.ANSWER:
        raise SystemExit(f"the scenario answered {done.stdout!r}:\n{done.stderr[-4000:]}")
    spans = (environment / "spans.json").read_text(encoding="utf-8").replace(f"file://{environment.resolve()}/", "")
    document = without_machine_details(json.loads(spans))
    out.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
    known = Path(sys.argv[2]).with_name("vercel.expected.json")
    known.write_text(json.dumps(EXPECTED, indent=1) + "\n", encoding="utf-8")

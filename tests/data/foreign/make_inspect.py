"""Writes inspect.jsonl here: pip install inspect-ai==0.3.285, then python make_inspect.py"""

from pathlib import Path

from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser

samples = [
    Sample(id="refund", input="How long do refunds take?", target="Five working days.", metadata={"team": "billing"}),
    Sample(id="sky", input="What color is the sky?", choices=["green", "blue"], target="B"),
    Sample(
        id="chat",
        input=[ChatMessageSystem(content="You are terse.", id="m1"), ChatMessageUser(content="2 + 2?", id="m2")],
        target=["4", "four"],
    ),
    Sample(
        id="box", input="Find the flag.", target="flag", files={"flag.txt": "flag"}, setup="echo hi", sandbox="docker"
    ),
]
lines = [sample.model_dump_json(exclude_none=True) + "\n" for sample in samples]
(Path(__file__).parent / "inspect.jsonl").write_text("".join(lines))

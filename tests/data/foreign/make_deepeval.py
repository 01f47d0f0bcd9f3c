"""Writes deepeval.* here: pip install deepeval==4.3.1, then python make_deepeval.py"""

import os
from pathlib import Path

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"
from deepeval.dataset import ConversationalGolden, EvaluationDataset, Golden
from deepeval.test_case import ToolCall, Turn

HERE = str(Path(__file__).parent)
goldens = [
    Golden(
        input="How long do refunds take?",
        expected_output="Five working days.",
        context=["Refunds take five working days.", "Returns are free."],
        expected_tools=[ToolCall(name="look_up_order", input_parameters={"number": "A-1"})],
        additional_metadata={"team": "billing"},
        source_file="faq.md",
        comments="from the FAQ",
    ),
    Golden(
        input="Where is A-1042?",
        expected_output="On its way.",
        actual_output="It was sent.",
        retrieval_context=["A-1042 was sent on Monday."],
        tools_called=[ToolCall(name="look_up_order")],
    ),
]
for kind in ("json", "csv", "jsonl"):
    EvaluationDataset(goldens=goldens).save_as(file_type=kind, directory=HERE, file_name="deepeval")
conversation = ConversationalGolden(
    scenario="A customer asks for a refund.",
    expected_outcome="The refund is granted.",
    user_description="Impatient",
    turns=[Turn(role="user", content="I want my money back")],
)
EvaluationDataset(goldens=[conversation]).save_as(file_type="json", directory=HERE, file_name="deepeval_conversations")

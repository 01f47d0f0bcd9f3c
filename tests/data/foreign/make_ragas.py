"""Writes ragas*.jsonl and ragas.csv here.

pip install ragas==0.4.3 "langchain-community<0.4", then python make_ragas.py
"""

from pathlib import Path

from ragas.dataset_schema import EvaluationDataset, MultiTurnSample, SingleTurnSample
from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from ragas.testset.synthesizers.testset_schema import Testset, TestsetSample

HERE = Path(__file__).parent
single = SingleTurnSample(
    user_input="How long do refunds take?",
    reference="Five working days.",
    response="A week.",
    retrieved_contexts=["Refunds take five working days."],
    reference_contexts=["Refunds take five working days.", "It's free."],
)
EvaluationDataset(samples=[single]).to_jsonl(HERE / "ragas.jsonl")
EvaluationDataset(samples=[single]).to_csv(HERE / "ragas.csv")
turns = MultiTurnSample(
    user_input=[
        HumanMessage(content="Where is A-1?"),
        AIMessage(content="One moment.", tool_calls=[ToolCall(name="look_up", args={"number": "A-1"})]),
        ToolMessage(content="sent"),
        AIMessage(content="It was sent."),
    ],
    reference="It was sent.",
    reference_tool_calls=[ToolCall(name="look_up", args={"number": "A-1"})],
)
EvaluationDataset(samples=[turns]).to_jsonl(HERE / "ragas_turns.jsonl")
made = TestsetSample(eval_sample=single, synthesizer_name="single_hop")
Testset(samples=[made]).to_jsonl(HERE / "ragas_testset.jsonl")

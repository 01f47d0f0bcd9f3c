"""Write a record after docs/records.md: a question, two tool calls of which the second fails, and an answer.

The model took 210 + 40 tokens, 120 of them cached, and made 35 + 20, of them 8 of reasoning, for 0.0021 dollars.
"""

from __future__ import annotations

import json
from pathlib import Path

RECORD = {
    "v": 1,
    "case": {"id": "order-1042", "query": "Why was I charged twice for order A-1042?"},
    "trace": {
        "events": [
            {
                "type": "llm_call",
                "payload": {
                    "model": "gpt-4o-mini",
                    "agent": "support",
                    "usage": {
                        "prompt_tokens": 210,
                        "completion_tokens": 35,
                        "prompt_tokens_details": {"cached_tokens": 120},
                        "completion_tokens_details": {"reasoning_tokens": 8},
                    },
                    "cost": 0.0015,
                },
            },
            {
                "type": "tool_call",
                "payload": {
                    "name": "lookup_order",
                    "agent": "support",
                    "arguments": {"order_id": "A-1042"},
                    "status": "success",
                    "result": "two charges of 42.50 EUR",
                },
            },
            {
                "type": "tool_call",
                "payload": {
                    "name": "refund",
                    "agent": "support",
                    "arguments": {"charge_id": "ch_2"},
                    "status": "error",
                    "error": "refunds above 40 EUR need a supervisor",
                },
            },
            {
                "type": "llm_call",
                "payload": {
                    "model": "gpt-4o-mini",
                    "agent": "support",
                    "usage": {"prompt_tokens": 40, "completion_tokens": 20},
                    "cost": 0.0006,
                },
            },
        ],
        "agent_roles": {"support": {"name": "support"}},
    },
    "outcome": {"output": "The refund needs a supervisor.", "success": True},
}

if __name__ == "__main__":
    Path(__file__).with_name("support.jsonl").write_text(json.dumps(RECORD) + "\n", encoding="utf-8")

"""AutoGen: calls that the recorder of model clients of autogen-ext 0.7.5 (PyPI) wrote, of a client that replays."""

import asyncio
import sys
from pathlib import Path
from unittest.mock import MagicMock

# The recorder's package imports a vector store that the recorder does not use.
for name in ("chromadb", "chromadb.api", "chromadb.api.types", "chromadb.config"):
    sys.modules[name] = MagicMock()
from autogen_core import FunctionCall  # noqa: E402
from autogen_core.models import CreateResult, RequestUsage, SystemMessage, UserMessage  # noqa: E402
from autogen_ext.experimental.task_centric_memory.utils.chat_completion_client_recorder import (  # noqa: E402
    ChatCompletionClientRecorder,
)
from autogen_ext.models.replay import ReplayChatCompletionClient  # noqa: E402


def reply(content, n_in, n_out, reason="stop"):
    usage = RequestUsage(prompt_tokens=n_in, completion_tokens=n_out)
    return CreateResult(finish_reason=reason, content=content, usage=usage, cached=False)


async def main():
    call = FunctionCall(id="c1", name="lookup", arguments='{"order": "A-1"}')
    replies = [reply("Twice.", 205, 12), reply([call], 301, 17, "function_calls")]
    client = ReplayChatCompletionClient(replies)
    path = str(Path(__file__).with_name("session.json"))
    recorder = ChatCompletionClientRecorder(client, "record", path)
    system = SystemMessage(content="Be brief.")
    await recorder.create([system, UserMessage(content="How often was I charged?", source="User")])
    await recorder.create([system, UserMessage(content="Look at A-1.", source="User")])
    recorder.finalize()


asyncio.run(main())

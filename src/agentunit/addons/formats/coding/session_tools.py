"""The tools whose runs are lines by kind: pi, Copilot, Cursor, OpenCode, Cline, Kimi, Droid, OpenHands, and others."""

from __future__ import annotations

import re
from typing import Any

from agentunit.addons.formats.chats.loose_values import as_data, as_dict, as_list
from agentunit.addons.formats.coding.session_lines import Lines, lines_format
from agentunit.traces.formats_base import Opening

# The other blocks of messages are read as those of any provider.
_BLOCKS = {"assistant:thinking": "reason text=thinking"}


def _first(opening: Opening) -> dict[str, Any]:
    return as_dict(opening.value)


def _is_pi(opening: Opening) -> bool:
    line = _first(opening)
    message = as_dict(line.get("message"))
    # A session may have lost its first line.
    in_session = (
        line.get("type") == "message" and "parentId" in line and isinstance(message.get("timestamp"), (int, float))
    )
    return in_session or (line.get("type") == "session" and {"id", "timestamp", "cwd"} <= line.keys())


_PI = Lines(
    "pi",
    "sessions of pi and OpenClaw (JSONL)",
    _is_pi,
    kind="type message.role",
    steps={
        "session": "about session_id=id model=modelId",
        "model_change": "about model=modelId",
        "message:user": "parts list=message.content",
        "message:assistant": (
            "model model=message.model read=message.usage.input written=message.usage.output "
            "cached=message.usage.cacheRead cache_written=message.usage.cacheWrite cost=message.usage.cost.total; "
            "about error=message.errorMessage; parts list=message.content"
        ),
        "message:toolResult": (
            "result id=message.toolCallId name=message.toolName result=message.content failed=message.isError"
        ),
        "message:bashExecution": (
            "call name='bash' arguments=message.command; result name='bash' result=message.output "
            "exit_code=message.exitCode"
        ),
        "custom_message": "note text=content",
        "compaction": "note text=summary",
        **_BLOCKS,
    },
    silent="thinking_level_change custom label session_info branch_summary leaf title mode_change",
    known=(
        "id parentId timestamp version cwd provider thinkingLevel customType display details data attribution "
        "textSignature thoughtSignature firstKeptEntryId tokensBefore fromHook parentSession"
    ),
    time="timestamp message.timestamp",
    cache_on_top=True,
)  # fmt: skip


def _is_copilot(opening: Opening) -> bool:
    line = _first(opening)
    if line.get("type") == "session.start":
        return as_dict(line.get("data")).get("producer") == "copilot-agent" or "copilotVersion" in as_dict(
            line.get("data")
        )
    return isinstance(line.get("data"), dict) and "parentId" in line and b'"assistant.turn_start"' in opening.head


_COPILOT = Lines(
    "copilot-cli",
    "sessions of GitHub Copilot CLI (events.jsonl)",
    _is_copilot,
    kind="type",
    steps={
        "session.start": "about session_id=data.sessionId model=data.selectedModel",
        "session.resume": "about session_id=data.sessionId",
        "session.model_change": "about model=data.newModel",
        "session.error": "about error=data.message",
        "session.shutdown": "about exit_status=data.shutdownType; parts list=data.modelMetrics",
        "session.shutdown:*": (
            "total model=name read=usage.inputTokens written=usage.outputTokens cached=usage.cacheReadTokens "
            "cache_written=usage.cacheWriteTokens reasoning=usage.reasoningTokens"
        ),
        "system.message": "note text=data.content",
        "user.message": "prompt text=data.content",
        "assistant.reasoning": "reason text=data.content within=data.parentToolCallId",
        "assistant.message": (
            "reason text=data.reasoningText within=data.parentToolCallId; say text=data.content "
            "within=data.parentToolCallId; parts list=data.toolRequests within=data.parentToolCallId"
        ),
        "assistant.message:*": "call id=toolCallId name=name arguments=arguments",
        "assistant.message:function": "call id=toolCallId name=name arguments=arguments",
        "assistant.usage": (
            "model model=data.model read=data.inputTokens written=data.outputTokens cached=data.cacheReadTokens "
            "cache_written=data.cacheWriteTokens within=data.parentToolCallId"
        ),
        "tool.execution_start": (
            "call id=data.toolCallId name=data.toolName arguments=data.arguments server=data.mcpServerName "
            "within=data.parentToolCallId"
        ),
        "tool.execution_complete": (
            "result id=data.toolCallId succeeded=data.success result=data.result.content|data.result "
            "error=data.error.message|data.error"
        ),
        "subagent.started": "hand_over id=data.toolCallId to=data.agentName",
        "skill.invoked": "skill name=data.name",
    },
    silent=(
        "session.info session.warning session.idle session.title_changed session.mode_changed session.plan_changed "
        "session.workspace_file_changed session.handoff session.truncation session.snapshot_rewind session.usage_info "
        "session.usage_checkpoint session.compaction_start session.compaction_complete session.context_changed "
        "session.task_complete assistant.turn_start assistant.turn_end assistant.intent assistant.message_delta "
        "assistant.reasoning_delta assistant.thinking tool.execution_partial_result tool.execution_progress "
        "tool.user_requested subagent.completed subagent.failed subagent.selected hook.start hook.end abort "
        "permission.requested permission.completed pending_messages.modified"
    ),
    known=(
        "id parentId ephemeral agentId name requests usage type intentionSummary toolTitle mcpServerName totalNanoAiu "
        "tokenDetails"
    ),
)  # fmt: skip


def _with_attributes(line: dict[str, Any], place: int) -> dict[str, Any]:
    """In the log of an agent in VS Code, what was said is JSON as the text of an attribute."""
    return {**line, "attrs": {name: as_data(value) for name, value in as_dict(line.get("attrs")).items()}}


_COPILOT_CHAT = Lines(
    "copilot-chat",
    "debug logs of GitHub Copilot's agents in VS Code (main.jsonl)",
    lambda opening: {"ts", "sid", "spanId", "attrs"} <= opening.keys,
    kind="type",
    steps={
        "user_message": "prompt text=attrs.content",
        "agent_response": "parts list=attrs.response",
        "agent_response:*": "parts list=parts",
        "*:text": "say text=content",
        "*:thinking": "reason text=content",
        "*:reasoning": "reason text=content",
        "llm_request": (
            "model model=attrs.model read=attrs.inputTokens written=attrs.outputTokens cached=attrs.cachedTokens "
            "agent=attrs.agentName; about error=attrs.error"
        ),
        "tool_call": (
            "call id=spanId name=name arguments=attrs.args; result id=spanId result=attrs.result status=status "
            "error=attrs.error duration_ms=dur"
        ),
    },
    silent="session_start turn_start turn_end discovery generic child_session_ref hook *:tool_call",
    known="ts dur sid name status spanId parentSpanId attrs role finish_reason id arguments",
    time="ts",
    prepare=_with_attributes,
    session_of="sid",
)  # fmt: skip


def _is_cursor(opening: Opening) -> bool:
    line = _first(opening)
    if line.get("role") in ("user", "assistant"):  # a transcript: its lines have no type, its messages no role
        message = as_dict(line.get("message"))
        return isinstance(message.get("content"), list) and "role" not in message and "type" not in line
    # What its command prints begins as that of Claude Code, which lists its tools.
    return line.get("subtype") == "init" and {"apiKeySource", "permissionMode"} <= line.keys() and "tools" not in line


def _with_cursor_call(line: dict[str, Any], place: int) -> dict[str, Any]:
    """A call by the name of the only object in it: {"readToolCall": {"args": …, "result": {"success": …}}}."""
    for name, call in as_dict(line.get("tool_call")).items():
        called, result = as_dict(call), as_dict(as_dict(call).get("result"))
        name = called.get("name", name) if name == "function" else name
        outcome = {"id": line.get("call_id"), "name": name, "args": called.get("args", called.get("arguments"))}
        if result:
            outcome |= {"failed": "success" not in result, "result": next(iter(result.values()))}
        return {**line, "called": outcome}
    return line


_CURSOR = Lines(
    "cursor",
    "transcripts of Cursor's agents (JSONL), and the stream-json output of its command",
    _is_cursor,
    kind="type subtype role",
    steps={
        "system:init": "about session_id=session_id model=model",
        "user": "parts list=message.content",
        "assistant": "parts list=message.content",
        "tool_call": (
            "call id=called.id name=called.name arguments=called.args; result id=called.id failed=called.failed "
            "result=called.result exit_code=called.result.exitCode"
        ),
        "result": (
            "about exit_status=subtype; total read=usage.inputTokens written=usage.outputTokens "
            "cached=usage.cacheReadTokens cache_written=usage.cacheWriteTokens"
        ),
        **_BLOCKS,
    },
    silent="thinking",
    known=(
        "message session_id cwd apiKeySource permissionMode model_call_id timestamp_ms call_id tool_call duration_ms "
        "duration_api_ms is_error result request_id turn_id"
    ),
    time="timestamp_ms",
    cache_on_top=True,
    prepare=_with_cursor_call,
    session_of="session_id",
)  # fmt: skip


def _is_opencode(opening: Opening) -> bool:
    line = _first(opening)
    if "sessionID" in line and "part" in line:
        return line.get("type") in ("step_start", "text", "tool_use", "step_finish", "reasoning", "error")
    return {"info", "messages"} <= opening.keys and b'"sessionID"' in opening.head


_OPENCODE_TOOL = (
    "call id=callID|part.callID name=tool|part.tool arguments=state.input|part.state.input; result "
    "id=callID|part.callID result=state.output|part.state.output status=state.status|part.state.status "
    "error=state.error|part.state.error exit_code=state.metadata.exit|part.state.metadata.exit"
)  # fmt: skip
_OPENCODE = Lines(
    "opencode",
    "sessions of OpenCode: 'opencode export', and the output of 'opencode run --format json'",
    _is_opencode,
    kind="type info.role",
    steps={
        "file": "about session_id=info.id",
        "user": "parts list=parts",
        "user:text": "prompt text=text",
        "assistant": (
            "model model=info.modelID cost=info.cost read=info.tokens.input written=info.tokens.output "
            "reasoning=info.tokens.reasoning cached=info.tokens.cache.read cache_written=info.tokens.cache.write; "
            "about error=info.error.data.message|info.error.name; parts list=parts"
        ),
        "assistant:text": "say text=text",
        "assistant:reasoning": "reason text=text",
        "assistant:tool": _OPENCODE_TOOL,
        "text": "say text=part.text; about session_id=sessionID",
        "reasoning": "reason text=part.text",
        "tool_use": _OPENCODE_TOOL,
        "step_finish": (
            "model cost=part.cost read=part.tokens.input written=part.tokens.output "
            "reasoning=part.tokens.reasoning cached=part.tokens.cache.read cache_written=part.tokens.cache.write"
        ),
        "error": "about error=error.data.message|error.message|error.name|error",
    },
    silent=(
        "step_start user:file user:agent user:patch user:compaction assistant:step-start assistant:step-finish "
        "assistant:patch assistant:snapshot assistant:file assistant:agent assistant:compaction"
    ),
    known="info parts part id sessionID messageID time metadata synthetic ignored state",
    time="timestamp info.time.created",
    lists="messages",
    cache_on_top=True,
    reasoning_on_top=True,
    session_of="sessionID",
)  # fmt: skip


def _is_cline(opening: Opening) -> bool:
    line = _first(opening)
    return "ts" in line and line.get("type") in ("say", "ask") and line["type"] in line


def _with_cline_data(line: dict[str, Any], place: int) -> dict[str, Any]:
    """What a message says is text, or JSON as text; the first one is the task."""
    data = as_data(line.get("text"))
    kind = "task" if place == 0 and line.get("say") == "text" else line.get(str(line.get("type")))
    return {**line, "kind": kind, "data": data if isinstance(data, dict) else {"text": data}}


_CLINE_TOOL = "call name=data.tool arguments=data"
_CLINE = Lines(
    "cline",
    "tasks of Cline, Roo Code and Kilo Code (ui_messages.json)",
    _is_cline,
    kind="kind",
    steps={
        "task": "prompt text=data.text",
        "user_feedback": "prompt text=data.text",
        "text": "say text=data.text",
        "completion_result": "say text=data.text",
        "followup": "say text=data.question|data.text",
        "plan_mode_respond": "say text=data.response|data.text",
        "reasoning": "reason text=reasoning|data.text",
        "tool": _CLINE_TOOL,
        "command": "call name='execute_command' arguments=data.text",
        "use_mcp_server": "call name=data.toolName|data.uri arguments=data.arguments server=data.serverName",
        "browser_action": "call name='browser_action' arguments=data",
        "browser_action_launch": "call name='browser_action' arguments=data",
        "api_req_started": (
            "model model=modelInfo.modelId read=data.tokensIn written=data.tokensOut cached=data.cacheReads "
            "cache_written=data.cacheWrites cost=data.cost"
        ),
        "error": "note text=data.text",
        "api_req_failed": "about error=data.text",
    },
    silent=(
        "api_req_finished api_req_retried api_req_retry_delayed api_req_deleted deleted_api_reqs command_output "
        "checkpoint_created checkpoint_saved resume_task resume_completed_task mcp_server_request_started "
        "mcp_server_response mcp_notification browser_action_result task_progress load_mcp_documentation info "
        "shell_integration_warning condense_context user_feedback_diff diff_error clineignore_error None"
    ),
    known=(
        "ts say ask text partial images files modelInfo conversationHistoryIndex conversationHistoryDeletedRange "
        "lastCheckpointHash isCheckpointCheckedOut isOperationOutsideWorkspace commandCompleted data kind reasoning "
        "checkpoint contextCondense progressStatus apiProtocol isProtected metadata"
    ),
    time="ts",
    cache_on_top=True,
    prepare=_with_cline_data,
)  # fmt: skip


def _is_kimi(opening: Opening) -> bool:
    line = _first(opening)
    message = as_dict(line.get("message"))
    if line.get("type") == "metadata" and "protocol_version" in line:
        return True
    return "payload" in message and message.get("type") in ("TurnBegin", "StepBegin", "ContentPart")


_KIMI = Lines(
    "kimi",
    "sessions of Kimi CLI and Kimi Code (wire.jsonl)",
    _is_kimi,
    kind="kind",
    steps={
        "config.update": "about model=modelAlias; note text=systemPrompt",
        "turn.prompt": "parts list=input",
        "turn.prompt:text": "prompt text=text",
        "content.part": "parts list=event.part agent=agentId",
        "content.part:text": "say text=text",
        "content.part:think": "reason text=think|text",
        "tool.call": "call id=event.toolCallId name=event.name arguments=event.args agent=agentId",
        "tool.result": (
            "result id=event.toolCallId result=event.result.output "
            "failed=event.result.isError|event.result.is_error"
        ),
        "usage.record": (
            "model model=model agent=agentId read=usage.inputOther written=usage.output "
            "cached=usage.inputCacheRead cache_written=usage.inputCacheCreation"
        ),
        "turn.ended": "about exit_status=reason",
        # Until 2026 a line held a message with its payload.
        "TurnBegin": "prompt text=message.payload.user_input",
        "ContentPart": "parts list=message.payload",
        "ContentPart:text": "say text=text",
        "ContentPart:think": "reason text=think",
        "ToolCall": (
            "call id=message.payload.id name=message.payload.function.name "
            "arguments=message.payload.function.arguments"
        ),
        "ToolResult": (
            "result id=message.payload.tool_call_id result=message.payload.return_value.output "
            "failed=message.payload.return_value.is_error"
        ),
        "StatusUpdate": (
            "model read=message.payload.token_usage.input_other written=message.payload.token_usage.output "
            "cached=message.payload.token_usage.input_cache_read "
            "cache_written=message.payload.token_usage.input_cache_creation"
        ),
    },
    silent=(
        "metadata tools.set_active_tools step.begin step.end llm.tools_snapshot llm.request llm.response turn.begin "
        "turn.cancel turn.started permission.set_mode profile.bind plugin.session_start runtime.set_binding "
        "token_counting.measured token_counting.turn_recorded context.append_message message.appended StepBegin "
        "StepInterrupted TurnEnd CompactionBegin CompactionEnd ApprovalRequest ApprovalResponse ToolCallPart"
    ),
    known=("time timestamp message event agentId origin usageScope kind profileName thinkingEffort durationMs "
                   "turnId encrypted"),
    time="time timestamp",
    cache_on_top=True,
    prepare=lambda line, place: {
        **line,
        "kind": as_dict(line.get("event")).get("type") or as_dict(line.get("message")).get("type") or line.get("type"),
    },
)  # fmt: skip


def _is_droid(opening: Opening) -> bool:
    line = _first(opening)
    if line.get("type") == "session_start":
        return {"id", "title"} <= line.keys() or "owner" in line
    return line.get("subtype") == "init" and "reasoning_effort" in line and isinstance(line.get("tools"), list)


_DROID = Lines(
    "droid",
    "sessions of Factory's Droid (JSONL), and the stream-json output of 'droid exec'",
    _is_droid,
    kind="type message.role role",
    steps={
        "session_start": "about session_id=id",
        "message:user": "parts list=message.content; prompt text=text",
        "message:assistant": "parts list=message.content; say text=text",
        "compaction_state": "note text=summaryText",
        "system": "about session_id=session_id model=model",
        "reasoning": "reason text=text",
        "tool_call": "call id=id name=toolName|toolId arguments=parameters",
        "tool_result": "result id=id result=value failed=isError error=error.message",
        "completion": (
            "total read=usage.input_tokens written=usage.output_tokens cached=usage.cache_read_input_tokens "
            "cache_written=usage.cache_creation_input_tokens"
        ),
        "error": "about error=message",
        **_BLOCKS,
    },
    silent="todo_state session_end",
    known=(
        "id parentId message title sessionTitle owner cwd version role messageId session_id subtype tools "
        "reasoning_effort toolId finalText numTurns durationMs todos visibility hostId"
    ),
    cache_on_top=True,
    session_of="session_id",
)  # fmt: skip


def _is_openhands(opening: Opening) -> bool:
    line = _first(opening)
    events = [line, *(as_dict(each) for name in ("events", "history") for each in as_list(line.get(name))[:1])]
    return any(
        isinstance(each.get("kind"), str) and each["kind"].endswith(("Event", "Observation", "Action"))
        and each.get("source") in ("agent", "user", "environment", "hook")
        for each in events
    ) or "usage_to_metrics" in as_dict(line.get("stats"))  # fmt: skip


_OPENHANDS_TOTALS = (
    "total of=name model=model_name|accumulated_token_usage.model cost=accumulated_cost "
    "read=accumulated_token_usage.prompt_tokens written=accumulated_token_usage.completion_tokens "
    "cached=accumulated_token_usage.cache_read_tokens cache_written=accumulated_token_usage.cache_write_tokens "
    "reasoning=accumulated_token_usage.reasoning_tokens"
)  # fmt: skip
_OPENHANDS_CALL = (
    "reason text=reasoning_content; say text=thought; call id=tool_call_id|tool_call.id "
    "name=tool_name|tool_call.name arguments=tool_call.arguments|action"
)
_OPENHANDS = Lines(
    "openhands-v1",
    "conversations of OpenHands 1 and its SDK: their events as JSON or JSONL, and the output.jsonl of its evaluations",
    _is_openhands,
    kind="kind source action.kind",
    steps={
        "file": (
            "about session_id=instance_id|id question=instance.problem_statement|instruction "
            "model=agent.llm.model error=error; parts list=stats.usage_to_metrics; total of='metrics' "
            "cost=metrics.accumulated_cost read=metrics.accumulated_token_usage.prompt_tokens "
            "written=metrics.accumulated_token_usage.completion_tokens "
            "cached=metrics.accumulated_token_usage.cache_read_tokens"
        ),
        "file:*": _OPENHANDS_TOTALS,
        # The state of a conversation, which lies beside its events.
        "": "about session_id=id model=agent.llm.model; parts list=stats.usage_to_metrics",
        ":*": _OPENHANDS_TOTALS,
        "SystemPromptEvent": "note text=system_prompt.text",
        "MessageEvent:user": "prompt text=llm_message.content; parts list=activated_skills",
        "MessageEvent:agent": (
            "reason text=llm_message.reasoning_content|reasoning_content; say text=llm_message.content"
        ),
        "ActionEvent": _OPENHANDS_CALL,
        "ActionEvent:agent:FinishAction": f"{_OPENHANDS_CALL}; say text=action.message",
        "ObservationEvent": (
            "result id=tool_call_id name=tool_name result=observation.content|observation.text|observation.output "
            "failed=observation.is_error|observation.error "
            "exit_code=observation.exit_code|observation.metadata.exit_code"
        ),
        "AgentErrorEvent": "result status='error' id=tool_call_id name=tool_name result=error",
        "UserRejectObservation": "result status='error' id=tool_call_id name=tool_name result=rejection_reason",
        "ConversationErrorEvent": "about error=detail|code",
        "CondensationSummaryEvent": "note text=summary",
        "ConversationStateUpdateEvent": "parts list=value.usage_to_metrics|value.stats.usage_to_metrics",
        "environment:*": _OPENHANDS_TOTALS,
    },
    silent="Condensation CondensationRequest PauseEvent TokenEvent LLMCompletionLogEvent HookExecutionEvent",
    known=(
        "id timestamp parent_id source llm_message tools tool_name tool_call tool_call_id action action_id "
        "thinking_blocks llm_response_id security_risk summary extended_content activated_skills sender critic_result "
        "observation "
        "responses_reasoning_item key value dynamic_context classification costs token_usages response_latencies "
        "max_budget_per_task model_name agent stats instance metadata test_result git_patch attempt history events "
        "execution_status workspace confirmation_policy max_iterations persistence_dir stuck_detection "
        "security_analyzer activated_knowledge_skills blocked_actions blocked_messages secret_registry hook_config "
        "agent_state last_user_message_id metrics instruction kind"
    ),
    lists="events history",
)  # fmt: skip


def _is_codex_exec(opening: Opening) -> bool:
    line = _first(opening)
    first = as_dict(next(iter(as_list(line.get("events"))), line))
    if first.get("type") in ("thread.started", "session.created"):
        return "thread_id" in first or "session_id" in first
    return first.get("type") in ("turn.started", "item.started", "item.completed") and (
        first["type"] == "turn.started" or isinstance(as_dict(first.get("item")).get("type"), str)
    )


_CODEX_END = "result id=item.id status=item.status error=item.error.message"
_CODEX_EXEC = Lines(
    "codex-exec",
    "the output of 'codex exec --json' (JSONL)",
    _is_codex_exec,
    kind="item.type item.item_type type",
    steps={
        "thread.started": "about session_id=thread_id",
        "session.created": "about session_id=session_id",
        "turn.completed": (
            "total of='thread' read=usage.input_tokens written=usage.output_tokens "
            "cached=usage.cached_input_tokens reasoning=usage.reasoning_output_tokens"
        ),
        "turn.failed": "about exit_status='failed' error=error.message",
        "error": "about error=message",
        "agent_message:item.completed": "say text=item.text",
        "assistant_message:item.completed": "say text=item.text",
        "reasoning:item.completed": "reason text=item.text",
        "command_execution": (
            f"call id=item.id name=item.type|item.item_type arguments=item.command; {_CODEX_END} "
            "result=item.aggregated_output exit_code=item.exit_code"
        ),
        "file_change": f"call id=item.id name=item.type|item.item_type arguments=item.changes; {_CODEX_END}",
        "mcp_tool_call": (
            "call id=item.id name=item.tool arguments=item.arguments server=item.server; "
            f"{_CODEX_END} result=item.result.content|item.result"
        ),
        "collab_tool_call": (
            f"call id=item.id name=item.tool arguments=item.prompt; {_CODEX_END} result=item.agents_states"
        ),
        "web_search:item.completed": "call name=item.type|item.item_type id=item.id arguments=item.query",
        "error:item.completed": "note text=item.message",
    },
    silent="turn.started todo_list web_search agent_message reasoning",
    known="item usage",
    lists="events",
    time="timestamp",
)  # fmt: skip


_GEMINI_INIT = re.compile(rb'"type": ?"init", ?"timestamp"')


def _is_gemini_stream(opening: Opening) -> bool:
    line = _first(opening)
    if line.get("type") == "init" and {"session_id", "model", "timestamp"} <= line.keys():
        return True
    # The prompt may have been put before what the command printed.
    return (
        line.get("type") == "message"
        and "role" in line
        and b'"type": "init"' in opening.head.replace(b'"type":"init"', b'"type": "init"')
    )


_GEMINI_STREAM = Lines(
    "gemini-stream",
    "the stream-json output of Gemini CLI (JSONL)",
    _is_gemini_stream,
    kind="type role",
    steps={
        "init": "about session_id=session_id model=model",
        "message:user": "prompt text=content",
        "message:assistant": "say text=content more=delta",
        "tool_use": "call id=tool_id name=tool_name arguments=parameters",
        "tool_result": "result id=tool_id status=status result=output error=error.message",
        "error": "note text=message",
        "result": (
            "about exit_status=status error=error.message; total read=stats.input_tokens "
            "written=stats.output_tokens cached=stats.cached"
        ),
    },
    known="ts severity stats error",
)  # fmt: skip


def _as_antigravity_said(line: dict[str, Any], place: int) -> dict[str, Any]:
    """What the user said is between tags, beside what the program adds."""
    found = _ANTIGRAVITY_REQUEST.search(str(line.get("content")))
    return {**line, "content": found[1]} if found else line


_ANTIGRAVITY_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
_ANTIGRAVITY = Lines(
    "antigravity",
    "sessions of Antigravity (JSONL): its tools by the names of their steps",
    lambda opening: {"step_index", "source", "type", "created_at"} <= opening.keys,
    kind="source type",
    steps={
        "USER_EXPLICIT:USER_INPUT": "prompt text=content",
        "MODEL:PLANNER_RESPONSE": "reason text=thinking; say text=content",
        "MODEL": "call name=type; result name=type result=content status=status",
        "SYSTEM": "note text=content",
    },
    silent="SYSTEM:CONVERSATION_HISTORY",
    # The arguments of tools are in the plan, which does not say which step is whose.
    known="source type status created_at step_index tool_calls truncated_fields",
    time="created_at",
    prepare=_as_antigravity_said,
)
_OPENCLAW = Lines(
    "openclaw-telemetry",
    "telemetry of OpenClaw (JSONL)",
    lambda opening: (
        _first(opening).get("type") in ("message.in", "agent.start")
        and not opening.keys.isdisjoint(("channel", "sessionKey"))
    ),
    kind="type",
    steps={
        "message.in": "prompt text=content",
        "message.out": "say text=content",
        "tool.start": "call name=toolName arguments=params",
        "tool.end": "result name=toolName succeeded=success error=error duration_ms=durationMs",
        "agent.end": "about error=error",
    },
    silent="agent.start message.sending",
    known="channel from to contentLength metadata sessionKey agentId success durationMs",
)

PI = lines_format(_PI)
COPILOT_CLI = lines_format(_COPILOT)
COPILOT_CHAT = lines_format(_COPILOT_CHAT)
CURSOR = lines_format(_CURSOR)
OPENCODE = lines_format(_OPENCODE)
CLINE = lines_format(_CLINE)
KIMI = lines_format(_KIMI)
DROID = lines_format(_DROID)
OPENHANDS_V1 = lines_format(_OPENHANDS)
CODEX_EXEC = lines_format(_CODEX_EXEC)
GEMINI_STREAM = lines_format(_GEMINI_STREAM)
ANTIGRAVITY = lines_format(_ANTIGRAVITY)
OPENCLAW_TELEMETRY = lines_format(_OPENCLAW)

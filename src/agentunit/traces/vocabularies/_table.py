"""The vocabularies of spans as data: which attribute states which fact, and whose word counts first.

A vocabulary is a mapping of facts to attributes, best first. Vocabularies stand in the order in which their words
count; ``FIRST`` names the facts for which one of them counts before all others. Adding a vocabulary means adding rows.
An attribute is read as its fact is, unless it names a reader of its own: ``attribute:reader``. One of ``kind`` has to
name one, because every vocabulary has other words for kinds. ``attribute_rows.py`` has the facts and the readers; a row
that names anything else is refused when it is loaded. Numbered attributes end in ``#``, those by any name in ``*``.
"""

from __future__ import annotations

from agentunit.traces.vocabularies.values import SpanKind

VOCABULARIES: dict[str, dict[str, str]] = {
    "openinference": {
        "kind": "openinference.span.kind:plain_kind",
        "input": "input.value:shown",
        "output": "output.value:shown",
        "session_id": "session.id",
        "user_id": "user.id",
        "agent": "agent.name",
        "node": "graph.node.id",
        "model": "llm.model_name llm.response.model_name llm.request.model_name embedding.model_name",
        "provider": "llm.provider llm.system",
        "input_tokens": "llm.token_count.prompt",
        "output_tokens": "llm.token_count.completion",
        "total_tokens": "llm.token_count.total",
        "cached_tokens": "llm.token_count.prompt_details.cache_read",
        "written_tokens": "llm.token_count.prompt_details.cache_write",
        "reasoning_tokens": "llm.token_count.completion_details.reasoning",
        "cost": "llm.cost.total",
        "tool": "tool.name tool_call.function.name",
        "tool_call_id": "tool_call.id tool.id",
        "arguments": "tool_call.function.arguments",
        "parameters": "tool.parameters",
        "input_messages": "llm.input_messages.#",
        "output_messages": "llm.output_messages.#",
        "documents": "retrieval.documents.# reranker.output_documents.#",
        "tools": "llm.tools.# llm.tools",
        "metadata": "metadata",
    },
    "mlflow": {
        "kind": "mlflow.spanType:plain_kind",
        "input": "mlflow.spanInputs",
        "output": "mlflow.spanOutputs",
        "tool": "mlflow.spanFunctionName",
        "model": "mlflow.llm.model",
        "provider": "mlflow.llm.provider",
        "usage": "mlflow.chat.tokenUsage",
        "cost": "mlflow.llm.cost",
        "tools": "mlflow.chat.tools",
    },
    "trulens": {
        "kind": "ai.observability.span_type:plain_kind",
        "input": "ai.observability.record_root.input:as_it_is",
        "keywords": "ai.observability.call.kwargs.*",
        "output": "ai.observability.record_root.output:as_it_is ai.observability.call.return:as_it_is",
        "expected": "ai.observability.record_root.ground_truth_output:as_it_is",
        "model": "ai.observability.cost.model",
        "input_tokens": "ai.observability.cost.num_prompt_tokens",
        "output_tokens": "ai.observability.cost.num_completion_tokens",
        "total_tokens": "ai.observability.cost.num_tokens",
        "cost": "ai.observability.cost.cost",
        "currency": "ai.observability.cost.cost_currency",
        "query": "ai.observability.retrieval.query_text",
        "documents": "ai.observability.retrieval.retrieved_contexts",
        "metric": "ai.observability.eval.metric_name",
        "score": "ai.observability.eval_root.score ai.observability.eval.score",
    },
    "vercel": {
        "kind": "ai.operationId:vercel_operation",
        "tool": "ai.toolCall.name",
        "tool_call_id": "ai.toolCall.id",
        "arguments": "ai.toolCall.args ai.toolCall.input",
        "result": "ai.toolCall.result ai.toolCall.output",
        "model": "ai.response.model ai.model.id",
        "provider": "ai.model.provider",
        "input": "ai.prompt",
        "output": "ai.response.text:as_it_is ai.response.object",
        "input_messages": "ai.prompt.messages",
        "requests": "ai.response.toolCalls",
        "session_id": "ai.telemetry.metadata.sessionId",
        "user_id": "ai.telemetry.metadata.userId",
        "input_tokens": "ai.usage.promptTokens ai.usage.inputTokens ai.usage.tokens",
        "output_tokens": "ai.usage.completionTokens ai.usage.outputTokens",
        "total_tokens": "ai.usage.totalTokens",
        "cached_tokens": "ai.usage.cachedInputTokens ai.usage.inputTokenDetails.cacheReadTokens",
        "written_tokens": "ai.usage.inputTokenDetails.cacheWriteTokens",
        "reasoning_tokens": "ai.usage.reasoningTokens ai.usage.outputTokenDetails.reasoningTokens",
        "tools": "ai.prompt.tools",
        "function": "ai.telemetry.functionId",
    },
    "gen_ai": {
        "kind": "gen_ai.operation.name:operation llm.request.type:request_type",
        "session_id": "gen_ai.conversation.id session_id",
        "user_id": "enduser.id",
        "agent": "gen_ai.agent.name",
        "agent_description": "gen_ai.agent.description",
        "agent_id": "gen_ai.agent.id",
        "from_agent": "gen_ai.handoff.from_agent",
        "to_agent": "gen_ai.handoff.to_agent langgraph.command.goto_node",
        "model": "gen_ai.response.model gen_ai.request.model",
        "provider": "gen_ai.provider.name gen_ai.system",
        "input_tokens": "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens llm.usage.prompt_tokens",
        "output_tokens": "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens llm.usage.completion_tokens",
        "total_tokens": "gen_ai.usage.total_tokens llm.usage.total_tokens",
        "cached_tokens": "gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_read_input_tokens "
        "gen_ai.usage.details.cache_read_tokens gen_ai.usage.details.cached_tokens",
        "written_tokens": "gen_ai.usage.cache_creation.input_tokens gen_ai.usage.cache_creation_input_tokens "
        "gen_ai.usage.cache_write_input_tokens gen_ai.usage.details.cache_write_tokens",
        "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens gen_ai.usage.reasoning_tokens "
        "llm.usage.reasoning_tokens gen_ai.usage.details.reasoning_tokens gen_ai.usage.details.thoughts_tokens",
        "cost": "gen_ai.usage.cost operation.cost gen_ai.usage.total_cost",
        "cost_part": "gen_ai.usage.input_cost gen_ai.usage.output_cost",
        "system": "gen_ai.system_instructions",
        "input_messages": "gen_ai.input.messages input_messages gen_ai.prompt.# request_data:asked_messages",
        "output_messages": "gen_ai.output.messages output_messages gen_ai.completion.# response_data:answered_messages",
        "history": "pydantic_ai.all_messages all_messages_events",
        "noted": "events",
        "output": "final_result:as_it_is",
        "tool": "gen_ai.tool.name",
        "tool_call_id": "gen_ai.tool.call.id",
        "arguments": "gen_ai.tool.call.arguments tool_arguments gcp.vertex.agent.tool_call_args",
        "result": "gen_ai.tool.call.result tool_response gcp.vertex.agent.tool_response",
        "error": "error.message",
        "status": "gen_ai.tool.status tool.status",
        "query": "gen_ai.retrieval.query.text",
        "documents": "gen_ai.retrieval.documents",
        "tools": "gen_ai.tool.definitions gen_ai.request.tools llm.request.functions.#",
        "server": "gen_ai.tool.server.name",
        "usage": "gen_ai.usage.raw",
    },
    # OpenTelemetry's conventions, which use the words of gen_ai for the rest, and Sentry's, Traceloop's and OpenLIT's.
    "mcp": {
        "kind": "mcp.method.name:mcp_method mcp.method:mcp_method",
        "tool": "mcp.tool.name",
        "arguments": "mcp.tool.arguments mcp.request.argument",
        "keywords": "mcp.request.argument.*",
        "result": "mcp.tool.result mcp.tool.result.content mcp.response.value",
        "server": "mcp.server.name fastmcp.server.name",
        "server_version": "mcp.server.version",
        "tool_version": "fastmcp.component.key:version_after_at",
        "is_error": "mcp.tool.result.is_error",
    },
    "haystack": {
        "kind": "haystack.component.type:haystack_component",
        "node": "haystack.component.name",
        "input": "haystack.agent.input haystack.component.input haystack.pipeline.input_data",
        "output": "haystack.agent.output haystack.component.output haystack.pipeline.output_data "
        "haystack.agent.step.llm.output",
        "tool": "haystack.tool.name",
        "arguments": "haystack.agent.step.tool.input",
        "result": "haystack.agent.step.tool.output",
        "is_error": "haystack.tool.error",
        "tools": "haystack.agent.tools",
    },
    "openllmetry": {
        "kind": "traceloop.span.kind:plain_kind ioa_observe.span.kind:plain_kind",
        "entity": "traceloop.entity.name ioa_observe.entity.name",
        "input": "traceloop.entity.input:entity_inputs ioa_observe.entity.input:entity_inputs",
        "output": "traceloop.entity.output:entity_outputs ioa_observe.entity.output:entity_outputs",
        "session_id": "traceloop.association.properties.session_id traceloop.association.properties.thread_id",
        "lc_agent": "traceloop.association.properties.lc_agent_name ioa_observe.association.properties.lc_agent_name",
        "lc_path": "traceloop.association.properties.langgraph_checkpoint_ns "
        "ioa_observe.association.properties.langgraph_checkpoint_ns",
    },
    "langsmith": {
        "kind": "langsmith.span.kind:plain_kind",
        "session_id": "langsmith.metadata.thread_id langsmith.metadata.session_id",
        "usage": "langsmith.usage_metadata",
    },
    "langfuse": {
        "kind": "langfuse.observation.type:plain_kind_but_span",
        "input": "langfuse.observation.input",
        "output": "langfuse.observation.output",
        "model": "langfuse.observation.model.name",
        "usage": "langfuse.observation.usage_details",
        "cost": "langfuse.observation.cost_details",
        "metadata": "langfuse.observation.metadata",
        "tools": "langfuse.observation.tool_definitions",
        "session_id": "langfuse.session.id",
        "user_id": "langfuse.user.id",
        "expected": "langfuse.experiment.item.expected_output",
    },
    # What a platform writes on one span about the whole trace counts last.
    "whole trace": {
        "input": "langfuse.trace.input",
        "output": "langfuse.trace.output",
        "trace_total_cost": "langfuse.trace.total_cost mlflow.trace.cost",
        "session_id": "mlflow.trace.session",
        "user_id": "mlflow.trace.user",
        "expected": "mlflow.trace.assessments:expectation",
        "usage": "mlflow.trace.tokenUsage",
    },
}
# A platform computes these itself, or was told them, and shows them to its users.
FIRST = {"usage": "langfuse", "cost": "langfuse"}
# Vocabularies that keep the messages of a model call as plain data, in its input and output.
PLAIN_DATA = frozenset(("mlflow", "langfuse", "whole trace"))
# Vocabularies whose session counts on any span, because no other software writes their words.
ABOUT_TRACE = frozenset(("langfuse", "whole trace"))

OPERATIONS: dict[str, SpanKind] = {
    "vector_db_retrieve": "retrieval", "execute_task": "chain", "chat": "llm", "generate_content": "llm",
    "text_completion": "llm", "completion": "llm", "embeddings": "embedding", "retrieval": "retrieval",
    "execute_tool": "tool", "invoke_agent": "agent", "invoke_workflow": "chain", "create_agent": "chain",
    "handoff": "handoff", "transfer_to_agent": "handoff", "agent_handoff": "handoff", "goto": "handoff",
}  # fmt: skip
PLAIN_KINDS: dict[str, SpanKind] = {
    "llm": "llm", "chat_model": "llm", "generation": "llm", "tool": "tool", "mcp": "tool", "retriever": "retrieval",
    "retrieval": "retrieval", "reranker": "retrieval", "reranking": "retrieval", "agent": "agent",
    "embedding": "embedding", "evaluator": "evaluation", "eval": "evaluation", "eval_root": "evaluation",
    "handoff": "handoff",
}  # fmt: skip
# Spans of Haystack that no attribute tells apart.
SPAN_NAMES: dict[str, SpanKind] = {
    "haystack.agent.run": "agent", "haystack.agent.step": "chain", "haystack.agent.step.llm": "llm",
    "haystack.agent.step.tool": "tool", "haystack.pipeline.run": "chain", "haystack.component.run": "chain",
    "haystack.async_pipeline.run": "chain",
}  # fmt: skip
REQUEST_TYPES: dict[str, SpanKind] = {
    "chat": "llm", "completion": "llm", "embedding": "embedding", "rerank": "embedding",
}  # fmt: skip

TOKENS = ["input_tokens", "output_tokens", "total_tokens", "cached_tokens", "written_tokens", "reasoning_tokens"]
TOKEN_NAMES: dict[str, str] = {
    "input_tokens": "input_tokens input prompt_tokens promptTokens inputTokens inputUsage",
    "output_tokens": "output_tokens output completion_tokens completionTokens outputTokens outputUsage",
    "total_tokens": "total_tokens total totalTokens totalUsage",
    "cached_tokens": "cache_read_input_tokens cached_prompt_tokens input_cached_tokens input_cache_read "
    "cached_input_tokens prompt_details.cache_read cache_read cachedInputTokens cached_tokens "
    "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens input_token_details.cache_read",
    "written_tokens": "cache_creation_input_tokens input_cache_creation prompt_details.cache_write "
    "input_cache_write cache_write_input_tokens cache_creation cache_write "
    "prompt_tokens_details.cache_write_tokens input_token_details.cache_creation",
    "reasoning_tokens": "output_reasoning output_reasoning_tokens completion_details.reasoning reasoning_tokens "
    "reasoningTokens reasoning completion_tokens_details.reasoning_tokens output_tokens_details.reasoning_tokens "
    "output_token_details.reasoning",
}
"""What the parts of a mapping of token counts are called, by their fact."""

UNUSED_TOKENS = frozenset(
    (
        "unit", "input_audio", "output_audio", "prompt_details.audio", "completion_details.audio", "input_text",
        "output_text", "input_audio_tokens", "output_audio_tokens", "accepted_prediction_tokens",
        "rejected_prediction_tokens", "successful_requests",
    )
)  # fmt: skip
"""Parts of such a mapping that the others include already."""

# Known, and of no use to any metric: settings, ids, formats, and how processes and networks describe themselves.
UNUSED_WORDS = """
    input.mime_type output.mime_type llm.finish_reason llm.invocation_parameters llm.headers llm.is_streaming
    gen_ai.is_streaming gen_ai.output.type gen_ai.tool.type gen_ai.tool.description tool.description tool.json_schema
    error.type error error.stack model_name agent_name agent_id agent_key crew_id crew_key crew_agents crew_tasks
    crew_inputs task_id task_key task_description task_expected_output team_id event_id parent_event_id message
    participant_names participant_descriptions message_context tools temperature model_request_parameters
    recipient_agent_class recipient_agent_type sender_agent_class sender_agent_type agent.goal agent.backstory
    agent.tools tool.agent_role tool.cache_function tool.current_usage_count tool.description_updated
    tool.result_as_answer tool.run_attempts tool.task_name langgraph.command.source_node operation.name resource.name
    tag.tags public_key session.name event.name system_fingerprint
    ai.response.finishReason ai.response.id ai.response.timestamp ai.response.providerMetadata
    ai.response.msToFirstChunk ai.response.msToFinish ai.response.avgOutputTokensPerSecond
    ai.response.avgCompletionTokensPerSecond ai.value name llm.prompts ioa_start_time
    gen_ai.sdk.version gen_ai.client.operation.duration gen_ai.client.token.usage gen_ai.environment
    gen_ai.application_name gen_ai.tool.json_schema gen_ai.tool.args
    async mlflow.experimentId mlflow.traceRequestId mlflow.spanStartTimeNs mlflow.spanLogLevel mlflow.message.format
    mlflow.traceName mlflow.traceInputs mlflow.traceOutputs mlflow.traceSpans mlflow.sourceRun mlflow.user mlflow.source
    mlflow.artifactLocation mlflow.chat.messages mlflow.trace.spansLocation mlflow.trace.sizeStats
    mlflow.trace.sizeBytes mlflow.trace.state mlflow.trace.infoFinalized mlflow.trace.client_request_id
    mlflow.tracing.provider
    langfuse.trace.name langfuse.trace.tags langfuse.trace.public langfuse.trace.metadata langfuse.trace.latency
    langfuse.trace.scores langfuse.observation.level langfuse.observation.status_message langfuse.environment
    langfuse.release langfuse.version langfuse.internal.as_root langfuse.internal.is_app_root
    langfuse.observation.completion_start_time langfuse.observation.model.parameters langfuse.observation.prompt.name
    langfuse.observation.prompt.version langfuse.observation.tool_calls langfuse.observation.tool_call_names
    langfuse.experiment.id langfuse.experiment.name langfuse.experiment.metadata
    langfuse.experiment.dataset.id langfuse.experiment.item.id langfuse.experiment.item.metadata
    langfuse.experiment.item.root_observation_id
    langsmith.span.id langsmith.trace.id langsmith.span.dotted_order langsmith.span.parent_id langsmith.trace.session_id
    langsmith.trace.session_name langsmith.trace.name langsmith.metadata langsmith.span.tags langsmith.trace.tags
    langsmith.span.runtime langsmith.request.streaming langsmith.request.headers
    crewai.subject crewai.execution_uuid crewai.event_name crewai.agent.role crewai.agent.key crewai.task.id
    crewai.task.key crewai.task.name crewai.task.description crewai.task.expected_output crewai.task.output
    crewai.task.output_format crewai.task.output_json_produced crewai.task.output_pydantic_produced crewai.crew.id
    crewai.crew.key crewai.crew.name crewai.crew.inputs crewai.crew.output crewai.crew.process crewai.crew.num_tasks
    crewai.crew.num_agents crewai.crew.usage_metrics crewai.crew.execution_duration_ms crewai.agent.llm_calls_count
    crewai.agent.execution_duration_ms crewai.llm.call_id crewai.llm.call_type crewai.llm.callbacks
    crewai.llm.available_functions crewai.tool.from_cache crewai.tool.failure.code crewai.tool.failure.message
    crewai.tool.failure.policy crewai.tool.failure.reason crewai.tool.failure.retryable
    mcp.session.id mcp.protocol.version mcp.resource.uri mcp.request.id mcp.transport mcp.server.title mcp.server.origin
    mcp.tool.result.content_count mcp.session.init_options mcp.tool.description mcp.message_id mcp.jsonrpc_version
    mcp.transport.type mcp.operation.name mcp.system mcp.sdk.version mcp.client.operation.duration gen_ai.prompt.name
    fastmcp.component.type fastmcp.provider.type fastmcp.session.id fastmcp.span.seam
    haystack.agent.step haystack.agent.step.llm.input haystack.agent.max_steps haystack.agent.exit_conditions
    haystack.agent.state_schema haystack.agent.steps_taken haystack.tool.description
    ai.values ai.embedding ai.embeddings ai.schema ai.schema.name ai.schema.description ai.prompt.toolChoice
"""
UNUSED_FAMILIES = """
    http. url. net. network. server. client. rpc. user_agent. thread. telemetry. code. process. host. os. otel. k8s.
    container. cloud. deployment. db. messaging. exception. peer. service. faas. logfire. openinference. jsonrpc.
    gen_ai.request. gen_ai.response. gen_ai.openai. gen_ai.conversation. gen_ai.workflow. gen_ai.task.
    gen_ai.aggregated_usage. gen_ai.usage.details. gen_ai.agent. gen_ai.event. gen_ai.input.messages.
    gen_ai.output.messages. llm.request. llm.cost. llm.token_count. llm.prompt_template. llm.usage. prompt. embedding.
    reranker. graph.node. smolagents. ag2. pydantic_ai. gcp.vertex. traceloop. ioa_observe. ai.observability.
    ai.telemetry. ai.settings. ai.request. ai.model. mlflow.tags. mlflow.source. mlflow.trace_schema.
    langfuse.observation.metadata. langfuse.trace.metadata. langfuse.observation.model.parameters. langsmith.metadata.
    haystack.component. haystack.pipeline. tool.parameters. gen_ai.serialized. gen_ai.ioa. gen_ai.server. execution.
    koog. event_loop.
"""
# A span with a word of these is a step of an agent, whatever else it says.
OURS = ("gen_ai.", "traceloop.", "llm.request.type", "ioa_observe.")

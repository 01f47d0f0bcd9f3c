// Spans of the Vercel AI SDK (npm: ai 6.0.326) in memory, as @opentelemetry/sdk-trace-base 2.12.0 holds them, as JSON.
import { writeFileSync } from 'node:fs';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { context } from '@opentelemetry/api';
import { generateText, stepCountIs, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const usage = (input, output, cached, reasoning) => ({
  inputTokens: { total: input, noCache: input - cached, cacheRead: cached, cacheWrite: 0 },
  outputTokens: { total: output, text: output - reasoning, reasoning },
});
const call = (id, name, input) => ({ type: 'tool-call', toolCallId: id, toolName: name, input: JSON.stringify(input) });
const replies = [
  { content: [call('c1', 'lookup', { order: 'A-1' })], finishReason: { unified: 'tool-calls', raw: 'tool_calls' }, usage: usage(211, 17, 0, 0) },
  { content: [call('c2', 'refund', { charge: 'ch_2' })], finishReason: { unified: 'tool-calls', raw: 'tool_calls' }, usage: usage(287, 63, 192, 24) },
  { content: [{ type: 'text', text: 'The second charge is refunded by a supervisor.' }], finishReason: { unified: 'stop', raw: 'stop' }, usage: usage(352, 31, 256, 8) },
];
let turn = 0;
const model = new MockLanguageModelV3({
  provider: 'mock', modelId: 'mock-model', doGenerate: async () => ({ ...replies[turn++], warnings: [] }),
});
await generateText({
  model,
  prompt: 'Why was I charged twice?',
  stopWhen: stepCountIs(5),
  tools: {
    lookup: tool({ inputSchema: z.object({ order: z.string() }), execute: async () => 'ch_1, ch_2' }),
    refund: tool({ inputSchema: z.object({ charge: z.string() }), execute: async () => { throw new Error('refunds need a supervisor'); } }),
  },
  experimental_telemetry: { isEnabled: true, tracer: provider.getTracer('ai'), functionId: 'support' },
});
const plain = (span) => ({ ...span, spanContext: span.spanContext(), _spanContext: undefined, _spanProcessor: undefined, resource: undefined, _spanLimits: undefined });
const spans = exporter.getFinishedSpans();
for (const span of spans) for (const event of span.events) if (event.attributes) delete event.attributes['exception.stacktrace'];
for (const span of spans) for (const name of Object.keys(span.attributes)) if (name.startsWith('ai.prompt.tools') || name.startsWith('ai.request.headers')) delete span.attributes[name];
writeFileSync('objects.json', JSON.stringify(spans.map(plain), null, 1) + '\n');

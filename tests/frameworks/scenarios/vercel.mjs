// Vercel AI SDK: triage lets billing settle the task as a tool; the SDK's own spans, written as OTLP/JSON.
// node vercel.mjs MODEL_URL DESK.json OUT.json [stream], where DESK.json says what the tools answer; prints the answer.

import { readFileSync, writeFileSync } from "node:fs";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [baseURL, file, out, variant] = process.argv.slice(2);
const desk = JSON.parse(readFileSync(file, "utf8"));
const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
const model = createOpenAICompatible({ name: "scripted", apiKey: "none", baseURL, includeUsage: true })(desk.model);

async function ask(functionId, system, prompt, tools) {
  const experimental_telemetry = { isEnabled: true, functionId };
  const settings = { model, system, prompt, tools, stopWhen: stepCountIs(9), experimental_telemetry };
  const said = variant === "stream" ? streamText(settings) : await generateText(settings);
  return await said.text;
}

const findInvoice = tool({
  description: "Find the invoice of an order.",
  inputSchema: z.object({ order_id: z.string() }),
  execute: async () => desk.invoice,
});
const refundPayment = tool({
  description: "Refund an invoice.",
  inputSchema: z.object({ invoice: z.string(), amount: z.number() }),
  execute: async ({ amount }) => {
    if (amount > 49.9) throw new Error(desk.refused);
    return `refunded ${amount} EUR`;
  },
});
const transferToBilling = tool({
  description: "Let the billing agent settle a task.",
  inputSchema: z.object({ task: z.string() }),
  execute: ({ task }) =>
    ask("billing", "Settle questions about money.", task, { find_invoice: findInvoice, refund_payment: refundPayment }),
});
const searchPolicy = tool({
  description: "Find a passage of the refund policy.",
  inputSchema: z.object({ query: z.string() }),
  execute: async () => desk.policy,
});
const tools = { search_policy: searchPolicy, transfer_to_billing: transferToBilling };
const answer = await ask("triage", "Send the customer to the right desk.", desk.question, tools);
await provider.forceFlush();
writeFileSync(out, JsonTraceSerializer.serializeRequest(exporter.getFinishedSpans()));
console.log(answer);

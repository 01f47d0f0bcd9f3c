"""Records in the formats of others: spans of OpenTelemetry, and messages as OpenAI's fine-tuning takes them."""

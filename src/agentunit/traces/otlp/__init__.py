"""OTLP, as JSON and as protobuf: export requests of OpenTelemetry become spans."""

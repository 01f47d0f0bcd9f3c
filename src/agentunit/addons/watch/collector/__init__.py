"""The OTLP receiver: requests in, a durable spool, record files out."""

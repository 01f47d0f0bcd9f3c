"""Pictures and videos that records name: read within limits, because what is in a record may be hostile."""

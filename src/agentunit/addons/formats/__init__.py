"""Traces that are no spans: chats, logs of coding agents, exports of other tools."""

"""Metrics of answers about pictures, videos and sound."""

"""Recordings of coding agents: sessions of command-line agents, and trajectories of benchmark runs."""

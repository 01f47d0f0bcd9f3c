"""Trains the recognizer of people, places and addresses that ships in agentunit-local (README.md says how)."""

"""``python -m agentunit``."""

from agentunit.cli.main import main

main()

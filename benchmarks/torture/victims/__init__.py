"""What is copied into a folder and run there by AgentUnit: hostile agents."""

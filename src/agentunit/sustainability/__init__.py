"""What agents use and emit: energy, carbon and resources."""

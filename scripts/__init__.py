"""Scripts of the project itself: generated docs, the demo's recording."""

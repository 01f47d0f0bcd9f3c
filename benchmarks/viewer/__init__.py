"""How fast the viewer opens large runs and long transcripts, and how large its bundles are."""

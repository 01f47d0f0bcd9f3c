"""The data model and its JSON codec. Nothing here scores, reads files or talks to anyone."""

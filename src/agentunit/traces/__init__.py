"""The one door for traces: readers that turn files into records, and say what they could not read."""

"""JSON files of any size, read value by value."""

"""What a run can do without. Each add-on comes in by a door: no other room imports it, and no add-on another."""

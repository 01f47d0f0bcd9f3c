"""Tests and runs held against each other: whether a suite is sound, and which runs look unlike the rest."""

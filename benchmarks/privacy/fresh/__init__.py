"""Fresh text to measure the detectors of personal data on: see generate.py."""

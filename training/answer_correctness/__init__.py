"""Fits the coefficients of answer correctness to people's labels: ``python -m training.answer_correctness``."""

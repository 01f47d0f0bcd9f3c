"""A small CLIP of our own, trained from scratch on rendered shapes: real weights for the tests.

``python -m training.tiny_clip`` renders the scenes, trains, measures and writes ``tests/data/tiny_clip``: a checkpoint
for torch and a pair of ONNX graphs of the same weights.
"""

"""CLIP: pictures and texts as vectors that can be compared, by torch or ONNX Runtime, with weights the user names."""

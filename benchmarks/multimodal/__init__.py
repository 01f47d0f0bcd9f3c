"""How fast pictures and texts are encoded, and frames of a video found.

Encoding: a CLIP of the shape of ViT-B/32 with random weights, on the fastest device that torch has, beside a bare loop
over tensors that lie ready on the device. Video: eight frames of a long clip beside decoding all of it. Needs torch,
transformers, tokenizers, numpy, Pillow, and PyAV for the video; what is missing is left out and said.
"""

"""How fast the local models are on a GPU, and how far their scores are from those of a CPU.

Groundedness: pairs a second of the small model and of a large one (12 layers, 768 wide, MPNet's bias; random weights
unless a folder is named), from tokens and from texts; evidence selection by itself; whole cases through the command
line. Scores of the same cases on the GPU, in fp32 on the CPU, and by the 8-bit model that ships. Sentence encoder and
CLIP beside a bare loop over tensors that lie ready on the device. Needs torch; a part that fails is named.
"""

"""The recognizer in PyTorch: hashed pieces summed to a token, four layers of attention, a label for each token."""

from __future__ import annotations

import torch
from agentunit_local.recognizer.tokens import BUCKETS, LABELS
from torch import Tensor, nn

from training.personal_data.examples import LONGEST

PIECE_WIDTH = 128
WIDTH = 256
HEADS = 4
INNER = 768
LAYERS = 4


class Layer(nn.Module):
    """Attention and a network for each token, each after a normalization and added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.before_inner = nn.LayerNorm(WIDTH)
        self.inner = nn.Linear(WIDTH, INNER)
        self.outer = nn.Linear(INNER, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """The hidden states after this layer; ``bias`` keeps attention off the filling."""
        rows, length, _ = hidden.shape
        parts = self.query_key_value(self.before_attention(hidden)).view(rows, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        weights = (query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5 + bias).softmax(-1)
        mixed = (weights @ value).transpose(1, 2).reshape(rows, length, WIDTH)
        hidden = hidden + self.drop(self.attended(mixed))
        inner = torch.relu(self.inner(self.before_inner(hidden)))
        return hidden + self.drop(self.outer(inner))


class Recognizer(nn.Module):
    """``pieces`` [rows, length, PIECES] to logits [rows, length, len(LABELS)]; row 0 of the table is filling."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(BUCKETS, PIECE_WIDTH, padding_idx=0)
        nn.init.normal_(self.table.weight, std=0.3)
        with torch.no_grad():
            self.table.weight[0] = 0
        self.summed = nn.LayerNorm(PIECE_WIDTH)
        self.widened = nn.Linear(PIECE_WIDTH, WIDTH)
        self.position = nn.Parameter(torch.randn(LONGEST, WIDTH) * 0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last = nn.LayerNorm(WIDTH)
        self.label = nn.Linear(WIDTH, len(LABELS))
        self.drop = nn.Dropout(0.1)

    def forward(self, pieces: Tensor) -> Tensor:
        """The logits of every token."""
        filled = (pieces[:, :, 0] == 0).to(torch.float32)
        bias = (filled * -10000.0)[:, None, None, :]
        hidden = self.widened(self.summed(self.table(pieces).sum(2)))
        hidden = self.drop(hidden + self.position[: pieces.shape[1]])
        for layer in self.layers:
            hidden = layer(hidden, bias)
        logits: Tensor = self.label(self.last(hidden))
        return logits

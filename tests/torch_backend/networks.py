"""Small networks of the usual kinds."""

import torch
from torch import nn


def perceptron():
    """Two layers."""
    return nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 24), nn.GELU(), nn.Linear(24, 5))


def convolutional():
    """Convolutions, one of them with strides, batch normalizations and pools."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )


class Block(nn.Module):
    """A transformer with one layer, whose head shares the weight of the embedding."""

    def __init__(self, dropout, is_causal):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.norm, self.second_norm = nn.LayerNorm(16), nn.LayerNorm(16)
        self.projection, self.output = nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU("tanh"), nn.Linear(64, 16))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.embedding.weight
        self.is_causal = is_causal

    def forward(self, tokens):
        x = self.dropout(self.embedding(tokens))
        batch, length, width = x.shape
        q, k, v = (
            part.reshape(batch, length, 2, width // 2).transpose(1, 2)
            for part in self.projection(self.norm(x)).split(width, 2)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        x = x + self.dropout(self.output(y.transpose(1, 2).reshape(batch, length, width)))
        return self.head(x + self.dropout(self.mlp(self.second_norm(x))))

"""Small networks of the usual kinds."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def perceptron():
    """Three layers."""
    return nn.Sequential(
        nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 24), nn.GELU(), nn.Linear(24, 5)
    )


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


class Residual(nn.Module):
    """A block of a ResNet, with a convolution in its shortcut."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.shortcut = nn.Sequential(
            nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width)
        )

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def residual():
    """A ResNet of two blocks."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3),
        nn.MaxPool2d(3, 2, 1),
        Residual(8, 8, 1),
        Residual(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


class UNet(nn.Module):
    """A U-Net of two levels, with group normalization."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.bottom = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.GroupNorm(4, 16), nn.SiLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.result = nn.Conv2d(24, 5, 3, padding=1)

    def forward(self, x):
        x = self.down(x)
        y = self.bottom(x)
        return self.result(torch.cat([x, self.up(y), F.interpolate(y, scale_factor=2)[:, :8]], 1))


class Recurrent(nn.Module):
    """A recurrent network over a sequence."""

    def __init__(self, kind):
        super().__init__()
        self.cells = kind(12, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


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
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        x = x + self.dropout(self.output(y.transpose(1, 2).reshape(batch, length, width)))
        return self.head(x + self.dropout(self.mlp(self.second_norm(x))))

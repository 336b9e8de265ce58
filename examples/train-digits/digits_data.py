"""The data of this example: scikit-learn's copy of the UCI handwritten digits.

They are 1797 grey pictures of 8 x 8 pixels with values from 0 to 16.
"""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

LEVELS = 16  # the brightest pixel
CLASSES = 10


class Digits(NamedTuple):
    """Pictures [n, 1, 8, 8] in [0, 1] and what they show, an int64 each."""

    pictures: np.ndarray
    labels: np.ndarray


def load() -> tuple[Digits, Digits]:
    """What to learn from, and 360 pictures that no training sees."""
    digits = load_digits()
    pictures = (digits.images[:, None] / LEVELS).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        pictures, digits.target, test_size=0.2, random_state=7, stratify=digits.target
    )
    return Digits(train_x, train_y), Digits(test_x, test_y)

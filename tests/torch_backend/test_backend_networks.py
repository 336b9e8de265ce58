"""Networks train as they do without compilation."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

from comparison import check_training  # noqa: E402
from networks import Block, convolutional, perceptron  # noqa: E402


def classify(*shape):
    torch.manual_seed(1)
    x, y = torch.randn(*shape), torch.randint(0, 5, shape[:1])
    return lambda model: torch.nn.functional.cross_entropy(model(x), y)


def test_perceptron():
    torch.manual_seed(0)
    check_training(perceptron(), classify(16, 12))


def test_convolutional_network_with_batch_norm():
    torch.manual_seed(0)
    check_training(convolutional(), classify(8, 3, 12, 12))


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("is_causal", [False, True])
def test_transformer(dropout, is_causal):
    torch.manual_seed(0)
    model = Block(dropout, is_causal)
    tokens = torch.randint(0, 20, (4, 9))
    check_training(
        model,
        lambda each: torch.nn.functional.cross_entropy(
            each(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
        ),
    )

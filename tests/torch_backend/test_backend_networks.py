"""Networks train as they do without compilation."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

import tenon.torch  # noqa: E402
from comparison import check_training  # noqa: E402
from networks import Block, Recurrent, UNet, convolutional, perceptron, residual  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

DROPOUT = {"aten.bernoulli.p", "aten.empty.memory_format"}


def classify(*shape):
    x, y = torch.randn(*shape), torch.randint(0, 5, shape[:1])
    return lambda model: F.cross_entropy(model(x), y)


def check_left(expected, model, *inputs, **keywords):
    """The model is one graph, in which only the operators `expected` stay in PyTorch."""
    explanation = tenon.torch.explain(model, *inputs, **keywords)
    assert explanation.graphs == 1
    assert explanation.regions >= 2
    assert set(explanation.left) == expected


NETWORKS = {
    "perceptron": (perceptron, (16, 12)),
    "convolutional": (convolutional, (8, 3, 12, 12)),
    "residual": (residual, (4, 3, 32, 32)),
    "lstm": (lambda: Recurrent(nn.LSTM), (4, 5, 12)),
    "gru": (lambda: Recurrent(nn.GRU), (4, 5, 12)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_classifier(name):
    make, shape = NETWORKS[name]
    model = make()
    with torch._dynamo.config.patch(allow_rnn=True):
        check_training(model, classify(*shape))
        check_left(set(), model, torch.randn(shape))


def test_images():
    model, x, y = UNet(), torch.randn(2, 3, 12, 12), torch.randint(0, 5, (2, 12, 12))
    check_training(model, lambda each: F.cross_entropy(each(x), y))
    check_left(set(), model, x)


def test_frozen_batch_norm():
    model = convolutional()
    step = classify(8, 3, 12, 12)
    for module in model:
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
            nn.init.uniform_(module.running_mean)
    check_training(model, step)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("is_causal", [False, True])
def test_transformer_with_tied_weights(dropout, is_causal):
    model = Block(dropout, is_causal)
    tokens = torch.randint(0, 20, (4, 9))
    check_training(
        model,
        lambda each: F.cross_entropy(each(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()),
    )
    check_left(DROPOUT if dropout else set(), model, tokens)


class TestTransformers:
    """Models of the package transformers with random weights."""

    def test_bert(self):
        transformers = pytest.importorskip("transformers")
        config = transformers.BertConfig(
            vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=64, max_position_embeddings=32, num_labels=3,
        )  # fmt: skip
        model = transformers.BertForSequenceClassification(config)
        tokens, mask = torch.randint(0, 50, (4, 12)), torch.ones(4, 12, dtype=torch.int64)
        mask[1, 7:] = mask[3, 3:] = 0
        labels = torch.randint(0, 3, (4,))
        check_training(
            model,
            lambda each: each(input_ids=tokens, attention_mask=mask, labels=labels).loss,
            10,
        )
        check_left(DROPOUT, model, tokens, attention_mask=mask, labels=labels)

    def test_gpt2(self):
        transformers = pytest.importorskip("transformers")
        config = transformers.GPT2Config(
            vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=32, use_cache=False
        )
        model = transformers.GPT2LMHeadModel(config)
        model.loss_type = "ForCausalLM"
        tokens = torch.randint(0, 50, (4, 12))
        check_training(model, lambda each: each(input_ids=tokens, labels=tokens).loss, 10)
        check_left(DROPOUT, model, input_ids=tokens, labels=tokens)

    def test_llama(self):
        transformers = pytest.importorskip("transformers")
        config = transformers.LlamaConfig(
            vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=64, use_cache=False,
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config)
        tokens = torch.randint(0, 50, (2, 12))
        check_training(model, lambda each: each(input_ids=tokens, labels=tokens).loss, 10)
        check_left(set(), model, tokens, labels=tokens)

    def test_vit(self):
        transformers = pytest.importorskip("transformers")
        config = transformers.ViTConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
            image_size=16, patch_size=4, num_labels=3,
        )  # fmt: skip
        model = transformers.ViTForImageClassification(config)
        images, labels = torch.randn(4, 3, 16, 16), torch.randint(0, 3, (4,))
        check_training(model, lambda each: each(pixel_values=images, labels=labels).loss, 10)
        check_left(set(), model, images, labels=labels)

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


# Classes of the package transformers, and their configurations.
LANGUAGE_MODELS = {
    "t5": (
        "T5ForConditionalGeneration", "T5Config",
        dict(
            vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
            use_cache=False, decoder_start_token_id=0,
        ),
    ),
    "gemma2": (
        "Gemma2ForCausalLM", "Gemma2Config",
        dict(
            vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, intermediate_size=48, sliding_window=4,
            use_cache=False, pad_token_id=0,
        ),
    ),
    "mamba2": (
        "Mamba2ForCausalLM", "Mamba2Config",
        dict(
            vocab_size=50, hidden_size=16, num_hidden_layers=2, state_size=8, num_heads=4,
            head_dim=8, n_groups=1, chunk_size=4, use_cache=False,
        ),
    ),
}  # fmt: skip
# Those in which each token goes to some of the experts.
SMALL = dict(
    vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, intermediate_size=48, use_cache=False, pad_token_id=0,
)  # fmt: skip
MODELS_WITH_EXPERTS = {
    "qwen3_moe": (
        "Qwen3MoeForCausalLM", "Qwen3MoeConfig",
        dict(head_dim=8, moe_intermediate_size=16, num_experts=6, num_experts_per_tok=2),
    ),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", dict(num_local_experts=4)),
    # Weights that lie transposed, and biases.
    "gpt_oss": (
        "GptOssForCausalLM", "GptOssConfig",
        dict(head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=8),
    ),
}  # fmt: skip


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

    @pytest.mark.parametrize("name", LANGUAGE_MODELS)
    def test_language_model(self, name):
        transformers = pytest.importorskip("transformers")
        kind, configuration, settings = LANGUAGE_MODELS[name]
        model = getattr(transformers, kind)(getattr(transformers, configuration)(**settings))
        tokens, mask = torch.randint(3, 50, (2, 12)), torch.ones(2, 12, dtype=torch.int64)
        mask[1, 8:] = 0
        given = {"input_ids": tokens, "attention_mask": mask, "labels": tokens}
        check_training(model, lambda each: each(**given).loss, 5)
        check_left(DROPOUT if name == "t5" else set(), model, **given)

    @pytest.mark.parametrize("name", MODELS_WITH_EXPERTS)
    def test_experts(self, name):
        transformers = pytest.importorskip("transformers")
        kind, configuration, settings = MODELS_WITH_EXPERTS[name]
        config = getattr(transformers, configuration)(**SMALL, **settings)
        model = getattr(transformers, kind)(config)
        for weights in model.parameters():
            if weights.dim() > 1:  # so large that tokens differ in their experts
                nn.init.normal_(weights, std=0.2)
        tokens = torch.randint(1, 50, (2, 12))
        check_training(model, lambda each: each(input_ids=tokens, labels=tokens).loss, 10)
        check_left(set(), model, input_ids=tokens, labels=tokens)

    def test_experts_that_are_drawn(self):
        """Tokens draw their experts, and whether their gates count, in a given order."""
        transformers = pytest.importorskip("transformers")
        config = transformers.PhimoeConfig(**SMALL, num_local_experts=4)
        model = transformers.PhimoeForCausalLM(config)
        tokens = torch.randint(1, 50, (2, 12))
        check_training(model, lambda each: each(input_ids=tokens, labels=tokens).loss, 10)
        explanation = tenon.torch.explain(model, input_ids=tokens, labels=tokens)
        assert (explanation.graphs, explanation.regions) == (1, 2)

    def test_segformer(self):
        """Its last layers drop elements of images whose channels come last in memory."""
        transformers = pytest.importorskip("transformers")
        config = transformers.SegformerConfig(
            num_labels=3, hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1],
            num_attention_heads=[1, 2, 2, 2], decoder_hidden_size=16, drop_path_rate=0.0,
            classifier_dropout_prob=0.2,
        )  # fmt: skip
        model = transformers.SegformerForSemanticSegmentation(config)
        images, labels = torch.randn(2, 3, 32, 32), torch.randint(0, 3, (2, 32, 32))
        check_training(model, lambda each: each(pixel_values=images, labels=labels).loss, 5)
        check_left(DROPOUT, model, images, labels=labels)


def test_sampling_positions_that_are_learned():
    """A spatial transformer."""

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.where = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 6))
            nn.init.zeros_(self.where[1].weight)
            self.where[1].bias.data = torch.tensor([0.9, 0.1, 0.03, -0.1, 0.8, 0.02])
            self.classify = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten())
            self.last = nn.Linear(4 * 6 * 6, 5)

        def forward(self, x):
            theta = self.where(x).view(-1, 2, 3)
            grid = F.affine_grid(theta, x.shape, align_corners=False)
            return self.last(self.classify(F.grid_sample(x, grid, align_corners=False)))

    model, step = Network(), classify(4, 3, 8, 8)
    check_training(model, step, 4)
    check_left(set(), model, torch.randn(4, 3, 8, 8))

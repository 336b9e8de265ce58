"""AttnLSTM of com.microsoft, compared with onnxruntime or, if that has no kernel, NumPy."""

import contrib
import numpy as np
import pytest
from contrib import check, floats

STEPS, BATCH, INPUT, HIDDEN = 5, 3, 4, 6
MEMORY, DEPTH, WIDTH, LAYER = 7, 5, 8, 9
OUTPUTS = ("y", "h", "c")
P, LENS, MEMORY_LENS, LAYER_WEIGHT = 7, 4, 12, 13
OPTIONAL = (3, LENS, 5, 6, P, MEMORY_LENS, LAYER_WEIGHT)


def inputs_of(directions: int, dtype: type = np.float32) -> list:
    """All possible inputs."""

    def drawn(seed: int, *shape: int) -> np.ndarray:
        return (floats(*shape, seed=seed) / 2).astype(dtype)

    d, gates = directions, 4 * HIDDEN
    return [
        drawn(0, STEPS, BATCH, INPUT),
        drawn(1, d, gates, INPUT + LAYER),
        drawn(2, d, gates, HIDDEN),
        drawn(3, d, 2 * gates),
        np.array([5, 3, 1], np.int32),
        drawn(4, d, BATCH, HIDDEN),
        drawn(5, d, BATCH, HIDDEN),
        drawn(6, d, 3 * HIDDEN),
        drawn(7, d, HIDDEN, WIDTH),
        drawn(8, d, DEPTH, WIDTH),
        drawn(9, d, WIDTH),
        drawn(10, BATCH, MEMORY, DEPTH),
        np.array([7, 2, 4], np.int32),
        drawn(11, d, DEPTH + HIDDEN, LAYER),
    ]


def without(inputs: list, *left_out: int) -> list:
    inputs = [None if i in left_out else x for i, x in enumerate(inputs)]
    if LAYER_WEIGHT in left_out:  # the mean of the memory is fed back as it is
        inputs[1] = inputs[1][..., : INPUT + DEPTH].copy()
    return inputs


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def reference(inputs: list, direction: str) -> list:
    x, w, r, b, lens, h0, c0, p, qw, mw, v, memory, memory_lens, aw = inputs
    directions = len(w)
    y = np.zeros((STEPS, directions, BATCH, HIDDEN))
    last = np.zeros((2, directions, BATCH, HIDDEN))
    for d, row in np.ndindex(directions, BATCH):
        values = memory[row, : memory_lens[row]]
        h, c, fed_back = h0[d, row], c0[d, row], np.zeros(aw.shape[2])
        times = range(lens[row])
        for t in (
            times
            if direction == "forward" or (direction != "reverse" and d == 0)
            else (reversed(times))
        ):
            gates = w[d] @ np.append(x[t, row], fed_back) + r[d] @ h + np.sum(np.split(b[d], 2), 0)
            i, o, f, g = np.split(gates, 4)
            of_i, of_o, of_f = np.split(p[d], 3)
            c = sigmoid(f + of_f * c) * c + sigmoid(i + of_i * c) * np.tanh(g)
            h = sigmoid(o + of_o * c) * np.tanh(c)
            powers = np.exp(np.tanh(values @ mw[d] + h @ qw[d]) @ v[d])
            fed_back = np.append(h, powers / powers.sum() @ values) @ aw[d]
            y[t, d, row] = h
        last[:, d, row] = h, c
    return [x.astype(inputs[0].dtype) for x in (y, *last)]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("left_out", [(), *((i,) for i in OPTIONAL), OPTIONAL])
def test_attn_lstm(direction: str, left_out: tuple) -> None:
    inputs = without(inputs_of(2 if direction == "bidirectional" else 1), *left_out)
    outputs = dict.fromkeys(OUTPUTS, np.float32)
    check("AttnLSTM", inputs, outputs, hidden_size=HIDDEN, direction=direction)


@pytest.mark.parametrize(
    "options",
    [
        {"clip": 0.3},
        {"input_forget": 1},
        {
            "activations": ["HardSigmoid", "Softsign", "Affine"],
            "activation_alpha": [0.3, 0.5],
            "activation_beta": [0.4, 0.1],
        },
    ],
)
def test_attn_lstm_with_options(options: dict) -> None:
    outputs = dict.fromkeys(OUTPUTS, np.float32)
    check("AttnLSTM", inputs_of(1), outputs, hidden_size=HIDDEN, **options)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attn_lstm_as_numpy_has_it(direction: str, dtype: type) -> None:
    inputs = inputs_of(2 if direction == "bidirectional" else 1, dtype)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    check(
        *("AttnLSTM", inputs, dict.fromkeys(OUTPUTS, dtype), reference(inputs, direction)),
        **{"rtol": tolerance, "atol": tolerance, "direction": direction},
    )


def test_attn_lstm_with_an_empty_memory_feeds_back_what_the_state_gives() -> None:
    inputs = inputs_of(1)
    inputs[MEMORY_LENS] = np.array([0, 2, 0], np.int32)
    of_state = [*inputs]
    of_state[11] = inputs[11] * np.array([0, 1, 0], np.float32)[:, None, None]
    of_state[MEMORY_LENS] = np.array([1, 2, 1], np.int32)
    expected = contrib.run_tenon(
        contrib.model("AttnLSTM", of_state, dict.fromkeys(OUTPUTS, np.float32)), of_state
    )
    check("AttnLSTM", inputs, dict.fromkeys(OUTPUTS, np.float32), expected)


@pytest.mark.parametrize(
    ("i", "value"),
    [
        (1, floats(1, 4 * HIDDEN, INPUT)),
        (8, floats(1, HIDDEN, WIDTH + 1)),
        (8, None),
        (9, floats(1, DEPTH + 1, WIDTH)),
        (10, floats(2, WIDTH)),
        (11, floats(BATCH + 1, MEMORY, DEPTH)),
        (11, None),
        (13, floats(1, DEPTH, LAYER)),
        *((12, np.array([7, 1, n], np.int32)) for n in (-1, 8, 2**31 - 1, -(2**31))),
        *((4, np.array([5, 1, n], np.int32)) for n in (-1, 6, 2**31 - 1, -(2**31))),
    ],
)
def test_attn_lstm_rejects(i: int, value: np.ndarray | None) -> None:
    inputs = inputs_of(1)
    inputs[i] = value
    content = contrib.model("AttnLSTM", inputs, dict.fromkeys(OUTPUTS, np.float32))
    with pytest.raises(Exception, match="AttnLSTM"):
        contrib.run_tenon(content, inputs)

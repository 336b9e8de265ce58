"""Recipes of the operators of com.microsoft that search sequences of tokens with small models.

What a model says of the token that follows is the sum of rows of tables: of the last token, of its
position, and of all tokens before it. Their values are few sixteenths, which every type has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper
from recipes import Call, Maker

VOCABULARY, LENGTH, FRAMES = 19, 4, 3
END, PAD, START = 17, 18, 16
TOKENS = {"eos_token_id": END, "pad_token_id": PAD}
MARKS = {
    "beginning_timestamp_token_id": 9,
    "no_timestamps_token_id": 8,
    "start_of_lm_token_id": 7,
    "transcribe_token_id": 6,
    "translate_token_id": 5,
    "no_speech_token_id": 4,
}
_sixteenths = np.random.default_rng(5).integers
TABLE = _sixteenths(-48, 48, (VOCABULARY, VOCABULARY)) / 16  # by the last token
PLACES = _sixteenths(-16, 16, (32, VOCABULARY)) / 16
MEMORY = _sixteenths(-8, 8, (VOCABULARY, VOCABULARY)) / 16  # by any token before


# --- Models ---


def value(name: str, kind: int, *shape: int | str) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def node(operator: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(operator, inputs.split(), [output], **attributes)


def tables(kind: int) -> list[TensorProto]:
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    named = {"table": TABLE, "places": PLACES, "memory": MEMORY}
    axes = {"axes_02": [0, 2], "axes_023": [0, 2, 3], "axes_024": [0, 2, 4], "axes_12": [1, 2]}
    return [
        *(numpy_helper.from_array(x.astype(dtype), name) for name, x in named.items()),
        *(numpy_helper.from_array(np.array(x), name) for name, x in axes.items()),
        numpy_helper.from_array(np.array([1]), "axis_1"),
        numpy_helper.from_array(np.array([2]), "axis_2"),
    ]


def gpt(kind: int, name: str = "decoder") -> GraphProto:
    """A decoder alone, whose state is the rows of the tokens before."""
    past = (2, "batch", 1)
    return helper.make_graph(
        [
            node("Gather", "table input_ids", "last"),
            node("Gather", "places position_ids", "place"),
            node("Gather", "memory input_ids", "row"),
            node("Unsqueeze", "row axes_02", "key"),
            node("Concat", "key key", "pair", axis=0),
            node("Concat", "past_0 pair", "present_0", axis=3),
            node("Cast", "attention_mask", "flags", to=kind),
            node("Unsqueeze", "flags axes_024", "mask"),
            node("Mul", "present_0 mask", "used"),
            node("ReduceSum", "used axes_023", "sum", keepdims=0),
            node("Unsqueeze", "sum axis_1", "before"),
            node("Sum", "last place before", "logits"),
        ],
        name,
        [
            value("input_ids", TensorProto.INT32, "batch", "length"),
            value("position_ids", TensorProto.INT32, "batch", "length"),
            value("attention_mask", TensorProto.INT32, "batch", "total"),
            value("past_0", kind, *past, "past", VOCABULARY),
        ],
        [
            value("logits", kind, "batch", "length", VOCABULARY),
            value("present_0", kind, *past, "total", VOCABULARY),
        ],
        tables(kind),
    )


def states(prefix: str, source: str, kind: int) -> list[Any]:
    names = [f"{prefix}_{part}_{source}_0" for part in ("key", "value")]
    return [value(name, kind, "batch", 1, f"{prefix}_{source}", VOCABULARY) for name in names]


def summed(ids: str, crosses: str) -> list[NodeProto]:
    """Logits of the last of `ids`, of their own keys and of the encoder's."""
    return [
        node("Gather", f"table {ids}", "last"),
        node("ReduceSum", "present_key_self_0 axes_12", "own", keepdims=0),
        node("ReduceSum", f"{crosses} axes_12", "other", keepdims=0),
        node("Add", "own other", "both"),
        node("Unsqueeze", "both axis_1", "before"),
        node("Add", "last before", "logits"),
    ]


def encoder(kind: int, given: int, *, has_mask: bool) -> GraphProto:
    """Of tokens if there is a mask, else of features of type `given`."""
    ids = value("decoder_input_ids", TensorProto.INT32, "batch", "length")
    if has_mask:
        inputs = [
            value("encoder_input_ids", given, "batch", "source"),
            value("encoder_attention_mask", TensorProto.INT32, "batch", "source"),
        ]
        nodes = [
            node("Gather", "memory encoder_input_ids", "rows"),
            node("Cast", "encoder_attention_mask", "flags", to=kind),
            node("Unsqueeze", "flags axis_2", "mask"),
            node("Mul", "rows mask", "encoder_hidden_states"),
        ]
    else:
        inputs = [value("encoder_input_ids", given, "batch", "source", VOCABULARY)]
        nodes = [node("Cast", "encoder_input_ids", "encoder_hidden_states", to=kind)]
    return helper.make_graph(
        [
            *nodes,
            node("Unsqueeze", "encoder_hidden_states axis_1", "present_key_cross_0"),
            node("Identity", "present_key_cross_0", "present_value_cross_0"),
            node("Gather", "memory decoder_input_ids", "row"),
            node("Unsqueeze", "row axis_1", "present_key_self_0"),
            node("Identity", "present_key_self_0", "present_value_self_0"),
            *summed("decoder_input_ids", "present_key_cross_0"),
        ],
        "encoder",
        [*inputs, ids],
        [
            value("logits", kind, "batch", "length", VOCABULARY),
            value("encoder_hidden_states", kind, "batch", "source", VOCABULARY),
            *states("present", "self", kind),
            *states("present", "cross", kind),
        ],
        tables(kind),
    )


def decoder(kind: int, *, has_mask: bool, gives_scores: bool = False) -> GraphProto:
    """Beside an encoder; its cross attention's scores are products of rows and frames."""
    nodes = [
        node("Gather", "memory input_ids", "row"),
        node("Unsqueeze", "row axis_1", "key"),
        node("Concat", "past_key_self_0 key", "present_key_self_0", axis=2),
        node("Concat", "past_value_self_0 key", "present_value_self_0", axis=2),
        *summed("input_ids", "past_key_cross_0"),
    ]
    masked = [
        value("encoder_attention_mask", TensorProto.INT32, "batch", "source"),
        value("encoder_hidden_states", kind, "batch", "source", VOCABULARY),
    ]
    outputs = [value("logits", kind, "batch", 1, VOCABULARY), *states("present", "self", kind)]
    if gives_scores:
        nodes += [
            node("Transpose", "past_key_cross_0", "frames", perm=[0, 1, 3, 2]),
            node("Cast", "frames", "frames_as_floats", to=TensorProto.FLOAT),
            node("Cast", "key", "key_as_floats", to=TensorProto.FLOAT),
            node("MatMul", "key_as_floats frames_as_floats", "cross_0"),
        ]
        outputs.append(value("cross_0", TensorProto.FLOAT, "batch", 1, 1, "source"))
    return helper.make_graph(
        nodes,
        "decoder",
        [
            value("input_ids", TensorProto.INT32, "batch", 1),
            *(masked if has_mask else []),
            *states("past", "self", kind),
            *states("past", "cross", kind),
        ],
        outputs,
        tables(kind),
    )


# --- Recipes ---


def int32s(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def prompts(batch: int) -> np.ndarray:
    ids = np.random.default_rng(batch).integers(0, START, (batch, LENGTH)).astype(np.int32)
    ids[:1, :2] = PAD
    return ids


def masks(batch: int) -> list[np.ndarray]:
    """Of the vocabulary, and of the first step."""
    random = np.random.default_rng(2)
    allowed = (random.random(VOCABULARY) < 0.8).astype(np.int32)
    first = (random.random((batch, VOCABULARY)) < 0.7).astype(np.int32)
    allowed[END] = first[:, END] = 1
    return [allowed, first]


def attention_mask(ids: np.ndarray) -> np.ndarray:
    mask = np.ones_like(ids)
    mask[-1:, :1] = 0
    return mask


def features(t: Maker) -> np.ndarray:
    values = t(2, FRAMES, VOCABULARY, low=-1, high=2).astype(np.float32)
    return (np.round(values * 16) / 16).astype(t.dtype)


def numbers(most: int, least: int, beams: int, returned: int) -> list[np.ndarray]:
    return [int32s(x) for x in (most, least, beams, returned)]


def beams_of(source: np.ndarray, s: Maker, graphs: dict[str, Any]) -> list[Call]:
    """Calls that BeamSearch and WhisperBeamSearch share, with scores of type `s`."""
    options, plain = {**TOKENS, **graphs}, [s.of(1), s.of(1)]
    early, sized = {**options, "early_stopping": 1}, {**options, "vocab_size": VOCABULARY}
    allowed = masks(len(source))
    return [
        Call([source, *numbers(12, 0, 3, 2), *plain], options, 3),
        Call([source, *numbers(10, 8, 1, 1), *plain], options, 2),
        Call([source, *numbers(12, 6, 5, 4), s.of(2.5), s.of(1)], options, 2),
        Call([source, *numbers(12, 0, 2, 2), s.of(0.5), s.of(1.5)], early),
        Call([source, *numbers(12, 0, 3, 3), *plain], {**options, "no_repeat_ngram_size": 2}, 2),
        Call([source, *numbers(9, 0, 3, 1), *plain, *allowed], sized),
        Call([source, int32s(9), None, int32s(2), int32s(1), None, s.of(1)], options, 2),
        Call([source[:0], *numbers(9, 0, 2, 1), *plain], options, 2),
    ]


def beam_search(t: Maker) -> list[Call]:
    calls = []
    for s in t.others("T"):
        kind = s.number()
        if t.name != "int32":  # features
            graphs = speech_graphs(t, kind)
            calls += beams_of(features(t), s, graphs)
            continue
        ids = prompts(2)
        text, first = {"decoder": gpt(kind)}, {"init_decoder": gpt(kind, "first")}
        translation = {
            "model_type": 1,
            "decoder_start_token_id": START,
            "encoder": encoder(kind, TensorProto.INT32, has_mask=True),
            "decoder": decoder(kind, has_mask=True),
        }
        masked = [*numbers(9, 0, 2, 2), s.of(1), s.of(1), None, None, attention_mask(ids)]
        calls += [*beams_of(ids, s, text), *beams_of(ids, s, translation)]
        calls += [Call([ids, *masked], {**TOKENS, **text, **first}, 2)]
        calls += [Call([ids, *masked], {**TOKENS, **translation}, 2)]
        calls += [Call([ids, *numbers(LENGTH + 1, 0, 2, 2)], {**TOKENS, **text})]
    return calls


def speech_graphs(t: Maker, kind: int, *, gives_scores: bool = False) -> dict[str, Any]:
    return {
        "model_type": 2,
        "decoder_start_token_id": START,
        "encoder": encoder(kind, t.number(), has_mask=False),
        "decoder": decoder(kind, has_mask=False, gives_scores=gives_scores),
    }


def whisper_beam_search(t: Maker) -> list[Call]:
    calls, frames = [], features(t)
    ids = int32s(START, 3, START, 11).reshape(2, 2)
    for s in t.others("T"):
        graphs = speech_graphs(t, s.number())
        plain = [frames, *numbers(10, 0, 3, 2), s.of(1), s.of(1), None, None, None]
        options = {**TOKENS, **MARKS, **graphs}
        with_scores = {
            **options,
            **speech_graphs(t, s.number(), gives_scores=True),
            "decoder_output_cross_qk": 1,
        }
        heads, forced = int32s(0, 0, 0, 0).reshape(2, 2), int32s(2, 13, 1, -1).reshape(2, 2)
        calls += [
            *beams_of(frames, s, graphs),
            Call([*plain, ids], options, 3),
            Call([*plain, ids, int32s(0), None, None, s.of(0.5)], options, 2),
            Call([*plain, ids], with_scores, 5),
            Call([*plain, ids, None, heads, forced], with_scores, 5),
        ]
        if t.name == s.name == "float":  # as onnxruntime has them
            calls.append(Call([*plain, ids, int32s(1)], options, 2))
            times = int32s(START, 9, START, 10).reshape(2, 2)
            calls.append(Call([*plain, times, int32s(1)], options, 2))
    return calls


def greedy(t: Maker, more: list[Any], attributes: dict[str, Any]) -> list[Call]:
    """Calls that GreedySearch and Sampling share."""
    calls, ids = [], prompts(3)
    allowed = masks(3)
    for s in t.others("T"):
        options = {**TOKENS, **attributes, "decoder": gpt(s.number())}
        sized = {**options, "vocab_size": VOCABULARY}
        plain = [ids, int32s(12), int32s(0), s.of(1)]
        translation = {
            **options,
            "model_type": 1,
            "decoder_start_token_id": START,
            "encoder": encoder(s.number(), TensorProto.INT32, has_mask=True),
            "decoder": decoder(s.number(), has_mask=True),
        }
        rest = [None, None, None, *more] if more else []
        without_rows = [x[:0] if x is not None and x.ndim == 2 else x for x in rest]
        calls += [
            Call([*plain, *rest], options),
            Call([ids, int32s(12), int32s(9), s.of(1.5), *rest], options),
            Call([*plain, *allowed, attention_mask(ids), *more], sized),
            Call([*plain, *rest], {**options, "no_repeat_ngram_size": 2}),
            Call([*plain, *rest], {**options, "init_decoder": gpt(s.number(), "first")}),
            Call([ids[:0], *plain[1:], *without_rows], options),
            Call([*plain, *rest], translation),
        ]
    return calls


def greedy_search(t: Maker) -> list[Call]:
    return [*greedy(t, [], {}), Call([prompts(3), int32s(7)], {**TOKENS, "decoder": gpt(1)})]


def sampling(t: Maker) -> list[Call]:
    presence = np.random.default_rng(3).integers(0, 2, (3, VOCABULARY)).astype(np.int32)
    calls = []
    for custom in (0, 1):
        drawn = {"custom": custom, "top_p": 0.6, "temperature": 1.5, "min_tokens_to_keep": 1}
        calls += greedy(t, [None, int32s(4)], drawn)
        calls += greedy(t, [presence, int32s(9)], {**drawn, "presence_penalty": 0.5})
    return calls


RECIPES = {
    "BeamSearch": beam_search,
    "GreedySearch": greedy_search,
    "Sampling": sampling,
    "WhisperBeamSearch": whisper_beam_search,
}

"""Generation operators of com.microsoft with small models in their attributes, compared with
onnxruntime: BeamSearch, GreedySearch, Sampling."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from onnx import GraphProto, TensorProto, helper, numpy_helper

VOCABULARY, HIDDEN, HEADS, SIZE = 23, 16, 2, 8
END, PAD, START = 21, 22, 20
PROMPT = 5
MICROSOFT = "com.microsoft"
FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32

Inputs = dict[str, np.ndarray]


def weights(seed: int, **shapes: tuple[int, ...]) -> list[TensorProto]:
    rng = np.random.default_rng(seed)
    return [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]


def value(name: str, element_type: int, *shape: int | str) -> Any:
    return helper.make_tensor_value_info(name, element_type, shape)


def gpt(seed: int = 0, name: str = "decoder") -> GraphProto:
    """One layer with the attention of com.microsoft, as GPT-2 has it."""
    nodes = [
        helper.make_node("Gather", ["tokens", "input_ids"], ["token"]),
        helper.make_node("Gather", ["places", "position_ids"], ["place"]),
        helper.make_node("Add", ["token", "place"], ["x"]),
        helper.make_node(
            "Attention",
            ["x", "qkv", "bias", "attention_mask", "past_0"],
            ["attended", "present_0"],
            domain=MICROSOFT,
            num_heads=HEADS,
            unidirectional=1,
        ),
        helper.make_node("Add", ["x", "attended"], ["y"]),
        helper.make_node("MatMul", ["y", "head"], ["logits"]),
    ]
    past = ["batch", HEADS]
    return helper.make_graph(
        nodes,
        name,
        [
            value("input_ids", INT32, "batch", "length"),
            value("position_ids", INT32, "batch", "length"),
            value("attention_mask", INT32, "batch", "total"),
            value("past_0", FLOAT, 2, *past, "past", SIZE),
        ],
        [
            value("logits", FLOAT, "batch", "length", VOCABULARY),
            value("present_0", FLOAT, 2, *past, "total", SIZE),
        ],
        weights(
            seed,
            tokens=(VOCABULARY, HIDDEN),
            places=(64, HIDDEN),
            qkv=(HIDDEN, 3 * HIDDEN),
            bias=(3 * HIDDEN,),
            head=(HIDDEN, VOCABULARY),
        ),
    )


def split_heads(x: str, y: str) -> list:
    return [
        helper.make_node("Reshape", [x, "by_head"], [f"{y}_r"]),
        helper.make_node("Transpose", [f"{y}_r"], [y], perm=[0, 2, 1, 3]),
    ]


def attend(q: str, k: str, v: str, y: str, mask: str = "") -> list:
    """softmax(q k + mask) v over heads, [batch, length, hidden]."""
    nodes = [
        helper.make_node("Transpose", [k], [f"{y}_kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", [q, f"{y}_kt"], [f"{y}_qk"]),
    ]
    if mask:
        nodes.append(helper.make_node("Add", [f"{y}_qk", mask], [f"{y}_masked"]))
    nodes += [
        helper.make_node("Softmax", [nodes[-1].output[0]], [f"{y}_p"], axis=-1),
        helper.make_node("MatMul", [f"{y}_p", v], [f"{y}_pv"]),
        helper.make_node("Transpose", [f"{y}_pv"], [f"{y}_t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", [f"{y}_t", "joined"], [y]),
    ]
    return nodes


def decoder_nodes(past: bool) -> list:
    """A T5-like decoder layer over input `tokens_in`; cross_k and cross_v are the encoder's."""
    nodes = [helper.make_node("Gather", ["tokens", "tokens_in"], ["x"])]
    for part in "qkv":
        nodes.append(helper.make_node("MatMul", ["x", f"self_{part}"], [f"s{part}_m"]))
        nodes += split_heads(f"s{part}_m", f"s{part}")
    if past:
        for part, name in (("k", "key"), ("v", "value")):
            pair = [f"past_{name}_self_0", f"s{part}"]
            nodes.append(helper.make_node("Concat", pair, [f"present_{name}_self_0"], axis=2))
    else:
        for part, name in (("k", "key"), ("v", "value")):
            nodes.append(helper.make_node("Identity", [f"s{part}"], [f"present_{name}_self_0"]))
    nodes += attend("sq", "present_key_self_0", "present_value_self_0", "self_y")
    nodes.append(helper.make_node("Add", ["x", "self_y"], ["x2"]))
    nodes.append(helper.make_node("MatMul", ["x2", "cross_q"], ["cq_m"]))
    nodes += split_heads("cq_m", "cq")
    nodes += [
        helper.make_node("Cast", ["encoder_attention_mask"], ["mask_f"], to=FLOAT),
        helper.make_node("Sub", ["mask_f", "one"], ["mask_1"]),
        helper.make_node("Mul", ["mask_1", "large"], ["mask_2"]),
        helper.make_node("Unsqueeze", ["mask_2", "axes"], ["mask_4"]),
    ]
    nodes += attend("cq", "cross_k", "cross_v", "cross_y", "mask_4")
    nodes.append(helper.make_node("Add", ["x2", "cross_y"], ["x3"]))
    nodes.append(helper.make_node("MatMul", ["x3", "head"], ["logits"]))
    return nodes


SQUARE = (HIDDEN, HIDDEN)


def t5_weights() -> list[TensorProto]:
    return [
        *weights(
            3,
            tokens=(VOCABULARY, HIDDEN),
            encode=SQUARE,
            self_q=SQUARE,
            self_k=SQUARE,
            self_v=SQUARE,
            cross_q=SQUARE,
            cross_wk=SQUARE,
            cross_wv=SQUARE,
            head=(HIDDEN, VOCABULARY),
        ),
        numpy_helper.from_array(np.array([0, 0, HEADS, SIZE]), "by_head"),
        numpy_helper.from_array(np.array([0, 0, HIDDEN]), "joined"),
        numpy_helper.from_array(np.array([1, 2]), "axes"),
        numpy_helper.from_array(np.float32(1), "one"),
        numpy_helper.from_array(np.float32(10000), "large"),
    ]


def cache(kind: str, *, past: bool) -> list:
    """Keys and values of the decoder itself or of the encoder."""
    length = "past" if past else "length"
    prefix = "past" if past else "present"
    return [
        value(f"{prefix}_{name}_{kind}_0", FLOAT, "batch", HEADS, length, SIZE)
        for name in ("key", "value")
    ]


def t5_encoder() -> GraphProto:
    nodes = [
        helper.make_node("Gather", ["tokens", "encoder_input_ids"], ["e0"]),
        helper.make_node("MatMul", ["e0", "encode"], ["e1"]),
        helper.make_node("Tanh", ["e1"], ["encoder_hidden_states"]),
        helper.make_node("MatMul", ["encoder_hidden_states", "cross_wk"], ["ck_m"]),
        helper.make_node("MatMul", ["encoder_hidden_states", "cross_wv"], ["cv_m"]),
        *split_heads("ck_m", "cross_k"),
        *split_heads("cv_m", "cross_v"),
        helper.make_node("Identity", ["cross_k"], ["present_key_cross_0"]),
        helper.make_node("Identity", ["cross_v"], ["present_value_cross_0"]),
        helper.make_node("Identity", ["decoder_input_ids"], ["tokens_in"]),
        *decoder_nodes(past=False),
    ]
    return helper.make_graph(
        nodes,
        "encoder",
        [
            value("encoder_input_ids", INT32, "batch", "source"),
            value("encoder_attention_mask", INT32, "batch", "source"),
            value("decoder_input_ids", INT32, "batch", 1),
        ],
        [
            value("logits", FLOAT, "batch", 1, VOCABULARY),
            value("encoder_hidden_states", FLOAT, "batch", "source", HIDDEN),
            *cache("self", past=False),
            *cache("cross", past=False),
        ],
        t5_weights(),
    )


def t5_decoder() -> GraphProto:
    nodes = [
        helper.make_node("Identity", ["input_ids"], ["tokens_in"]),
        helper.make_node("Identity", ["past_key_cross_0"], ["cross_k"]),
        helper.make_node("Identity", ["past_value_cross_0"], ["cross_v"]),
        *decoder_nodes(past=True),
    ]
    return helper.make_graph(
        nodes,
        "decoder",
        [
            value("input_ids", INT32, "batch", 1),
            value("encoder_attention_mask", INT32, "batch", "source"),
            value("encoder_hidden_states", FLOAT, "batch", "source", HIDDEN),
            *cache("self", past=True),
            *cache("cross", past=True),
        ],
        [value("logits", FLOAT, "batch", 1, VOCABULARY), *cache("self", past=False)],
        t5_weights(),
    )


def model(op: str, inputs: Inputs, formals: list[str], outputs: int, **attributes: Any) -> bytes:
    types = {
        np.dtype(np.int32): INT32,
        np.dtype(np.float32): FLOAT,
        np.dtype(np.float16): TensorProto.FLOAT16,
    }
    names = [f"{name}_" if name in inputs else "" for name in formals]
    while not names[-1]:
        names.pop()
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(
        op, names, made, domain=MICROSOFT, eos_token_id=END, pad_token_id=PAD, **attributes
    )
    graph = helper.make_graph(
        [node],
        "graph",
        [value(f"{name}_", types[x.dtype], *x.shape) for name, x in inputs.items()],
        [value(name, INT32 if i == 0 else FLOAT) for i, name in enumerate(made)],
    )
    for output in graph.output:
        output.type.tensor_type.ClearField("shape")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def feeds_of(inputs: Inputs) -> Inputs:
    """By the names in the model, which differ from those in the subgraphs."""
    return {f"{name}_": x for name, x in inputs.items()}


def check(content: bytes, inputs: Inputs) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    feeds = feeds_of(inputs)
    expected = onnxruntime.InferenceSession(content, options).run(None, feeds)
    session = tenon.InferenceSession(content)
    for _ in range(2):
        actual = session.run(None, feeds)
        for a, e in zip(actual, expected, strict=True):
            assert a.dtype == e.dtype
            if a.ndim == 2 and a.dtype == np.int32:
                # onnxruntime does not write the outputs after the end of all sequences.
                ended = [i for i in range(PROMPT, a.shape[1]) if (a[:, i:] == PAD).all()]
                end = ended[0] + 1 if ended else a.shape[1]
                np.testing.assert_array_equal(a[:, :end], e[:, :end])
            elif a.dtype == np.int32:
                np.testing.assert_array_equal(a, e)
            else:
                np.testing.assert_allclose(a, e, 1e-4, 1e-4)
    return expected


def number(x: float, dtype: type = np.int32) -> np.ndarray:
    return np.array([x], dtype)


def prompts(batch: int = 3, padded: bool = True, seed: int = 1) -> np.ndarray:
    ids = np.random.default_rng(seed).integers(0, START, (batch, PROMPT)).astype(np.int32)
    if padded and batch > 1:
        ids[0, :2] = PAD
    return ids


def masks(batch: int = 3) -> Inputs:
    rng = np.random.default_rng(8)
    allowed = (rng.random(VOCABULARY) < 0.7).astype(np.int32)
    allowed[END] = 1
    first = (rng.random((batch, VOCABULARY)) < 0.5).astype(np.int32)
    first[:, END] = 1
    return {"vocab_mask": allowed, "prefix_vocab_mask": first}


BEAM = [
    "input_ids",
    "max_length",
    "min_length",
    "num_beams",
    "num_return_sequences",
    "length_penalty",
    "repetition_penalty",
    "vocab_mask",
    "prefix_vocab_mask",
    "attention_mask",
]
GREEDY = [
    "input_ids",
    "max_length",
    "min_length",
    "repetition_penalty",
    "vocab_mask",
    "prefix_vocab_mask",
    "attention_mask",
    "presence_mask",
    "seed",
]

# Inputs and attributes besides the defaults.
BEAM_CASES: dict[str, tuple[Inputs, dict[str, int]]] = {
    "plain": ({}, {}),
    "two_beams": ({"num_beams": number(2)}, {}),
    "one_beam": ({"num_beams": number(1), "num_return_sequences": number(1)}, {}),
    "five_beams": ({"num_beams": number(5), "num_return_sequences": number(4)}, {}),
    "short_is_good": ({"length_penalty": number(0.2, np.float32)}, {}),
    "long_is_good": ({"length_penalty": number(2.5, np.float32)}, {}),
    "penalty": ({"repetition_penalty": number(1.7, np.float32)}, {}),
    "min_length": ({"min_length": number(12)}, {}),
    "ngrams": ({}, {"no_repeat_ngram_size": 2}),
    "no_token_twice": ({}, {"no_repeat_ngram_size": 1}),
    "stops_early": ({}, {"early_stopping": 1}),
    "masks": (masks(), {}),
    "vocabulary": ({}, {"vocab_size": VOCABULARY}),
}


def beam_inputs(ids: np.ndarray, more: Inputs) -> Inputs:
    defaults = {
        "input_ids": ids,
        "max_length": number(16),
        "min_length": number(0),  # onnxruntime fails without
        "num_beams": number(3),
        "num_return_sequences": number(2),
        "length_penalty": number(1, np.float32),
        "repetition_penalty": number(1, np.float32),
    }
    if int(more.get("num_beams", number(3))[0]) == 1:
        more = {**more, "num_return_sequences": number(1)}
    return {**defaults, **more}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", BEAM_CASES)
def test_beam_search(name: str, seed: int) -> None:
    more, attributes = BEAM_CASES[name]
    inputs = beam_inputs(prompts(seed=seed), more)
    content = model("BeamSearch", inputs, BEAM, 2, decoder=gpt(seed), **attributes)
    check(content, inputs)


def test_beam_search_with_all_scores() -> None:
    inputs = beam_inputs(prompts(2), {})
    check(model("BeamSearch", inputs, BEAM, 3, decoder=gpt(2)), inputs)


def test_beam_search_with_half_penalties() -> None:
    """Scores have the type of the penalties, which no other CPU implementation supports."""
    found = []
    for dtype in (np.float32, np.float16):
        more = {"length_penalty": number(1, dtype), "repetition_penalty": number(1, dtype)}
        inputs = beam_inputs(prompts(2), more)
        made = onnx.ModelProto.FromString(model("BeamSearch", inputs, BEAM, 3, decoder=gpt(2)))
        element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        for output in made.graph.output[1:]:
            output.type.tensor_type.elem_type = element_type
        session = tenon.InferenceSession(made.SerializeToString())
        found.append(session.run(None, feeds_of(inputs)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    for whole, half in zip(found[0][1:], found[1][1:], strict=True):
        assert half.dtype == np.float16
        with np.errstate(over="ignore"):  # what no beam begins with is -1e9
            np.testing.assert_array_equal(whole.astype(np.float16), half)


@pytest.mark.parametrize("within", ["function", "branch"])
def test_beam_search_of_t5_inside_of_others(within: str) -> None:
    """The names of a decoder's inputs identify them, wherever the search comes from."""
    inputs = beam_inputs(prompts(2), {})
    graphs = {"encoder": t5_encoder(), "decoder": t5_decoder()}
    options = {"model_type": 1, "decoder_start_token_id": START}
    content = model("BeamSearch", inputs, BEAM, 2, **graphs, **options)
    expected = tenon.InferenceSession(content).run(None, feeds_of(inputs))
    made = onnx.ModelProto.FromString(content)
    node, outputs = made.graph.node[0], [output.name for output in made.graph.output]
    if within == "function":
        formals = [name for name in node.input if name]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
        made.functions.append(
            helper.make_function("local", "Search", formals, outputs, [node], opsets)
        )
        made.opset_import.append(helper.make_opsetid("local", 1))
        outer = helper.make_node("Search", formals, outputs, "outer", domain="local")
    else:
        branch = helper.make_graph([node], "branch", [], made.graph.output)
        made.graph.initializer.append(numpy_helper.from_array(np.array(True), "always"))
        outer = helper.make_node(
            "If", ["always"], outputs, "outer", then_branch=branch, else_branch=branch
        )
    del made.graph.node[:]
    made.graph.node.append(outer)
    actual = tenon.InferenceSession(made.SerializeToString()).run(None, feeds_of(inputs))
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)


def test_beam_search_with_mask_and_first_decoder() -> None:
    ids = prompts(padded=False)
    mask = np.ones_like(ids)
    mask[1, :3] = 0
    inputs = beam_inputs(ids, {"attention_mask": mask})
    graphs = {"decoder": gpt(1), "init_decoder": gpt(1, "first")}
    check(model("BeamSearch", inputs, BEAM, 1, **graphs), inputs)


def t5_encoder_alone() -> GraphProto:
    """In the form of newer converters: the decoder also makes the first step, without a past."""
    t5 = t5_encoder()
    last = next(i for i, x in enumerate(t5.node) if x.output[0] == "present_value_cross_0")
    crosses = [x for x in t5.output if "cross" in x.name]
    return helper.make_graph(t5.node[: last + 1], "encoder", t5.input[:2], crosses, t5_weights())


def t5_decoder_from_the_start() -> GraphProto:
    t5 = t5_decoder()
    kept = [x for x in t5.input if x.name != "encoder_hidden_states"]
    return helper.make_graph(t5.node, "decoder", kept, t5.output, t5_weights())


def t5_decoder_that_points() -> GraphProto:
    """A pointer generator: words of the source are likelier than others."""
    t5 = t5_decoder()
    for node in t5.node:
        node.output[:] = ["unaided" if name == "logits" else name for name in node.output]
    nodes = [
        *t5.node,
        helper.make_node("OneHot", ["encoder_input_ids", "vocabulary", "bonus"], ["pointed"]),
        helper.make_node("ReduceSum", ["pointed", "source_axis"], ["likelier"]),
        helper.make_node("Add", ["unaided", "likelier"], ["logits"]),
    ]
    source = value("encoder_input_ids", INT32, "batch", "source")
    mask, caches = t5.input[1], t5.input[3:]
    constants = {
        "vocabulary": np.array(VOCABULARY, np.int32),
        "bonus": np.array([0, 0.3], np.float32),
        "source_axis": np.array([1]),
    }
    more = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    inputs = [t5.input[0], source, mask, *caches]
    return helper.make_graph(nodes, "decoder", inputs, t5.output, [*t5_weights(), *more])


T5_GRAPHS = {
    "an encoder that decodes first": (t5_encoder, t5_decoder),
    "a decoder that points": (t5_encoder, t5_decoder_that_points),
    "an encoder alone": (t5_encoder_alone, t5_decoder_from_the_start),
}


@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("name", BEAM_CASES)
@pytest.mark.parametrize("graphs", T5_GRAPHS)
def test_beam_search_of_t5(graphs: str, name: str, seed: int) -> None:
    more, attributes = BEAM_CASES[name]
    inputs = beam_inputs(prompts(seed=seed), more)
    encoder, decoder = (make() for make in T5_GRAPHS[graphs])
    options = {"model_type": 1, "decoder_start_token_id": START, **attributes}
    check(model("BeamSearch", inputs, BEAM, 2, encoder=encoder, decoder=decoder, **options), inputs)


@pytest.mark.parametrize("operator", ["BeamSearch", "GreedySearch"])
@pytest.mark.parametrize("token", [None, -7, 2**32 + START])
def test_searches_need_a_token_to_start_from(operator: str, token: int | None) -> None:
    """As in onnxruntime, which has no default either."""
    greedy = operator == "GreedySearch"
    inputs, order = (greedy_inputs(0), GREEDY[:7]) if greedy else (beam_inputs(prompts(), {}), BEAM)
    graphs = {"encoder": t5_encoder(), "decoder": t5_decoder()}
    options = {} if token is None else {"decoder_start_token_id": token}
    content = model(operator, inputs, order, 1 if greedy else 2, model_type=1, **graphs, **options)
    with pytest.raises(Exception, match=f"decoder_start_token_id.*got {token or -1}"):
        tenon.InferenceSession(content).run(None, feeds_of(inputs))


def test_beam_search_names_what_an_encoder_alone_lacks() -> None:
    inputs = beam_inputs(prompts(2), {})
    options = {"model_type": 1, "decoder_start_token_id": START}
    graphs = {"encoder": t5_encoder_alone(), "decoder": t5_decoder()}
    content = model("BeamSearch", inputs, BEAM, 2, **graphs, **options)
    with pytest.raises(Exception, match="gives no hidden states"):
        tenon.InferenceSession(content).run(None, feeds_of(inputs))
    graphs["encoder"].output.pop()
    content = model("BeamSearch", inputs, BEAM, 2, **graphs, **options)
    with pytest.raises(Exception, match="expected 2 outputs, got 1"):
        tenon.InferenceSession(content).run(None, feeds_of(inputs))


GREEDY_CASES: dict[str, tuple[Inputs, dict[str, int]]] = {
    "plain": ({}, {}),
    "penalty": ({"repetition_penalty": number(1.7, np.float32)}, {}),
    "min_length": ({"min_length": number(12)}, {}),
    "ngrams": ({}, {"no_repeat_ngram_size": 2}),
    "no_token_twice": ({}, {"no_repeat_ngram_size": 1}),
    "masks": (masks(), {}),
}


@functools.cache
def greedy_inputs(seed: int) -> Inputs:
    return {
        "input_ids": prompts(seed=seed),
        "max_length": number(18),
        "min_length": number(0),
        "repetition_penalty": number(1, np.float32),
    }


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("name", GREEDY_CASES)
def test_greedy_search(name: str, seed: int) -> None:
    more, attributes = GREEDY_CASES[name]
    inputs = {**greedy_inputs(seed), **more}
    content = model("GreedySearch", inputs, GREEDY[:7], 1, decoder=gpt(seed), **attributes)
    check(content, inputs)


@pytest.mark.parametrize("seed", [0, 1])
def test_greedy_search_has_defaults(seed: int) -> None:
    inputs = greedy_inputs(seed)
    required = {name: inputs[name] for name in ("input_ids", "max_length")}
    found = []
    for given in (inputs, required):
        content = model("GreedySearch", given, GREEDY[:7], 1, decoder=gpt(seed))
        found.append(tenon.InferenceSession(content).run(None, feeds_of(given))[0])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", [name for name in GREEDY_CASES if name != "penalty"])
def test_greedy_search_of_t5_is_a_search_with_one_beam(name: str, seed: int) -> None:
    """Which onnxruntime has, while its GreedySearch takes decoders alone.

    Penalties differ: a greedy search has them on scores, one of beams on their logarithms.
    """
    more, attributes = GREEDY_CASES[name]
    inputs = {**greedy_inputs(seed), **more}
    options = {"model_type": 1, "decoder_start_token_id": START, **attributes}
    graphs = {"encoder": t5_encoder(), "decoder": t5_decoder()}
    greedy = model("GreedySearch", inputs, GREEDY[:7], 1, **graphs, **options)
    (actual,) = tenon.InferenceSession(greedy).run(None, feeds_of(inputs))
    one = {"num_beams": number(1), "num_return_sequences": number(1)}
    of_beam = {**inputs, **one, "length_penalty": number(1, np.float32)}
    beam = onnxruntime.InferenceSession(model("BeamSearch", of_beam, BEAM, 1, **graphs, **options))
    expected = beam.run(None, feeds_of(of_beam))[0][:, 0]
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("custom", [0, 1])
@pytest.mark.parametrize("top_p", [0.3, 0.8])
@pytest.mark.parametrize("temperature", [0.7, 3.0])
def test_sampling(seed: int, custom: int, top_p: float, temperature: float) -> None:
    inputs = {**greedy_inputs(seed), "seed": number(seed)}
    content = model(
        "Sampling",
        inputs,
        GREEDY,
        1,
        decoder=gpt(seed),
        custom=custom,
        top_p=top_p,
        temperature=temperature,
        min_tokens_to_keep=1,
    )
    check(content, inputs)


@pytest.mark.parametrize(("kept", "text"), [(10**6, "less than"), (-1, "at least 0")])
def test_sampling_rejects_tokens_to_keep(kept: int, text: str) -> None:
    inputs = greedy_inputs(0)
    content = model("Sampling", inputs, GREEDY, 1, decoder=gpt(), min_tokens_to_keep=kept)
    with pytest.raises(Exception, match=f"'min_tokens_to_keep': expected {text}.*{kept}"):
        tenon.InferenceSession(content).run(None, feeds_of(inputs))


def test_refuses_what_it_cannot_search() -> None:
    inputs = beam_inputs(prompts(), {})
    session = tenon.InferenceSession(model("BeamSearch", inputs, BEAM, 1, decoder=gpt()))
    for name, wrong in {"max_length": 5, "num_beams": 0, "num_return_sequences": 4}.items():
        with pytest.raises(Exception, match="expected a number in"):
            session.run(None, feeds_of({**inputs, name: number(wrong)}))
    with pytest.raises(Exception, match="expected a penalty above 0"):
        session.run(None, feeds_of({**inputs, "repetition_penalty": number(0, np.float32)}))


# --- WhisperBeamSearch ---

WHISPER = [
    *BEAM,
    *("decoder_input_ids", "logits_processor", "cross_qk_layer_head", "extra_decoding_ids"),
    "temperature",
]
MARKS = {
    "no_timestamps_token_id": 11,
    "start_of_lm_token_id": 10,
    "no_speech_token_id": 9,
    "translate_token_id": 8,
    "transcribe_token_id": 7,
}


def whisper_weights() -> list[TensorProto]:
    everywhere = np.ones((1, 1), np.int32)
    return [*t5_weights(), numpy_helper.from_array(everywhere, "encoder_attention_mask")]


def whisper_encoder() -> GraphProto:
    """Of features, [batch, source, hidden]."""
    t5 = t5_encoder()
    features = helper.make_node("MatMul", ["encoder_input_ids", "encode"], ["e1"])
    return helper.make_graph(
        [features, *t5.node[2:]],
        "encoder",
        [
            value("encoder_input_ids", FLOAT, "batch", "source", HIDDEN),
            value("decoder_input_ids", INT32, "batch", "length"),
        ],
        [value("logits", FLOAT, "batch", "length", VOCABULARY), *t5.output[1:]],
        whisper_weights(),
    )


def whisper_decoder() -> GraphProto:
    t5 = t5_decoder()
    kept = [x for x in t5.input if not x.name.startswith("encoder_")]
    return helper.make_graph(t5.node, "decoder", kept, t5.output, whisper_weights())


def whisper_inputs(seed: int, more: Inputs) -> Inputs:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((2, 7, HIDDEN)).astype(np.float32) / 2
    first = rng.integers(0, START, (2, 3)).astype(np.int32)
    return {**beam_inputs(features, more), "decoder_input_ids": first}


def whisper(inputs: Inputs, outputs: int = 2, **attributes: Any) -> bytes:
    graphs = {"encoder": whisper_encoder(), "decoder": whisper_decoder()}
    options = {"model_type": 2, "decoder_start_token_id": START, **MARKS, **attributes}
    return model("WhisperBeamSearch", inputs, WHISPER, outputs, **graphs, **options)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "more",
    [{}, {"num_beams": number(1)}, {"temperature": number(0.5, np.float32)}],
    ids=["plain", "one_beam", "temperature"],
)
@pytest.mark.parametrize("first_timestamp", [None, 5, 12, 15, 18])
@pytest.mark.parametrize("begins_with_time", [False, True])
def test_whisper_beam_search(
    seed: int, more: Inputs, first_timestamp: int | None, begins_with_time: bool
) -> None:
    inputs = whisper_inputs(seed, more)
    attributes = {}
    if first_timestamp is not None:
        inputs["logits_processor"] = number(1)
        attributes["beginning_timestamp_token_id"] = first_timestamp
        if begins_with_time:
            inputs["decoder_input_ids"][:, -1] = first_timestamp
    check(whisper(inputs, **attributes), inputs)


def test_whisper_says_how_likely_there_is_no_speech() -> None:
    inputs = whisper_inputs(0, {})
    changed = onnx.load_from_string(whisper(inputs, 5))
    changed.graph.node[0].output[3] = ""
    del changed.graph.output[3]
    session = tenon.InferenceSession(changed.SerializeToString())
    actual = session.run(["y4"], feeds_of(inputs))[0]
    encoder = helper.make_model(
        whisper_encoder(), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    logits = (
        onnxruntime.InferenceSession(encoder.SerializeToString())
        .run(
            ["logits"],
            {
                "encoder_input_ids": inputs["input_ids"],
                "decoder_input_ids": inputs["decoder_input_ids"],
            },
        )[0][:, -1]
        .astype(np.float64)
    )
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    np.testing.assert_allclose(actual, (powers / powers.sum(-1, keepdims=True))[:, 9], 1e-3, 1e-15)


def test_whisper_rejects_a_token_for_no_speech_that_is_none() -> None:
    inputs = whisper_inputs(0, {})
    content = onnx.load_from_string(whisper(inputs, 5, no_speech_token_id=VOCABULARY))
    content.graph.node[0].output[3] = ""
    del content.graph.output[3]
    with pytest.raises(Exception, match="no_speech_token_id"):
        tenon.InferenceSession(content.SerializeToString()).run(None, feeds_of(inputs))


def test_whisper_rejects_timestamps_without_their_first_token() -> None:
    inputs = whisper_inputs(0, {"logits_processor": number(1)})
    with pytest.raises(Exception, match="beginning_timestamp_token_id"):
        tenon.InferenceSession(whisper(inputs)).run(None, feeds_of(inputs))


# --- Cross attention's scores and forced tokens of WhisperBeamSearch, which onnxruntime has on GPUs
# alone: beside a search in NumPy over the subgraphs themselves ---


def asked_whisper_decoder() -> GraphProto:
    """The decoder with an output of its cross attention's scores before the softmax."""
    decoder = whisper_decoder()
    scores = value("cross_y_masked", FLOAT, "batch", HEADS, 1, "source")
    decoder.output.append(scores)
    return decoder


def shared_whisper_decoder() -> GraphProto:
    """The same with buffers that pasts and presents share, as the converter for GPUs writes it: the
    first past_sequence_length rows are the past."""
    decoder = asked_whisper_decoder()
    del decoder.node[:]
    wanted = {f"present_{name}_self_0" for name in ("key", "value")}
    for node in asked_whisper_decoder().node:
        if node.op_type != "Concat" or node.output[0] not in wanted:
            node.input[:] = [f"{x}_used" if x in wanted else x for x in node.input]
            decoder.node.append(node)
            continue
        past, new = node.input
        used, present = f"{node.output[0]}_used", node.output[0]
        decoder.node.extend(
            [
                helper.make_node(
                    "Slice", [past, "zero", "past_sequence_length", "axis_2"], [f"{past}_used"]
                ),
                helper.make_node("Concat", [f"{past}_used", new], [used], axis=2),
                helper.make_node("Slice", [past, "after", "far", "axis_2"], [f"{past}_rest"]),
                helper.make_node("Concat", [used, f"{past}_rest"], [present], axis=2),
            ]
        )
    decoder.node.insert(0, helper.make_node("Add", ["past_sequence_length", "one_int"], ["after"]))
    decoder.initializer.extend(
        numpy_helper.from_array(np.array([x], np.int32), name)
        for name, x in {"zero": 0, "axis_2": 2, "far": 10000, "one_int": 1}.items()
    )
    decoder.input.extend(
        [
            value("past_sequence_length", INT32, 1),
            value("beam_width", INT32, 1),
            value("cache_indirection", INT32, "batch_size", "beams", "most"),
        ]
    )
    return decoder


def runner(graph: GraphProto) -> onnxruntime.InferenceSession:
    opsets = [helper.make_opsetid("", 17)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return onnxruntime.InferenceSession(made.SerializeToString())


class Search:
    """Scores of cross attention and followers of one sequence, in float64, without any rules."""

    def __init__(self, features: np.ndarray) -> None:
        self.features = features
        self.encoder, self.decoder = runner(whisper_encoder()), runner(asked_whisper_decoder())

    def follow(self, first: np.ndarray, tokens: list[int]) -> tuple[np.ndarray, list[np.ndarray]]:
        """Logarithms of the followers' probabilities and [heads, frames] for each token."""
        feeds = {"encoder_input_ids": self.features[None], "decoder_input_ids": first[None]}
        logits, _, *states = self.encoder.run(None, feeds)
        names = [x.name for x in self.decoder.get_inputs() if x.name.startswith("past_")]
        crosses = []
        for token in tokens:
            past = dict(zip(names, states, strict=True))
            ids = np.array([[token]], np.int32)
            logits, *presents, cross = self.decoder.run(None, {"input_ids": ids, **past})
            states[: len(presents)] = presents
            crosses.append(cross[0, :, -1])
        row = logits[0, -1].astype(np.float64)
        row -= row.max()
        return row - np.log(np.exp(row).sum()), crosses

    def best(
        self, first: np.ndarray, beams: int, returned: int, most: int, forced: list[int]
    ) -> list[tuple[list[int], list[np.ndarray]]]:
        """The tokens after the first ones, of the best sequences; all continue to `most`."""
        live: list[tuple[float, list[int]]] = [(0.0, [])]
        ended: list[tuple[float, list[int]]] = []
        for step in range(most - len(first)):
            candidates = []
            for total, tokens in live:
                if step < len(forced):
                    candidates.append((total, [*tokens, forced[step]]))
                    continue
                row, _ = self.follow(first, tokens)
                candidates += [(total + x, [*tokens, i]) for i, x in enumerate(row)]
            candidates.sort(key=lambda x: -x[0])
            candidates = candidates[: 2 * beams]
            for rank, (total, tokens) in enumerate(candidates):
                if tokens[-1] == END and rank < beams:
                    ended.append((total / (len(first) + step), tokens[:-1]))
            ended = sorted(ended, key=lambda x: -x[0])[:beams]
            if len(ended) == beams and ended[-1][0] >= candidates[0][0] / (len(first) + step):
                live = []
                break
            live = [x for x in candidates if x[1][-1] != END][:beams]
        ended += [(total / most, tokens) for total, tokens in live]
        ended.sort(key=lambda x: -x[0])
        return [(tokens, self.follow(first, tokens)[1]) for _, tokens in ended[:returned]]


def check_cross_scores(
    seed: int,
    beams: int,
    pairs: list[list[int]] | None = None,
    forced: list[list[int]] | None = None,
    shares: bool = False,
) -> np.ndarray:
    most, returned = 9, beams
    more = {
        "num_beams": number(beams),
        "num_return_sequences": number(returned),
        "max_length": number(most),
    }
    inputs = {**whisper_inputs(seed, more), "num_return_sequences": number(returned)}
    if pairs is not None:
        inputs["cross_qk_layer_head"] = np.array(pairs, np.int32)
    if forced is not None:
        inputs["extra_decoding_ids"] = np.array(forced, np.int32)
    decoder = shared_whisper_decoder() if shares else asked_whisper_decoder()
    content = model(
        "WhisperBeamSearch",
        inputs,
        WHISPER,
        4,
        encoder=whisper_encoder(),
        decoder=decoder,
        decoder_output_cross_qk=1,
        model_type=2,
        decoder_start_token_id=START,
    )
    sequences, _, _, actual = tenon.InferenceSession(content).run(None, feeds_of(inputs))
    heads = [head for _, head in pairs] if pairs is not None else list(range(HEADS))
    runs = 0
    for b, features in enumerate(inputs["input_ids"]):
        first = inputs["decoder_input_ids"][b]
        ids = [x for x in forced[b] if x >= 0] if forced is not None else []
        found = Search(features).best(first, beams, returned, most, ids)
        for i, (tokens, crosses) in enumerate(found):
            expected = np.full(most, PAD)
            expected[: len(first) + len(tokens)] = [*first, *tokens]
            np.testing.assert_array_equal(sequences[b, i], expected)
            whole = np.zeros(actual.shape[2:], np.float32)
            for t, cross in enumerate(crosses[: actual.shape[3]]):
                whole[:, t] = cross[heads]
            np.testing.assert_allclose(actual[b, i], whole, 1e-4, 1e-4)
            runs = max(runs, min(len(tokens), most - len(first) - 1))
    frames = inputs["input_ids"].shape[1]
    assert actual.shape == (2, returned, len(heads), runs, frames)
    assert np.abs(actual).max() > 0.1
    return sequences


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beams", [1, 2, 3])
@pytest.mark.parametrize("pairs", [None, [[0, 1]], [[0, 1], [0, 0], [0, 1]]])
def test_whisper_gives_the_scores_of_cross_attention(
    seed: int, beams: int, pairs: list[list[int]] | None
) -> None:
    check_cross_scores(seed, beams, pairs)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beams", [1, 3])
def test_whisper_decodes_extra_ids_before_any_that_it_chooses(seed: int, beams: int) -> None:
    forced = [[4, 9, 6], [13, -1, -1]]
    sequences = check_cross_scores(seed, beams, [[0, 1]], forced)
    assert (sequences[0, :, 3:6] == forced[0]).all()
    assert (sequences[1, :, 3] == 13).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beams", [1, 3])
def test_whisper_feeds_decoders_whose_pasts_and_presents_share_buffers(
    seed: int, beams: int
) -> None:
    check_cross_scores(seed, beams, shares=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cross_qk_layer_head": np.array([[1, 0]], np.int32)}, r"layers in \[0, 1\), got 1"),
        ({"cross_qk_layer_head": np.array([[0, -1]], np.int32)}, r"heads in \[0, 2\), got -1"),
        ({"cross_qk_layer_head": np.zeros((1, 3), np.int32)}, "pairs of layer and head"),
        ({"extra_decoding_ids": np.zeros((3, 1), np.int32)}, "expected tokens of 2 rows"),
        ({"extra_decoding_ids": np.full((2, 1), VOCABULARY, np.int32)}, "below 23, got 23"),
    ],
)
def test_whisper_rejects_heads_and_extra_ids_that_are_none(changes: Inputs, message: str) -> None:
    inputs = {**whisper_inputs(0, {}), **changes}
    graphs = {"encoder": whisper_encoder(), "decoder": asked_whisper_decoder()}
    options = {"model_type": 2, "decoder_start_token_id": START, "decoder_output_cross_qk": 1}
    content = model("WhisperBeamSearch", inputs, WHISPER, 4, **graphs, **options)
    with pytest.raises(Exception, match=message):
        tenon.InferenceSession(content).run(None, feeds_of(inputs))


def test_whisper_gives_no_cross_scores_without_a_decoder_that_has_them() -> None:
    inputs = whisper_inputs(0, {})
    with pytest.raises(Exception, match="decoder_output_cross_qk"):
        tenon.InferenceSession(whisper(inputs, 4))
    with pytest.raises(Exception, match="for each layer, got 3 outputs"):
        tenon.InferenceSession(whisper(inputs, 4, decoder_output_cross_qk=1))

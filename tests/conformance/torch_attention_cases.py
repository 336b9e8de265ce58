"""Random cases of attention and of operators with a state, for torch_cases.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch_cases import Case, Generator, attributes, constant, draw, family, pick, uniform

MICROSOFT = "com.microsoft."


def flat(*outputs: str) -> str:
    """Nodes that make one output y of several."""
    rows = "".join(f"flat_{name} = Reshape ({name}, minus)\n" for name in outputs)
    joined = ", ".join(f"flat_{name}" for name in outputs)
    return f"minus = Constant <value_ints=[-1]> ()\n{rows}y = Concat <axis=0> ({joined})"


def listed(inputs: dict[str, Any], *order: str) -> str:
    """The names of a node's inputs, of which some are left out."""
    given = [name if name in inputs else "" for name in order]
    return ", ".join(given).rstrip(", ")


def heads_of(rng: Generator) -> tuple[int, int]:
    return pick(rng, (2, 2), (2, 1), (4, 2), (1, 1))


@family(16)
def attention(rng: Generator, factor: int) -> Case:
    heads, kv_heads = heads_of(rng)
    batch, queries, keys = draw(rng, 1, 2), draw(rng, 1, 4) * factor, draw(rng, 2, 5) * factor
    size, value_size, is_flat = draw(rng, 1, 5), draw(rng, 1, 5), draw(rng, 0, 1)

    def rows(count: int, length: int, width: int) -> np.ndarray:
        shape = [batch, length, count * width] if is_flat else [batch, count, length, width]
        return uniform(rng, *shape)

    inputs = {"q": rows(heads, queries, size), "k": rows(kv_heads, keys, size)}
    inputs["v"] = rows(kv_heads, keys, value_size)
    differentiated = ["q", "k", "v"]
    options: dict[str, Any] = {"is_causal": draw(rng, 0, 1)}
    if is_flat:
        options |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    if draw(rng, 0, 1):
        options["scale"] = 0.625
    past = 0
    kind = pick(rng, "plain", "plain", "capped", "past", "window", "lengths")
    if kind == "capped":
        options["softcap"] = 1.5
    elif kind == "past":
        past = draw(rng, 1, 3)
        inputs["past_key"] = uniform(rng, batch, kv_heads, past, size)
        inputs["past_value"] = uniform(rng, batch, kv_heads, past, value_size)
        differentiated += ["past_key", "past_value"]
    elif kind == "window":
        options |= {"left_window_size": draw(rng, -1, 2), "right_window_size": draw(rng, 0, 2)}
    elif kind == "lengths":
        inputs["lengths"] = rng.integers(0, keys + 1, batch)
    total, mask = past + keys, pick(rng, "none", "float", "frozen", "bool")
    if mask != "none":
        width = draw(rng, 1, total) if draw(rng, 0, 1) else total
        shape = [pick(rng, 1, batch), pick(rng, 1, heads), pick(rng, 1, queries), width]
        shape = shape[draw(rng, 0, 3) :]
        if mask == "bool":
            inputs["mask"] = rng.uniform(size=shape) < 0.7
        else:
            inputs["mask"] = uniform(rng, *shape)
            differentiated += ["mask"] if mask == "float" else []
    order = "q", "k", "v", "mask", "past_key", "past_value", "lengths"
    node = f"Attention {attributes(**options)} ({listed(inputs, *order)})"
    nodes = f"a, present_key, present_value = {node}\n{flat('a', 'present_key', 'present_value')}"
    options |= {"heads": heads, "kv_heads": kv_heads, "presents": kind == "past"}
    if kind != "past":
        nodes = f"y = {node}"
    return Case(nodes, inputs, options, 25, tuple(differentiated))


@family(8)
def attention_layers(rng: Generator, factor: int) -> Case:
    """Each layer projects what the one before it made."""
    heads, kv_heads = pick(rng, (14, 2), (4, 2), (2, 2), (3, 1))
    layers, batch, length = draw(rng, 2, 3), draw(rng, 1, 2), draw(rng, 2, 4) * factor
    size = draw(rng, 1, 6 // kv_heads) if heads < 14 else 1
    is_flat, is_causal = draw(rng, 0, 1), draw(rng, 0, 1)
    inputs = {"x": uniform(rng, batch, length, heads * size, low=-0.7, high=0.7)}
    differentiated = ["x"]
    mask = pick(rng, "none", "none", "float", "frozen", "bool")
    shape = [pick(rng, 1, batch), pick(rng, 1, heads), length, length][draw(rng, 0, 2) :]
    if mask == "bool":
        inputs["mask"] = rng.uniform(size=shape) < 0.8
    elif mask != "none":
        inputs["mask"] = uniform(rng, *shape)
        differentiated += ["mask"] if mask == "float" else []
    options: dict[str, Any] = {"is_causal": is_causal}
    if is_flat:
        options |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    nodes = constant("heads_of_q", [0, 0, heads, size]) + constant("heads_of_k", [0, 0, -1, size])
    nodes += constant("flat", [0, 0, heads * size])
    last = "x"
    for layer in range(layers):
        for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            weights, made = f"{name}w{layer}", f"{name}{layer}"
            width = heads * size
            inputs[weights] = uniform(rng, width, count * size, low=-1, high=1) / width**0.5
            differentiated.append(weights)
            nodes += f"{made} = MatMul ({last}, {weights})\n"
            if not is_flat:
                rows = "heads_of_q" if name == "q" else "heads_of_k"
                nodes += f"{made}r = Reshape ({made}, {rows})\n"
                nodes += f"{made}h = Transpose <perm=[0, 2, 1, 3]> ({made}r)\n"
        ending, given = "" if is_flat else "h", "" if mask == "none" else ", mask"
        operands = ", ".join(f"{name}{layer}{ending}" for name in "qkv") + given
        nodes += f"a{layer} = Attention {attributes(**options)} ({operands})\n"
        last = f"a{layer}"
        if not is_flat:
            nodes += f"a{layer}t = Transpose <perm=[0, 2, 1, 3]> (a{layer})\n"
            nodes += f"a{layer}f = Reshape (a{layer}t, flat)\n"
            last = f"a{layer}f"
    options = {"layers": layers, "heads": heads, "kv_heads": kv_heads, "is_causal": is_causal}
    # In float32 first: kernels compute the gradients that nothing differentiates.
    types = "float32", "float64"
    return Case(
        f"{nodes}y = Identity ({last})", inputs, options, 23, tuple(differentiated), types=types
    )


@family(16)
def group_query_attention(rng: Generator, factor: int) -> Case:
    heads, kv_heads = heads_of(rng)
    batch, length, size = draw(rng, 1, 2), draw(rng, 1, 4) * factor, 2 * draw(rng, 1, 3)
    options: dict[str, Any] = {"num_heads": heads, "kv_num_heads": kv_heads}
    inputs: dict[str, np.ndarray] = {}
    is_packed = draw(rng, 0, 1)
    if is_packed:
        inputs["q"] = uniform(rng, batch, length, (heads + 2 * kv_heads) * size)
    else:
        inputs["q"] = uniform(rng, batch, length, heads * size)
        inputs["k"] = uniform(rng, batch, length, kv_heads * size)
        inputs["v"] = uniform(rng, batch, length, kv_heads * size)
    differentiated = list(inputs)
    inputs["last"] = rng.integers(0, length, batch).astype(np.int32)
    causal, window = pick(rng, (1, None), (1, 1), (1, 2), (0, None))
    options |= {"causal": causal, "local_window_size": window}
    options |= {"scale": pick(rng, None, 0.375), "softcap": pick(rng, None, 1.5)}
    if draw(rng, 0, 1):
        rotated = 2 * draw(rng, 1, size // 2)
        options |= {"do_rotary": 1, "rotary_interleaved": draw(rng, 0, 1)}
        angles = uniform(rng, length + 2, rotated // 2)
        inputs |= {"cos": np.cos(angles), "sin": np.sin(angles)}
        if draw(rng, 0, 1):
            inputs["positions"] = rng.integers(0, length + 2, [batch, length])
    if draw(rng, 0, 1):
        inputs["bias"] = uniform(rng, pick(rng, 1, batch), pick(rng, 1, heads), length, length)
        differentiated += ["bias"] if draw(rng, 0, 1) else []
    sinks = pick(rng, "none", "none", "smooth", "given")
    if sinks == "smooth":
        options["smooth_softmax"] = 1
    elif sinks == "given":
        inputs["sinks"] = uniform(rng, heads)
        differentiated.append("sinks")
    if draw(rng, 0, 1):
        inputs |= {"query_norm": uniform(rng, size), "key_norm": uniform(rng, size)}
        options["qk_norm_epsilon"] = 0.125
        differentiated += ["query_norm", "key_norm"]
    order = ("q", "k", "v", "", "", "last", "total", "cos", "sin", "positions", "bias", "sinks")
    order += ("", "", "query_norm", "key_norm")
    nodes = f"""total = Constant <value = int32 {{{length}}}> ()
        y, present_key, present_value = {MICROSOFT}GroupQueryAttention {attributes(**options)}
        ({listed({**inputs, "total": None}, *order)})"""
    return Case(nodes, inputs, options, 24, tuple(differentiated), types=("float32",))


@family(16)
def multi_head_attention(rng: Generator, factor: int) -> Case:
    batch, heads, size, value_size = draw(rng, 1, 3), draw(rng, 1, 3), draw(rng, 1, 4), 3
    queries, keys = draw(rng, 1, 4) * factor, draw(rng, 1, 5) * factor
    form = pick(rng, "separate", "packed", "joined", "packed_kv", "heads")
    if form in ("packed", "joined"):
        keys = queries
    if form not in ("separate", "heads"):
        value_size = size
    width = heads * size
    shapes = {
        "separate": {
            "q": [batch, queries, width],
            "k": [batch, keys, width],
            "v": [batch, keys, heads * value_size],
        },
        "packed": {"q": [batch, queries, heads, 3, size]},
        "joined": {"q": [batch, queries, 3 * width]},
        "packed_kv": {"q": [batch, queries, width], "k": [batch, keys, heads, 2, size]},
        "heads": {
            "q": [batch, queries, width],
            "k": [batch, heads, keys, size],
            "v": [batch, heads, keys, value_size],
        },
    }[form]
    inputs = {name: uniform(rng, *shape) for name, shape in shapes.items()}
    if draw(rng, 0, 1):
        inputs["bias"] = uniform(rng, heads * (2 * size + value_size))
    differentiated = list(inputs)
    padding = pick(rng, "none", "lengths", "ranges", "sums", "keys", "rows")
    if padding in ("keys", "rows"):
        shape = [batch, keys] if padding == "keys" else [batch, queries, keys]
        inputs["padding"] = rng.integers(0, 2, shape).astype(np.int32)
    elif padding != "none":
        ends = rng.integers(1, keys + 1, batch)
        more = {"lengths": [], "ranges": [rng.integers(0, ends)], "sums": [range(2 * batch + 2)]}
        inputs["padding"] = np.concatenate([ends, *more[padding]]).astype(np.int32)
    if draw(rng, 0, 1):
        inputs["scores"] = uniform(rng, pick(rng, 1, batch), pick(rng, 1, heads), queries, keys)
        differentiated.append("scores")
    given = attributes(
        num_heads=heads,
        scale=(scale := pick(rng, None, 0.375)),
        mask_filter_value=-3.0,
        unidirectional=(causal := draw(rng, 0, 1)),
    )
    names = listed(inputs, "q", "k", "v", "bias", "padding", "scores")
    options = {"form": form, "heads": heads, "scale": scale, "is_causal": causal}
    nodes = f"y = {MICROSOFT}MultiHeadAttention {given} ({names})"
    return Case(
        nodes, inputs, options | {"padding": padding}, 24, tuple(differentiated), types=("float32",)
    )


@family(16)
def group_query_attention_of_past(rng: Generator, factor: int) -> Case:
    heads, kv_heads = heads_of(rng)
    batch, length, size = draw(rng, 1, 3), draw(rng, 1, 3) * factor, 2 * draw(rng, 1, 3)
    stored = draw(rng, 1, 5) * factor
    past = rng.integers(0, stored + 1, batch) * (draw(rng, 0, 3) > 0)
    total = int(past.max()) + length
    inputs = {
        "q": uniform(rng, batch, length, heads * size),
        "k": uniform(rng, batch, length, kv_heads * size),
        "v": uniform(rng, batch, length, kv_heads * size),
        "past_key": uniform(rng, batch, kv_heads, stored, size),
        "past_value": uniform(rng, batch, kv_heads, stored, size),
    }
    if draw(rng, 0, 1):
        inputs["q"] = np.concatenate([inputs["q"], inputs.pop("k"), inputs.pop("v")], 2)
    differentiated = list(inputs)
    # Padding may follow the first tokens of a sequence.
    missing = rng.integers(0, length, batch) * (total == length)
    inputs["last"] = (past + length - 1 - missing).astype(np.int32)
    options: dict[str, Any] = {"num_heads": heads, "kv_num_heads": kv_heads}
    causal, window = pick(rng, (1, None), (1, 2), (1, 3), (0, None))
    options |= {"causal": causal, "local_window_size": window, "scale": pick(rng, None, 0.375)}
    options["softcap"] = pick(rng, None, 1.5)
    if draw(rng, 0, 1):
        options |= {"do_rotary": 1, "rotary_interleaved": draw(rng, 0, 1)}
        angles = uniform(rng, total + 2, size // 2)
        inputs |= {"cos": np.cos(angles), "sin": np.sin(angles)}
        if draw(rng, 0, 1):
            inputs["positions"] = rng.integers(0, total + 2, [batch, length])
    if draw(rng, 0, 1):
        inputs["bias"] = uniform(rng, pick(rng, 1, batch), pick(rng, 1, heads), length, total)
        differentiated.append("bias")
    if draw(rng, 0, 1):
        inputs["sinks"] = uniform(rng, heads)
        differentiated.append("sinks")
    order = ("q", "k", "v", "past_key", "past_value", "last", "total", "cos", "sin", "positions")
    given = listed({**inputs, "total": None}, *order, "bias", "sinks")
    node = f"{MICROSOFT}GroupQueryAttention {attributes(**options)} ({given})"
    nodes = f"""total = Constant <value = int32 {{{total}}}> ()
        a, present_key, present_value = {node}
        {flat("a", "present_key", "present_value")}"""
    options |= {"past": past, "total": total}
    return Case(nodes, inputs, options, 24, tuple(differentiated), types=("float32",))


@family(12)
def multi_head_attention_of_past(rng: Generator, factor: int) -> Case:
    batch, heads, size, value_size = draw(rng, 1, 3), draw(rng, 1, 3), draw(rng, 1, 4), 3
    queries, keys, past = (draw(rng, 1, 4) * factor for _ in range(3))
    inputs = {
        "q": uniform(rng, batch, queries, heads * size),
        "k": uniform(rng, batch, keys, heads * size),
        "v": uniform(rng, batch, keys, heads * value_size),
        "past_key": uniform(rng, batch, heads, past, size),
        "past_value": uniform(rng, batch, heads, past, value_size),
    }
    if draw(rng, 0, 1):
        inputs["bias"] = uniform(rng, heads * (2 * size + value_size))
    if draw(rng, 0, 1):
        shape = pick(rng, 1, batch), pick(rng, 1, heads), queries, past + keys
        inputs["scores"] = uniform(rng, *shape)
    differentiated = tuple(inputs)
    padding = pick(rng, "none", "keys", "lengths")
    if padding == "keys":
        inputs["padding"] = rng.integers(0, 2, [batch, past + keys]).astype(np.int32)
    elif padding == "lengths":
        inputs["padding"] = rng.integers(1, past + keys + 1, batch).astype(np.int32)
    options = {"heads": heads, "scale": pick(rng, None, 0.375), "is_causal": draw(rng, 0, 1)}
    given = attributes(
        num_heads=heads,
        scale=options["scale"],
        mask_filter_value=-3.0,
        unidirectional=options["is_causal"],
    )
    order = "q", "k", "v", "bias", "padding", "scores", "past_key", "past_value"
    node = f"{MICROSOFT}MultiHeadAttention {given} ({listed(inputs, *order)})"
    nodes = f"a, present_key, present_value = {node}\n{flat('a', 'present_key', 'present_value')}"
    options |= {"form": "separate", "padding": padding}
    return Case(nodes, inputs, options, 24, differentiated, types=("float32",))


@family(10)
def linear_attention(rng: Generator, factor: int) -> Case:
    domain = pick(rng, "", MICROSOFT)
    heads, kv_heads = heads_of(rng) if not domain else pick(rng, (2, 1), (1, 2), (2, 2))
    batch, length = draw(rng, 1, 2), draw(rng, 1, 4) * factor
    size, value_size = draw(rng, 1, 3), draw(rng, 1, 3)
    rule = pick(rng, "linear", "gated", "delta", "gated_delta")
    inputs = {
        "q": uniform(rng, batch, length, heads * size),
        "k": uniform(rng, batch, length, kv_heads * size, low=-0.7, high=0.7),
        "v": uniform(rng, batch, length, kv_heads * value_size),
    }
    if draw(rng, 0, 1):
        inputs["past"] = uniform(rng, batch, kv_heads, size, value_size)
    if "gated" in rule:
        width = kv_heads * pick(rng, 1, size)
        inputs["decay"] = uniform(rng, batch, length, width, low=-1, high=0)
    if "delta" in rule:
        inputs["beta"] = uniform(rng, batch, length, pick(rng, 1, kv_heads), low=0.1, high=0.9)
    options = {"q_num_heads": heads, "kv_num_heads": kv_heads, "update_rule": rule}
    options["scale"] = pick(rng, None, 0.75)
    names = listed(inputs, "q", "k", "v", "past", "decay", "beta")
    node = f"{domain}LinearAttention {attributes(**options)} ({names})"
    nodes = f"a, state = {node}\n{flat('a', 'state')}"
    return Case(nodes, inputs, options, 27, tuple(inputs), types=("float32",))


@family(8)
def causal_conv(rng: Generator, factor: int) -> Case:
    domain = pick(rng, "", MICROSOFT)
    batch, channels, length = draw(rng, 1, 2), draw(rng, 1, 3), draw(rng, 1, 5) * factor
    taps, dilation = draw(rng, 1, 4), draw(rng, 1, 2) if domain else None
    inputs = {"x": uniform(rng, batch, channels, length), "w": uniform(rng, channels, 1, taps)}
    if draw(rng, 0, 1):
        inputs["bias"] = uniform(rng, channels)
    if draw(rng, 0, 1):
        inputs["past"] = uniform(rng, batch, channels, (taps - 1) * (dilation or 1))
    options = {"activation": pick(rng, "none", "silu", "swish"), "dilation": dilation}
    names = listed(inputs, "x", "w", "bias", "past")
    node = f"{domain}CausalConvWithState {attributes(**options)} ({names})"
    nodes = f"a, state = {node}\n{flat('a', 'state')}"
    return Case(nodes, inputs, options, 27, tuple(inputs), types=("float32",))

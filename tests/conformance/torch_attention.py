"""The operators of torch_attention_cases.py in PyTorch, for make_torch_gradients.py."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

Tensors = dict[str, torch.Tensor]
Options = dict[str, Any]


def heads_first(x: torch.Tensor, heads: int) -> torch.Tensor:
    """[batch, heads, length, size]"""
    return x if x.dim() == 4 else x.unflatten(2, (heads, -1)).transpose(1, 2)


def heads_last(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).flatten(2)


def product(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    seen: torch.Tensor,
    *,
    addends: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> torch.Tensor:
    """softmax(scale q k' + addends) v, of the keys that are seen; zeros where none is."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(2, 3) * (scale or q.shape[3] ** -0.5)
    if softcap:
        scores = softcap * (scores / softcap).tanh()
    if addends is not None:
        scores = scores + addends
    scores = scores.masked_fill(~seen, -1e30)
    if sinks is not None:
        more = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, more], 3)
    weights = scores.softmax(3)[..., : k.shape[2]]
    return (weights * seen) @ v


def near(query: torch.Tensor, key: torch.Tensor, left: int, right: int) -> torch.Tensor:
    """Which keys a query at a position sees; -1: without limit."""
    seen = torch.ones(torch.broadcast_shapes(query.shape, key.shape), dtype=torch.bool)
    if left >= 0:
        seen = seen & (key >= query - left)
    return seen & (key <= query + right) if right >= 0 else seen


def attention(v: Tensors, o: Options) -> torch.Tensor:
    q, k, value = (
        heads_first(v[name], o[heads])
        for name, heads in (("q", "heads"), ("k", "kv_heads"), ("v", "kv_heads"))
    )
    past = 0
    if "past_key" in v:
        past = v["past_key"].shape[2]
        k = torch.cat([v["past_key"], k], 2)
        value = torch.cat([v["past_value"], value], 2)
    query, key = torch.arange(q.shape[2]).reshape(-1, 1) + past, torch.arange(k.shape[2])
    right = 0 if o["is_causal"] else o.get("right_window_size", -1)
    if "lengths" in v:
        lengths = v["lengths"].reshape(-1, 1, 1, 1)
        query = query + lengths - q.shape[2]
    seen = near(query, key, o.get("left_window_size", -1), right)
    if "lengths" in v:
        seen = seen & (key < lengths)
    mask = v.get("mask")
    if mask is not None:
        missing = k.shape[2] - mask.shape[-1]
        seen = seen & (key < mask.shape[-1])
        mask = functional.pad(mask, [0, missing])
        if mask.dtype == torch.bool:
            seen, mask = seen & mask, None
    settings = {"scale": o.get("scale"), "softcap": o.get("softcap")}
    y = product(q, k, value, seen, addends=mask, **settings)
    y = heads_last(y) if "q_num_heads" in o else y
    return torch.cat([x.flatten() for x in (y, k, value)]) if o["presents"] else y


def attention_layers(v: Tensors, o: Options) -> torch.Tensor:
    y, kv_heads = v["x"], o["kv_heads"]
    for layer in range(o["layers"]):
        counts = {"q": o["heads"], "k": kv_heads, "v": kv_heads}
        heads = {name: heads_first(y @ v[f"{name}w{layer}"], n) for name, n in counts.items()}
        once = {"heads": o["heads"], "kv_heads": kv_heads, "is_causal": o["is_causal"]}
        once |= {"presents": False, "q_num_heads": o["heads"]}
        y = attention({**heads, **({"mask": v["mask"]} if "mask" in v else {})}, once)
    return y


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, pairs: int) -> torch.Tensor:
    """The first elements of heads, by [batch, length, angles]. Pairs are neighbours or apart."""
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    rotated, rest = x.split([2 * cos.shape[3], x.shape[3] - 2 * cos.shape[3]], 3)
    if pairs:
        a, b = rotated[..., 0::2], rotated[..., 1::2]
        turned = torch.stack([a * cos - b * sin, a * sin + b * cos], 4).flatten(3)
    else:
        a, b = rotated.chunk(2, 3)
        turned = torch.cat([a * cos - b * sin, a * sin + b * cos], 3)
    return torch.cat([turned, rest], 3)


def group_query_attention(v: Tensors, o: Options) -> torch.Tensor:
    heads, kv_heads = o["num_heads"], o["kv_num_heads"]
    if "k" in v:
        counts = {"q": heads, "k": kv_heads, "v": kv_heads}
        q, k, value = (heads_first(v[name], count) for name, count in counts.items())
    else:
        all_heads = heads_first(v["q"], heads + 2 * kv_heads)
        q, k, value = all_heads.split([heads, kv_heads, kv_heads], 1)
    batch, length = v["q"].shape[:2]
    position = torch.arange(length)
    if "query_norm" in v:
        q, k = (
            x * (x.square().mean(3, keepdim=True) + o["qk_norm_epsilon"]).rsqrt() * weights
            for x, weights in ((q, v["query_norm"]), (k, v["key_norm"]))
        )
    if "do_rotary" in o:
        at = v.get("positions", position.expand(batch, length))
        q, k = (rotate(x, v["cos"][at], v["sin"][at], o["rotary_interleaved"]) for x in (q, k))
    left = (o["local_window_size"] or 0) - 1
    seen = near(position.reshape(-1, 1), position, left, 0 if o["causal"] else -1)
    if not o["causal"]:
        seen = seen & (position <= v["last"].reshape(-1, 1, 1, 1))
    sinks = torch.zeros(heads, dtype=q.dtype) if "smooth_softmax" in o else v.get("sinks")
    settings = {"scale": o["scale"], "softcap": o["softcap"]}
    return heads_last(product(q, k, value, seen, addends=v.get("bias"), sinks=sinks, **settings))


def group_query_attention_of_past(v: Tensors, o: Options) -> torch.Tensor:
    heads, kv_heads, total = o["num_heads"], o["kv_num_heads"], o["total"]
    counts = {"q": heads, "k": kv_heads, "v": kv_heads}
    if "k" in v:
        q, k, value = (heads_first(v[name], count) for name, count in counts.items())
    else:
        q, k, value = heads_first(v["q"], sum(counts.values())).split([*counts.values()], 1)
    past, length = torch.tensor(o["past"]).reshape(-1, 1), q.shape[2]
    position = past + torch.arange(length)
    if "do_rotary" in o:
        at = v.get("positions", position)
        q, k = (rotate(x, v["cos"][at], v["sin"][at], o["rotary_interleaved"]) for x in (q, k))
    rows = max(total, v["past_key"].shape[2])
    presents = []
    for held, added in ((v["past_key"], k), (v["past_value"], value)):
        whole = functional.pad(held, [0, 0, 0, rows - held.shape[2]])
        for i, start in enumerate(o["past"]):
            place = torch.zeros_like(whole, dtype=torch.bool)
            place[i, :, start : start + length] = True
            whole = whole.masked_scatter(place, added[i])
            rest = torch.zeros_like(place)
            rest[i, :, start + length :] = True
            whole = whole.masked_fill(rest, 0.0)
        presents.append(whole)
    k, value = presents
    key, left = torch.arange(rows), (o["local_window_size"] or 0) - 1
    seen = near(position[:, None, :, None], key, left, 0 if o["causal"] else -1)
    ends = past + length if o["causal"] else v["last"] + 1
    seen = seen & (key < ends.reshape(-1, 1, 1, 1))
    bias = v.get("bias")
    if bias is not None:
        bias = functional.pad(bias, [0, rows - total])
    settings = {"scale": o["scale"], "softcap": o["softcap"], "sinks": v.get("sinks")}
    y = heads_last(product(q, k, value, seen, addends=bias, **settings))
    return torch.cat([x.flatten() for x in (y, k, value)])


def multi_head_attention_of_past(v: Tensors, o: Options) -> torch.Tensor:
    return multi_head_attention(v, o)


def multi_head_attention(v: Tensors, o: Options) -> torch.Tensor:
    heads, form = o["heads"], o["form"]
    if form == "packed":
        q, k, value = v["q"].permute(3, 0, 2, 1, 4)
    elif form == "joined":
        q, k, value = (heads_first(x, heads) for x in v["q"].chunk(3, 2))
    elif form == "packed_kv":
        q = heads_first(v["q"], heads)
        k, value = v["k"].permute(3, 0, 2, 1, 4)
    else:
        q, k, value = (heads_first(v[name], heads) for name in "qkv")
    if "bias" in v:
        widths = [heads * x.shape[3] for x in (q, k, value)]
        parts = [x.reshape(heads, 1, -1) for x in v["bias"].split(widths)]
        q = q + parts[0]
        if form != "heads":
            k, value = k + parts[1], value + parts[2]
    past = 0
    if "past_key" in v:
        past = v["past_key"].shape[2]
        k = torch.cat([v["past_key"], k], 2)
        value = torch.cat([v["past_value"], value], 2)
    query, key = torch.arange(q.shape[2]).reshape(-1, 1) + past, torch.arange(k.shape[2])
    seen = near(query, key, -1, 0 if o["is_causal"] else -1)
    addends, batch = v.get("scores", torch.zeros(())), len(q)
    if "padding" in v:
        padding = v["padding"]
        if o["padding"] == "keys":
            counts = (padding > 0).reshape(batch, 1, 1, -1)
        elif o["padding"] == "rows":
            counts = (padding > 0).unsqueeze(1)
        else:
            first = padding[batch:] if o["padding"] == "ranges" else torch.zeros(batch)
            counts = key < padding[:batch].reshape(-1, 1, 1, 1)
            counts = counts & (key >= first.reshape(-1, 1, 1, 1))
        addends = addends - 3.0 * ~counts
    y = heads_last(product(q, k, value, seen, addends=addends, scale=o["scale"]))
    return torch.cat([x.flatten() for x in (y, k, value)]) if past else y


def linear_attention(v: Tensors, o: Options) -> torch.Tensor:
    heads, kv_heads = o["q_num_heads"], o["kv_num_heads"]
    most = max(heads, kv_heads)
    q = heads_first(v["q"], heads).repeat_interleave(most // heads, 1)
    k, value = (heads_first(v[name], kv_heads) for name in "kv")
    batch, size = len(q), q.shape[3]
    state = v.get("past", torch.zeros(batch, kv_heads, size, value.shape[3], dtype=q.dtype))
    rows = []
    for t in range(q.shape[2]):
        if "decay" in v:
            state = state * v["decay"][:, t].reshape(batch, kv_heads, -1, 1).exp()
        update = value[:, :, t]
        if "beta" in v:
            held = torch.einsum("bhij,bhi->bhj", state, k[:, :, t])
            update = v["beta"][:, t].unsqueeze(2) * (update - held)
        state = state + k[:, :, t].unsqueeze(3) * update.unsqueeze(2)
        shared = state.repeat_interleave(most // kv_heads, 1)
        rows.append(torch.einsum("bhij,bhi->bhj", shared, q[:, :, t]).flatten(1))
    y = torch.stack(rows, 1) * (o["scale"] or size**-0.5)
    return torch.cat([y.flatten(), state.flatten()])


def causal_conv(v: Tensors, o: Options) -> torch.Tensor:
    x, w, dilation = v["x"], v["w"], o["dilation"] or 1
    steps = (w.shape[2] - 1) * dilation
    past = v.get("past", x.new_zeros(*x.shape[:2], steps))
    whole = torch.cat([past, x], 2)
    y = functional.conv1d(whole, w, v.get("bias"), dilation=dilation, groups=len(w))
    y = y if o["activation"] == "none" else functional.silu(y)
    return torch.cat([y.flatten(), whole[:, :, x.shape[2] :].flatten()])

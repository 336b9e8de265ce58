"""Training graphs run in two halves around a YieldOp. Requirements: partial-execution."""

import gc
import itertools
import json
import math
import threading
import weakref

import numpy as np
import pytest
import tenon
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from tenon.capi._pybind_state import (
    OrtValueCache,
    OrtValueVector,
    PartialGraphExecutionState,
    TrainingAgent,
)

CPU = tenon.OrtDevice.make("cpu", 0)
RNG = np.random.default_rng(7)
X = RNG.standard_normal((3, 4)).astype(np.float32)
W = RNG.standard_normal((4, 5)).astype(np.float32)
DY = RNG.standard_normal((3, 5)).astype(np.float32)


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def node(op_type, inputs, outputs, domain="", **attributes):
    return helper.make_node(
        op_type, inputs, outputs, f"n_{outputs[0]}", domain=domain, **attributes
    )


def yield_op(inputs, outputs, **attributes):
    attributes.setdefault("full_shape_outputs", list(range(len(outputs))))
    made = helper.make_node("YieldOp", inputs, outputs, "yield", domain="com.microsoft")
    for name, indices in attributes.items():
        made.attribute.append(helper.make_attribute(name, indices, None, AttributeProto.INTS))
    return made


def model_of(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "training", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def layer():
    """y = relu(x w) and the gradient of w. The scale of w is a value that depends only on w."""
    return model_of(
        [
            node("Neg", ["w"], ["minus_w"]),
            node("Neg", ["minus_w"], ["w_again"]),
            node("MatMul", ["x", "w_again"], ["z"]),
            node("Relu", ["z"], ["y"]),
            yield_op(["y"], ["dy"]),
            node("Sign", ["y"], ["mask"]),
            node("Mul", ["dy", "mask"], ["dz"]),
            node("Transpose", ["x"], ["xt"], perm=[1, 0]),
            node("MatMul", ["xt", "dz"], ["dw"]),
            node("Transpose", ["w_again"], ["wt"], perm=[1, 0]),
            node("MatMul", ["dz", "wt"], ["dx"]),
        ],
        [tensor("x", ["n", 4]), tensor("w", [4, 5])],
        [tensor("dw", [4, 5]), tensor("dx", ["n", 4])],
    )


def open_session(model, **options):
    settings = tenon.SessionOptions()
    for name, value in options.items():
        if name == "config":
            for key, text in value.items():
                settings.add_session_config_entry(key, text)
        else:
            setattr(settings, name, value)
    return tenon.InferenceSession(model, settings)


def agent_of(model, **options):
    session = open_session(model, **options)
    return TrainingAgent(session, ["x", "w"], [CPU], ["dw", "dx"], [CPU, CPU])


def value(array):
    return tenon.OrtValue.ortvalue_from_numpy(array)


def values(*arrays):
    vector = OrtValueVector()
    vector.extend(value(array) for array in arrays)
    return vector


def forward(agent, state, x=X, w=W, cache=None):
    fetches = OrtValueVector()
    agent.run_forward(values(x, w), fetches, state, cache)
    return fetches[0].numpy()


def backward(agent, state, dy=DY):
    fetches = OrtValueVector()
    agent.run_backward(values(dy), fetches, state)
    return [fetch.numpy() for fetch in fetches]


def expected(x=X, w=W, dy=DY):
    z = x @ w
    dz = dy * (z > 0)
    return np.maximum(z, 0), x.T @ dz, dz @ w.T


def check(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_two_halves_give_outputs_and_gradients():
    """TX-13, TX-44, TX-45, TX-47, TX-53"""
    agent = agent_of(layer())
    for rows in (3, 3, 2, 3):
        state = PartialGraphExecutionState()
        y, dw, dx = expected(X[:rows], dy=DY[:rows])
        check(forward(agent, state, X[:rows]), y)
        got = backward(agent, state, DY[:rows])
        check(got[0], dw)
        check(got[1], dx)


def test_fetches_are_written_in_place():
    """TX-47: a caller's tensor is the destination."""
    agent = agent_of(layer())
    state = PartialGraphExecutionState()
    destination = np.zeros((3, 5), np.float32)
    fetches = OrtValueVector([value(destination)])
    agent.run_forward(values(X, W), fetches, state)
    check(destination, expected()[0])
    into = np.zeros((4, 5), np.float32)
    fetches = OrtValueVector([value(into)])
    agent.run_backward(values(DY), fetches, state)
    assert len(fetches) == 2
    check(into, expected()[1])


def test_several_forwards_in_flight():
    """TX-50: states end in any order."""
    agent = agent_of(layer())
    states = [PartialGraphExecutionState() for _ in range(4)]
    inputs = [X * (i + 1) for i in range(4)]
    for state, x in zip(states, inputs, strict=True):
        check(forward(agent, state, x), expected(x)[0])
    for i in (2, 0, 3, 1):
        check(backward(agent, states[i])[0], expected(inputs[i])[1])


def test_halves_run_in_order():
    """TX-12, TX-22, TX-49, TX-54"""
    agent = agent_of(layer())
    state = PartialGraphExecutionState()
    with pytest.raises(RuntimeError, match=r"^Error in backward pass execution: .*stage 0"):
        backward(agent, state)
    forward(agent, state)
    with pytest.raises(RuntimeError, match=r"^Error in forward pass execution: .*stage 1"):
        forward(agent, state)
    check(backward(agent, state)[0], expected()[1])
    with pytest.raises(RuntimeError, match="all stages"):
        backward(agent, state)
    other = agent_of(layer())
    with pytest.raises(RuntimeError, match="another session"):
        forward(other, state)


def test_wrong_feeds():
    """TX-14, TX-48, TX-54: counts, types and shapes; the state stays usable."""
    agent = agent_of(layer())
    state = PartialGraphExecutionState()
    fetches = OrtValueVector()
    with pytest.raises(RuntimeError, match="expected 2 feeds, got 1"):
        agent.run_forward(values(X), fetches, state)
    with pytest.raises(RuntimeError, match=r"double.* for input 'w'"):
        agent.run_forward(values(X, W.astype(np.float64)), fetches, state)
    with pytest.raises(RuntimeError, match="input 'w': expected size 4 at axis 0"):
        agent.run_forward(values(X, W[:2]), fetches, state)
    forward(agent, state)
    with pytest.raises(RuntimeError, match=r"double.* for input 'dy'"):
        backward(agent, state, DY.astype(np.float64))
    check(backward(agent, state)[0], expected()[1])


def test_failed_half_poisons_its_state():
    """TX-23, TX-28, TX-30"""
    agent = agent_of(layer())
    state = PartialGraphExecutionState()
    forward(agent, state)
    with pytest.raises(RuntimeError, match=r"running Mul node. Name:'n_dz' Status Message: "):
        backward(agent, state, np.ones((2, 5), np.float32))
    with pytest.raises(RuntimeError, match="an earlier part of this execution failed"):
        backward(agent, state)
    state = PartialGraphExecutionState()
    check(forward(agent, state), expected()[0])
    check(backward(agent, state)[0], expected()[1])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((["x", "v"], [CPU], ["dw"], [CPU]), "'v' is not an input"),
        ((["x", "w"], [CPU], ["dv"], [CPU]), "'dv' is not an output"),
        (
            (["x", "w"], [], ["dw"], [CPU]),
            "stage 0: expected a memory for each of 1 fetches, got 0",
        ),
        ((["x", "w"], [CPU], ["dw"], [CPU] * 2), "stage 1: expected a memory for each of 1"),
    ],
)
def test_refused_agents(arguments, message):
    """TX-46"""
    with pytest.raises(Exception, match=message):
        TrainingAgent(open_session(layer()), *arguments)


def test_graph_without_yield():
    """TX-46"""
    model = model_of([node("Relu", ["x"], ["y"])], [tensor("x", [2])], [tensor("y", [2])])
    with pytest.raises(Exception, match="graph 'training' has no YieldOp"):
        TrainingAgent(open_session(model), ["x"], [], ["y"], [CPU])


def test_parallel_sessions_are_refused():
    """TX-9"""
    with pytest.raises(Exception, match="sequential execution mode"):
        agent_of(layer(), execution_mode=tenon.ExecutionMode.ORT_PARALLEL)


def test_whole_runs_do_not_compute_what_is_yielded():
    """TX-5, TX-6, TX-7"""
    session = open_session(layer())
    with pytest.raises(Exception, match=r"value 'dy' is needed .* neither made nor fed"):
        session.run(None, {"x": X, "w": W})


def yielding(inputs, outputs, **attributes):
    """A graph of a YieldOp with so many inputs and outputs."""
    names = [f"x{i}" for i in range(inputs)]
    gradients = [f"g{i}" for i in range(outputs)]
    return model_of(
        [
            *(node("Relu", [name], [f"r_{name}"]) for name in names),
            yield_op([f"r_{name}" for name in names], gradients, **attributes),
            *(node("Neg", [name], [f"out_{name}"]) for name in gradients),
        ],
        [tensor(name, [2, 3]) for name in names],
        [tensor(f"out_{name}", None) for name in gradients],
    )


@pytest.mark.parametrize(
    "inputs, outputs, attributes, message",
    [
        (2, 1, {"full_shape_outputs": [0]}, "expected 2 outputs for 2 inputs, 0 of which"),
        (2, 2, {"non_differentiable_outputs": [1], "full_shape_outputs": []}, "expected 1 outputs"),
        (2, 1, {"non_differentiable_outputs": [2]}, "indices of the 2 inputs, got 2"),
        (2, 2, {"full_shape_outputs": [-1]}, "full_shape_outputs: .*got -1"),
        (2, 2, {"full_shape_outputs": [1, 1]}, "index 1 is there twice"),
    ],
)
def test_malformed_yields(inputs, outputs, attributes, message):
    """TX-1, TX-2, TX-3"""
    with pytest.raises(Exception, match=message):
        open_session(yielding(inputs, outputs, **attributes))


def test_yield_without_required_attribute():
    """TX-2"""
    cut = helper.make_node("YieldOp", ["x"], ["g"], "yield", domain="com.microsoft")
    model = model_of([cut], [tensor("x", [2])], [tensor("g", [2])])
    with pytest.raises(Exception, match="full_shape_outputs"):
        open_session(model)


def test_types_of_gradients():
    """TX-1, TX-4: shapes only of full outputs, types of all."""
    model = yielding(3, 2, non_differentiable_outputs=[1], full_shape_outputs=[2])
    outputs = open_session(model).get_outputs()
    assert [output.type for output in outputs] == ["tensor(float)"] * 2
    assert outputs[1].shape == [2, 3]
    assert outputs[0].shape != [2, 3]
    agent = TrainingAgent(
        open_session(model), ["x0", "x1", "x2"], [CPU] * 3, ["out_g0", "out_g1"], [CPU] * 2
    )
    state, fetches = PartialGraphExecutionState(), OrtValueVector()
    ones = np.ones((2, 3), np.float32)
    agent.run_forward(values(ones, -ones, 2 * ones), fetches, state)
    assert [fetch.numpy().max() for fetch in fetches] == [1, 0, 2]
    fetches = OrtValueVector()
    agent.run_backward(
        values(np.float32(0), ones), fetches, state
    )  # a missing one is a scalar zero
    assert [fetch.shape() for fetch in fetches] == [[], [2, 3]]


def test_yield_without_outputs():
    """TX-1, TX-7: it stays, though no node reads its output."""
    model = yielding(1, 0, non_differentiable_outputs=[0])
    agent = TrainingAgent(open_session(model), ["x0"], [CPU], [], [])
    state, fetches = PartialGraphExecutionState(), OrtValueVector()
    agent.run_forward(values(np.full((2, 3), 5, np.float32)), fetches, state)
    assert fetches[0].numpy().min() == 5
    agent.run_backward(OrtValueVector(), OrtValueVector(), state)


def test_yielded_initializers_are_copies():
    """TX-15, TX-47: an input of a YieldOp may be a constant."""
    weights = numpy_helper.from_array(W, "w")
    model = model_of(
        [
            node("Relu", ["x"], ["y"]),
            yield_op(["y", "w"], ["dy", "dw"]),
            node("Neg", ["dy"], ["a"]),
            node("Add", ["dw", "w"], ["b"]),
        ],
        [tensor("x", [2])],
        [tensor("a", [2]), tensor("b", [4, 5])],
        [weights],
    )
    agent = TrainingAgent(open_session(model), ["x"], [CPU] * 2, ["a", "b"], [CPU] * 2)
    for _ in range(2):
        state, fetches = PartialGraphExecutionState(), OrtValueVector()
        agent.run_forward(values(np.ones(2, np.float32)), fetches, state)
        check(fetches[1].numpy(), W)
        fetches[1].numpy()[:] = 0  # the caller's own
        got = OrtValueVector()
        agent.run_backward(values(np.ones(2, np.float32), W), got, state)
        check(got[1].numpy(), 2 * W)


def events_of(session):
    with open(session.end_profiling(), encoding="utf-8") as file:
        return json.load(file)


def traced(folder):
    """A session of all nodes that writes a trace, and its agent."""
    session = open_session(
        layer(),
        enable_profiling=True,
        profile_file_prefix=str(folder / "trace"),
        graph_optimization_level=tenon.GraphOptimizationLevel.ORT_DISABLE_ALL,
    )
    return session, TrainingAgent(session, ["x", "w"], [CPU], ["dw", "dx"], [CPU, CPU])


def test_cached_values_take_the_place_of_nodes(tmp_path):
    """TX-37, TX-38, TX-39, TX-41, TX-43, TX-67"""
    session, agent = traced(tmp_path)
    cache = OrtValueCache()
    cache.insert("w_again", value(2 * W))
    cache.insert("unknown", value(X))
    for _ in range(2):
        state = PartialGraphExecutionState()
        check(forward(agent, state, cache=cache), np.maximum(X @ (2 * W), 0))
        check(backward(agent, state)[1], expected(w=2 * W)[2])
    kernels = [event for event in events_of(session) if event["name"].endswith("_kernel_time")]
    assert [event["args"].get("cached") for event in kernels] == 2 * ([None, "1"] + [None] * 8)


def test_cached_values_must_fit():
    """TX-40"""
    agent = agent_of(layer(), graph_optimization_level=tenon.GraphOptimizationLevel.ORT_DISABLE_ALL)
    cache = OrtValueCache()
    for wrong in (W.astype(np.float64), W[0]):
        for name in cache.keys():
            cache.remove(name)
        cache.insert("z", value(wrong))
        with pytest.raises(RuntimeError, match="'z'"):
            forward(agent, PartialGraphExecutionState(), cache=cache)


def test_operations_of_the_cache():
    """TX-42, TX-53"""
    cache = OrtValueCache()
    assert cache.keys() == []
    cache.insert("b", value(X))
    cache.insert("a", value(X))
    cache.insert("b", value(W))
    assert cache.keys() == ["a", "b"]
    assert (cache.count("a"), cache.count("c")) == (1, 0)
    cache.remove("a")
    with pytest.raises(Exception, match="no value 'a'"):
        cache.remove("a")
    cache.clear()
    assert cache.count("b") == 0


def test_states_outlive_agents_and_sessions():
    """TX-20, TX-52"""
    agent = agent_of(layer())
    state = PartialGraphExecutionState()
    y = forward(agent, state)
    del agent
    gc.collect()
    check(y, expected()[0])
    del state
    gc.collect()
    check(y, expected()[0])


class Array(np.ndarray):
    """An array to which weak references show how long its memory lives."""


def lent(array):
    """A value over the memory of a new array, and a reference to the array."""
    owner = array.copy().view(Array)
    return value(owner), weakref.ref(owner)


def overwrite_freed_memory():
    """Freed arrays as small as those of these tests are reused for the next ones."""
    gc.collect()
    return [np.full((rows, 5), np.nan, np.float32) for rows in (3, 4) for _ in range(50)]


def test_feeds_live_until_the_backward_half_has_read_them():
    """TX-14, TX-20: Python's memory stays as long as a state may read it."""
    agent = agent_of(layer())
    for has_backward in (True, False):
        state = PartialGraphExecutionState()
        (x, x_alive), (w, w_alive) = lent(X), lent(W)
        agent.run_forward(OrtValueVector([x, w]), OrtValueVector(), state)
        del x, w
        filled = overwrite_freed_memory()
        assert x_alive() is not None
        assert w_alive() is not None
        if has_backward:
            for got, want in zip(backward(agent, state), expected()[1:], strict=True):
                check(got, want)
        else:
            del state
        assert x_alive() is None
        assert w_alive() is None
        del filled


def test_results_written_in_place_live_until_the_backward_half_has_read_them():
    """TX-47: the backward half reads y from the caller's tensor."""
    agent = agent_of(layer())
    state = PartialGraphExecutionState()
    y, y_alive = lent(np.zeros((3, 5), np.float32))
    agent.run_forward(values(X, W), OrtValueVector([y]), state)
    del y
    filled = overwrite_freed_memory()
    assert y_alive() is not None
    check(backward(agent, state)[0], expected()[1])
    assert y_alive() is None
    del filled


def test_cached_values_live_as_long_as_a_cache_or_state_has_them():
    """TX-42: Python's memory stays as long as a cache or a state may read it."""
    plain = {"graph_optimization_level": tenon.GraphOptimizationLevel.ORT_DISABLE_ALL}
    agent = agent_of(layer(), **plain)
    cache = OrtValueCache()
    weights, alive = lent(2 * W)
    cache.insert("w_again", weights)
    del weights
    filled = overwrite_freed_memory()
    assert alive() is not None
    state = PartialGraphExecutionState()
    check(forward(agent, state, cache=cache), expected(w=2 * W)[0])
    cache.remove("w_again")
    gc.collect()
    assert alive() is not None
    check(backward(agent, state)[1], expected(w=2 * W)[2])
    assert alive() is None
    del filled


@pytest.mark.parametrize("end", ["replace", "remove", "clear", "delete"])
def test_caches_release_what_they_no_longer_have(end):
    """TX-42"""
    cache = OrtValueCache()
    weights, alive = lent(W)
    cache.insert("w", weights)
    del weights
    assert alive() is not None
    if end == "replace":
        cache.insert("w", value(X))
    elif end == "remove":
        cache.remove("w")
    elif end == "clear":
        cache.clear()
    else:
        del cache
    gc.collect()
    assert alive() is None


def test_a_cache_takes_only_values():
    """TX-42"""
    with pytest.raises(TypeError):
        OrtValueCache().insert("w", W)


def test_closed_agents_end_their_sessions(tmp_path):
    """TX-52: the last owner of the session tells the providers why it ends."""
    for keeps_session, reason in ((False, "AGENT_CLOSED"), (True, "RELEASED")):
        prefix = tmp_path / reason
        session = open_session(layer(), enable_profiling=True, profile_file_prefix=str(prefix))
        agent = TrainingAgent(session, ["x", "w"], [CPU], ["dw", "dx"], [CPU, CPU])
        if not keeps_session:
            del session
        del agent
        session = None
        gc.collect()
        (trace,) = tmp_path.glob(f"{reason}*.json")
        ends = [e for e in json.loads(trace.read_text()) if e["name"] == "ep_session_end"]
        assert [event["args"]["reason"] for event in ends] == [reason]


def test_halves_run_beside_python():
    """TX-55: with a state for each thread, the results are those of one thread."""
    agent = agent_of(layer())
    results = [None] * 4

    def train(i):
        for _ in range(50):
            state = PartialGraphExecutionState()
            forward(agent, state, X * (i + 1))
            results[i] = backward(agent, state)[0]

    threads = [threading.Thread(target=train, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, result in enumerate(results):
        check(result, expected(X * (i + 1))[1])


@pytest.mark.parametrize(
    "options",
    [
        {"enable_mem_pattern": False},
        {"config": {"tenon.mem_pattern_cache_size": "0"}},
        {"config": {"tenon.mem_pattern_cache_size": "1"}},
    ],
)
def test_memory_plans_can_be_limited(options):
    """TX-31, TX-36: results do not depend on it."""
    agent = agent_of(layer(), **options)
    for rows in (1, 2, 3, 2, 1, 3):
        state = PartialGraphExecutionState()
        forward(agent, state, X[:rows])
        check(backward(agent, state, DY[:rows])[0], expected(X[:rows], dy=DY[:rows])[1])


def test_bad_number_of_memory_plans():
    """TX-36"""
    with pytest.raises(Exception, match=r"tenon\.mem_pattern_cache_size"):
        open_session(layer(), config={"tenon.mem_pattern_cache_size": "many"})


def test_events_of_both_halves(tmp_path):
    """TX-24, TX-27, TX-63, TX-64"""
    session, agent = traced(tmp_path)
    state = PartialGraphExecutionState()
    forward(agent, state)
    backward(agent, state)
    events = events_of(session)
    assert sum(event["name"] == "SequentialExecutor::Execute" for event in events) == 2
    counters = [
        int(event["args"]["program_counter"])
        for event in events
        if event["name"].endswith("_kernel_time")
    ]
    assert counters == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert not any(event["name"].startswith("yield") for event in events)


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"])
def test_optimization_moves_nothing_to_the_other_half(tmp_path, level):
    """What the forward keeps for the backward, and what the backward computes again"""
    model = model_of(
        [
            node("MatMul", ["x", "w"], ["z"]),
            node("Relu", ["z"], ["kept"]),
            node("Neg", ["w"], ["v"]),
            node("MatMul", ["x", "v"], ["sum"]),
            node("Erf", ["x"], ["g"]),
            node("MatMul", ["g", "w"], ["y"]),
            yield_op(["y"], ["dy"]),
            node("Erf", ["x"], ["g_again"]),
            node("Transpose", ["g_again"], ["gt"], perm=[1, 0]),
            node("MatMul", ["gt", "dy"], ["dw"]),
            node("Add", ["sum", "dy"], ["sums"]),
            node("Mul", ["kept", "sums"], ["dx"]),
        ],
        [tensor("x", ["n", 4]), tensor("w", [4, 5])],
        [tensor("dw", [4, 5]), tensor("dx", ["n", 5])],
    )
    session = open_session(
        model,
        graph_optimization_level=getattr(tenon.GraphOptimizationLevel, level),
        enable_profiling=True,
        profile_file_prefix=str(tmp_path / "run"),
    )
    agent = TrainingAgent(session, ["x", "w"], [CPU], ["dw", "dx"], [CPU, CPU])
    state = PartialGraphExecutionState()
    forward(agent, state)
    dw, dx = backward(agent, state)
    halves = []
    for event in events_of(session):
        if event["name"] == "SequentialExecutor::Execute":
            halves.append([])
        elif event["name"].endswith("_kernel_time"):
            halves[-1].append(event["args"]["op_name"])
    products = [[op for op in half if op.endswith(("MatMul", "Erf"))] for half in halves]
    assert [len(each) for each in products] == [4, 2], halves
    erf = np.vectorize(math.erf)(X)
    check(dw, erf.T @ DY)
    check(dx, np.maximum(X @ W, 0) * (DY - X @ W))


def profile_of_pairs(folder, pairs, rank):
    """The groups of a memory profile: their events by name."""
    session = open_session(
        layer(),
        config={"tenon.memory_profile": str(folder)},
        graph_optimization_level=tenon.GraphOptimizationLevel.ORT_DISABLE_ALL,
    )
    agent = TrainingAgent(session, ["x", "w"], [CPU], ["dw", "dx"], [CPU, CPU], rank)
    for _ in range(pairs):
        state = PartialGraphExecutionState()
        forward(agent, state)
        backward(agent, state)
    del agent, session
    gc.collect()
    (path,) = folder.glob(f"memory_profile_{rank}_*.json")
    events = json.loads(path.read_text())
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    orders = {e["pid"] for e in events if e["name"] == "process_sort_index"}
    assert len(names) == len(set(names.values())) == len(orders)
    assert orders == set(names)
    return {
        name: [e for e in events if e["pid"] == pid and e["ph"] == "X"]
        for pid, name in names.items()
    }


def test_memory_profile_of_pairs(tmp_path):
    """TX-51, TX-58, TX-59, TX-60: one group for each pair, with the tensors of both halves."""
    groups = profile_of_pairs(tmp_path, 3, rank=2)
    for iteration in range(3):
        assert f"dynamic activations_{iteration}" in groups
    first = groups["dynamic activations_0"] + groups["static activations_0"]
    sizes = {e["name"]: e["args"]["size"] for e in first if e["name"] != "Summary"}
    assert sizes["z"] == 3 * 5 * 4
    assert "y" not in sizes  # it is in the memory of z
    assert sizes["xt"] == 3 * 4 * 4
    assert sizes["dw"] == 4 * 5 * 4
    # What does not leave the graph is planned, from the first pair on.
    for iteration in range(3):
        planned = {e["name"] for e in groups[f"static activations_{iteration}"]} - {"Summary"}
        dynamic = {e["name"] for e in groups[f"dynamic activations_{iteration}"]} - {"Summary"}
        assert planned
        assert not planned & dynamic
        assert {"dw", "dx"} <= dynamic


def test_events_of_a_memory_profile(tmp_path):
    """TX-58, TX-60: lifetimes in steps, blocks that do not overlap, and sums."""
    groups = profile_of_pairs(tmp_path, 2, rank=0)
    for name, events in groups.items():
        by_step = {}
        for event in events:
            by_step.setdefault(event["tid"], []).append(event)
        for at_step in by_step.values():
            *tensors, summary = at_step
            for event in tensors:
                assert event["cname"]
                offset, size = event["ts"], event["dur"]
                assert event["args"] == {"name": event["name"], "offset": offset, "size": size}
            assert summary["name"] == "Summary"
            sums = summary["args"]
            used = sum(event["dur"] for event in tensors)
            assert sums["used_bytes"] == sums["bytes for pattern"] == used
            assert sums["total_bytes"] == used + sums["free_bytes"]
            assert sums["used_percent"] + sums["free_percent"] == pytest.approx(100)
            if name.startswith("static"):
                blocks = sorted((event["ts"], event["dur"]) for event in tensors)
                for (begin, size), (after, _) in itertools.pairwise(blocks):
                    assert begin + size <= after
    steps = {}
    for event in groups["dynamic activations_0"]:
        steps.setdefault(event["name"], []).append(event["tid"])
    # z is made by the third node or the second, and its last reader comes later.
    assert min(steps["z"]) < max(steps["z"])


def test_no_memory_profile_unless_asked(tmp_path, monkeypatch):
    """TX-58"""
    monkeypatch.chdir(tmp_path)
    agent = agent_of(layer())
    state = PartialGraphExecutionState()
    forward(agent, state)
    backward(agent, state)
    del agent, state
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_an_autograd_function_around_the_halves():
    """TX-56: the flow of a framework's autograd function."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    agent = agent_of(layer())

    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.state = PartialGraphExecutionState()
            feeds, fetches = OrtValueVector(), OrtValueVector()
            for each in (x, w):
                feeds.push_back(each.detach().contiguous().__dlpack__(), False)
            agent.run_forward(feeds, fetches, ctx.state)
            y = torch.utils.dlpack.from_dlpack(fetches.dlpack_at(0))
            ctx.like = y.new_empty(y.shape)
            return y

        @staticmethod
        def backward(ctx, dy):
            dy = torch.zeros_like(ctx.like) if dy is None else dy
            feeds, fetches = OrtValueVector(), OrtValueVector()
            feeds.push_back(dy.contiguous().__dlpack__(), False)
            agent.run_backward(feeds, fetches, ctx.state)
            del ctx.state
            dw, dx = (torch.utils.dlpack.from_dlpack(fetches.dlpack_at(i)) for i in range(2))
            return dx, dw

    x, w = (torch.tensor(each, requires_grad=True) for each in (X, W))
    twins = [each.detach().clone().requires_grad_() for each in (x, w)]
    for step in range(3):
        # A gradient that is not contiguous.
        upper = torch.tensor(DY.T.copy()).T * (step + 1)
        Layer.apply(x, w).backward(upper)
        torch.relu(twins[0] @ twins[1]).backward(upper)
    for a, b in zip((x, w), twins, strict=True):
        torch.testing.assert_close(a.grad, b.grad)

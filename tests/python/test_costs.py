"""The costs of the package: instructions of small runs compared with onnxruntime's, memory of many
sessions.
"""

import pathlib
import subprocess
import sys

import graphs
import instructions
import numpy as np
import onnx
import pytest
import tenon


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Instructions of calls on a model of one Identity: see counted_calls.py."""
    if lacking := instructions.lacking():
        pytest.skip(lacking)
    return instructions.measured("counted_calls.py", tmp_path_factory.mktemp("costs"))


def test_a_run_costs_no_more_than_onnxruntimes(counts: dict[str, float]) -> None:
    assert counts["run"] <= counts["their_run"]


def test_a_run_costs_little(counts: dict[str, float]) -> None:
    """Of the library alone, as values are bound: 9200 when this was written."""
    assert 1000 < counts["bound_run"] <= 12_000


def test_python_adds_little_to_a_run(counts: dict[str, float]) -> None:
    """11,200 when this was written."""
    assert counts["run"] - counts["bound_run"] <= 14_000


def test_a_session_of_a_tiny_model_is_ready_at_once(counts: dict[str, float]) -> None:
    """179,000 when this was written."""
    assert counts["session"] <= 200_000


# The measures of the scripts below, in MiB.
MEASURES = """
import pathlib

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)

def anonymous():
    lines = pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Anonymous:")).split()[1]) / 1024
"""


def printed(script: str, *arguments: object) -> list[float]:
    """The numbers that a script prints in a process of its own: memory that other tests freed
    would hide what it takes, and fragments that they left would add to it."""
    command = [sys.executable, "-c", MEASURES + script, *map(str, arguments)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(number) for number in output.split()]


# Prints how much memory 500 sessions on the file argv[1] leave behind, in MiB.
REST_OF_SESSIONS = """
import gc, sys
import numpy as np, tenon

def make_and_run(count):
    for _ in range(count):
        tenon.InferenceSession(sys.argv[1]).run(None, {"x": np.ones((3, 64), np.float32)})
    gc.collect()

make_and_run(50)
before = resident()
make_and_run(500)
print(resident() - before)
"""


def test_sessions_give_their_memory_back(tmp_path: pathlib.Path) -> None:
    """All 500 together: each has 64 KiB of weights, and packs them."""
    path = tmp_path / "model.onnx"
    path.write_bytes(graphs.weighted_chain(64, 4))
    assert max(printed(REST_OF_SESSIONS, path)) <= 2


# Prints how much memory runs at many lengths add to that of runs at the greatest one, in MiB. The
# model masks [n, n] scores; the mask follows from n.
COSTS_OF_SHAPES = """
import onnx
import numpy as np, tenon

model = onnx.parser.parse_model('''
    <ir_version: 9, opset_import: ["": 19]>
    masked (float[n] x) => (float[n] y)
      <int64 zero = {0}, int64 one = {1}, int64[1] minus = {-1},
       float low = {-1e9}, float none = {0}>
    {
      n = Shape(x)
      size = Squeeze(n)
      columns = Range(zero, size, one)
      rows = Unsqueeze(columns, minus)
      later = Greater(columns, rows)
      mask = Where(later, low, none)
      column = Unsqueeze(x, minus)
      scores = Add(column, mask)
      weights = Softmax(scores)
      y = MatMul(weights, x)
    }''')
session = tenon.InferenceSession(model.SerializeToString())
lengths = range(440, 561)
for _ in range(5):
    session.run(None, {"x": np.ones(lengths[-1], np.float32)})
before = resident()
for length in lengths:
    (y,) = session.run(None, {"x": np.ones(length, np.float32)})
print(resident() - before)
np.testing.assert_allclose(y, 1, rtol=1e-5)
"""


def test_lengths_seen_once_keep_little_memory() -> None:
    """Plans of many shapes keep 2 MiB of what follows from the shapes alone, here a mask of 1 MiB
    each. The arena keeps blocks of some sizes, too. It was 180 MiB before there was a limit, 36
    when first runs with new shapes allocated value by value, 10 when this was written."""
    assert max(printed(COSTS_OF_SHAPES)) <= 30


# Prints how much memory the process has, in MiB, after runs at argv[1] random lengths up to 512 and
# one at 512. The model is a transformer block whose positions follow from the length.
COSTS_OF_LENGTHS = """
import onnx, sys
import numpy as np, tenon

model = onnx.parser.parse_model('''
    <ir_version: 9, opset_import: ["": 19]>
    block (float[n, 256] x, float[512, 256] positions, float[256, 256] wq, float[256, 256] wk,
           float[256, 256] wv, float[256, 4096] up, float[4096, 256] down) => (float[n, 256] y)
      <int64[1] zero = {0}, int64[1] first = {0}, int64[1] one = {1}>
    {
      n = Shape <start = 0, end = 1> (x)
      own = Slice(positions, zero, n, first)
      input = Add(x, own)
      q = MatMul(input, wq)
      k = MatMul(input, wk)
      v = MatMul(input, wv)
      kt = Transpose(k)
      scores = MatMul(q, kt)
      weights = Softmax(scores)
      mixed = MatMul(weights, v)
      wide = MatMul(mixed, up)
      active = Relu(wide)
      narrow = MatMul(active, down)
      y = Add(narrow, input)
    }''')
random = np.random.default_rng(0)
for name, *shape in [("positions", 512, 256), ("wq", 256, 256), ("wk", 256, 256), ("wv", 256, 256),
                     ("up", 256, 4096), ("down", 4096, 256)]:
    values = random.standard_normal(shape, np.float32) / 16
    model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
session = tenon.InferenceSession(model.SerializeToString())
for length in [*random.integers(1, 513, int(sys.argv[1])), 512, 512]:
    (y,) = session.run(None, {"x": np.ones((length, 256), np.float32)})
print(resident())
"""


def test_runs_at_random_lengths_take_the_memory_of_the_longest() -> None:
    """MEM-1, with fewer runs."""
    (many,), (none,) = printed(COSTS_OF_LENGTHS, 1000), printed(COSTS_OF_LENGTHS, 0)
    assert many <= 1.1 * none


# Prints how much memory of its own, in MiB, a session on a model in a file takes until its first
# run is over: weights of 4 bits whose scales, 16 MiB, begin at an odd address of the file.
COSTS_OF_SCALES = """
import sys
import numpy as np, onnx, tenon

n, k, path = 8192, 8192, sys.argv[1]
def constant(dtype, name, *shape):
    values = np.ones(shape, dtype)
    return onnx.helper.make_tensor(
        name, onnx.helper.np_dtype_to_tensor_dtype(values.dtype), shape, values.tobytes(), raw=True)

node = onnx.helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft",
                             K=k, N=n, bits=4, block_size=16)
value = onnx.helper.make_tensor_value_info
graph = onnx.helper.make_graph(
    [node], "g", [value("x", 1, [1, k])], [value("y", 1, [1, n])],
    [constant(np.uint8, "w", n, k // 16, 8), constant(np.float32, "s", n, k // 16)])
opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
for producer in ("a", "ab", "abc", "abcd"):
    model.producer_name = producer
    data = model.SerializeToString()
    if data.find(np.ones(k // 16, np.float32).tobytes()) % 4 == 1:
        break
else:
    raise AssertionError("no file has its scales at an odd address")
pathlib.Path(path).write_bytes(data)
del data, model, graph

before = anonymous()
session = tenon.InferenceSession(path)
(y,) = session.run(None, {"x": np.ones((1, k), np.float32)})
assert (y == -7.5 * k).all()
print(anonymous() - before)
"""


def test_scales_of_blocks_are_read_where_they_lie(tmp_path: pathlib.Path) -> None:
    assert max(printed(COSTS_OF_SCALES, tmp_path / "model.onnx")) < 4


# Prints how much memory a session on the ensemble in the file argv[1] adds to the process, in MiB.
COSTS_OF_TREES = """
import sys
import numpy as np, tenon

before = resident()
session = tenon.InferenceSession(sys.argv[1])
session.run(None, {"x": np.ones((1, 4), np.float32)})
print(resident() - before)
"""


def test_an_ensemble_keeps_one_form_of_its_trees(tmp_path: pathlib.Path) -> None:
    """At most twice the file. The lists of the attributes alone are four times its size."""
    trees, depth = 300, 10
    count = 2 ** (depth + 1) - 1  # nodes of a full tree
    node = np.tile(np.arange(count), trees)
    tree, is_leaf = np.repeat(np.arange(trees), count), node >= count // 2
    random = np.random.default_rng(0)
    leaves = int(is_leaf.sum())
    ensemble = onnx.helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=np.where(is_leaf, 0, random.integers(0, 4, node.size)).tolist(),
        nodes_modes=np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values=random.standard_normal(node.size).tolist(),
        nodes_truenodeids=np.where(is_leaf, 0, 2 * node + 1).tolist(),
        nodes_falsenodeids=np.where(is_leaf, 0, 2 * node + 2).tolist(),
        target_treeids=tree[is_leaf].tolist(),
        target_nodeids=node[is_leaf].tolist(),
        target_ids=[0] * leaves,
        target_weights=random.standard_normal(leaves).tolist(),
    )
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [ensemble],
        "trees",
        [onnx.helper.make_tensor_value_info("x", kind, [None, 4])],
        [onnx.helper.make_tensor_value_info("y", kind, [None, 1])],
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    path = tmp_path / "trees.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    assert max(printed(COSTS_OF_TREES, path)) <= 2 * path.stat().st_size / (1 << 20)


# Prints how much memory each of several sessions on the file argv[1] adds to the process, in MiB.
COSTS_OF_SESSIONS = """
import sys
import numpy as np, tenon

sessions = []
for _ in range(4):
    before = anonymous()
    sessions.append(tenon.InferenceSession(sys.argv[1]))
    for rows in 8 * [1, 2, 3]:  # until all is packed
        (y,) = sessions[-1].run(None, {"x": np.ones((rows, 1024), sys.argv[2])})
    print(anonymous() - before)
    np.testing.assert_allclose(y.astype(np.float32), 24, rtol=1e-5)
"""


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_further_sessions_on_a_file_share_its_weights(dtype: type, tmp_path: pathlib.Path) -> None:
    """A further one costs a huge page of 2 MiB at most, though the weights are 16 MiB as they
    are packed, or 8; and those of a narrow type are kept once, whatever the shapes of the runs."""
    path = tmp_path / "model.onnx"
    path.write_bytes(graphs.weighted_chain(1024, 4, dtype))
    costs = printed(COSTS_OF_SESSIONS, path, np.dtype(dtype).name)
    whole = 4 * np.dtype(dtype).itemsize
    assert 0.9 * whole < costs[0] < 1.25 * whole
    assert max(costs[1:]) <= 2.5, costs


def test_another_file_of_the_same_name_has_its_own_weights(tmp_path: pathlib.Path) -> None:
    path, x = tmp_path / "model.onnx", np.ones((1, 64), np.float32)
    sessions = []
    for length in (1, 2):
        path.write_bytes(graphs.weighted_chain(64, length))
        sessions.append(tenon.InferenceSession(path))
        path.rename(tmp_path / f"{length}.onnx")
    for session, expected in zip(sessions, (1, 2), strict=True):
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-6)

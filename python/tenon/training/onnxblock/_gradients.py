"""Makes the training model and the evaluation model of a model with a loss."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, MutableSequence

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from ... import GraphOptimizationLevel, InferenceSession, SessionOptions
from ._graph import near, nodes_above, reads_of, subgraphs_of

# The trained parameters and the frozen ones.
Parameters = tuple[list[TensorProto], list[TensorProto]]

GRADIENT_DOMAIN = "ai.onnx.preview.training"
LAZY_RESET = "lazy_reset_grad"
FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}


# --- Parameters ---


def move_parameters_to_inputs(
    model: ModelProto, trained: Iterable[str], frozen: Iterable[str]
) -> Parameters:
    """Makes the initializers of these names the last inputs of the graph, and returns them.

    Names of trained inputs stay what they are. A frozen name that is not there has no effect.
    Raises RuntimeError for a trained one that is not there or that no gradient can be computed of.
    """
    graph, names = model.graph, (set(trained), set(frozen))
    parameters: Parameters = ([], [])
    constants = []
    for tensor in graph.initializer:
        for chosen, tensors in zip(names, parameters, strict=True):
            if tensor.name in chosen:
                tensors.append(tensor)
                break
        else:
            constants.append(tensor)
    of_parameters = {tensor.name for tensors in parameters for tensor in tensors}
    inputs = [value for value in graph.input if value.name not in of_parameters]
    inputs += [
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in graph.initializer
        if tensor.name in of_parameters
    ]
    types = {value.name: value.type.tensor_type.elem_type for value in inputs}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    for name in trained:
        _check_trained(name, types)
    copies = [[TensorProto.FromString(t.SerializeToString()) for t in p] for p in parameters]
    del graph.input[:]
    graph.input.extend(inputs)
    kept = GraphProto(initializer=constants)
    del graph.initializer[:]
    graph.initializer.extend(kept.initializer)
    return copies[0], copies[1]


def _check_trained(name: str, types: dict[str, int]) -> None:
    """Checks that the model has the parameter, in a type with gradients."""
    if name not in types:
        raise RuntimeError(
            f"trained parameter {name!r}: the model has no initializer and no input of this "
            f"name{near(name, types)}"
        )
    if types[name] not in FLOATS:
        type_ = TensorProto.DataType.Name(types[name])
        raise RuntimeError(
            f"trained parameter {name!r}: expected a floating-point type, got {type_}"
        )


# --- The evaluation model ---


def evaluation_model(model: ModelProto) -> ModelProto:
    """A copy of the model in which Dropout and BatchNormalization do as they do in inference."""
    copy = ModelProto()
    copy.CopyFrom(model)
    _leave_training_mode(copy.graph.node)
    for function in copy.functions:
        _leave_training_mode(function.node)
    return copy


def _leave_training_mode(nodes: MutableSequence[NodeProto]) -> None:
    statistics = []  # nodes for what reads the statistics that BatchNormalization made
    for index, node in enumerate(nodes):
        for graph in subgraphs_of(node):
            _leave_training_mode(graph.node)
        if node.domain not in ("", "ai.onnx"):
            continue
        if node.op_type == "Dropout" and len(node.input) > 2:
            node.input[2] = ""
        elif node.op_type == "BatchNormalization":
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0
            # In inference the running mean and variance, inputs 3 and 4, do not change.
            for source, output in zip(node.input[3:], node.output[1:3], strict=False):
                if output:
                    statistics.append((index, helper.make_node("Identity", [source], [output])))
            del node.output[1:]
    for index, identity in reversed(statistics):
        nodes.insert(index, identity)


# --- The training model ---


def training_model(
    model: ModelProto, loss: str, trained: Iterable[str], library: str | None
) -> ModelProto:
    """The model with the gradients of the trained inputs, each added to a buffer.

    library  the path of a library with custom operators of the model, or None
    Raises RuntimeError for trained inputs that the loss does not depend on, and the errors of
    sessions for models that cannot run and for operators without a gradient.
    """
    result = ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    chosen = set(trained)
    inputs = [value for value in graph.input if value.name in chosen]
    _check_reach(graph, loss, [value.name for value in inputs])
    for value in inputs:
        _accumulate(graph, value)
    graph.input.append(helper.make_tensor_value_info(LAZY_RESET, TensorProto.BOOL, [1]))
    if not inputs:
        return result
    _import(result, "com.microsoft")
    return _differentiate(result, loss, [value.name for value in inputs], library)


def _gradient_of(name: str) -> str:
    return f"{name}_grad"


def _check_reach(graph: GraphProto, loss: str, names: list[str]) -> None:
    """Checks that the loss depends on each of the inputs."""
    reached = {name for node in nodes_above(graph, [loss]) for name in reads_of(node)}
    missing = [name for name in names if name not in reached | {loss}]
    if missing:
        raise RuntimeError(
            f"the loss {loss!r} does not depend on the trained parameters "
            f"{', '.join(map(repr, missing))}: expected all of them to have a gradient"
        )


def _accumulate(graph: GraphProto, value: ValueInfoProto) -> None:
    """Adds the buffer for the gradient of an input, and the node that adds to it."""
    gradient = _gradient_of(value.name)
    buffer, done = f"{gradient}.accumulation.buffer", f"{gradient}.accumulation.out"
    node = helper.make_node(
        "InPlaceAccumulatorV2",
        [buffer, gradient, LAZY_RESET],
        [done],
        name=f"GradientAccumulator{len(graph.output)}",
        domain="com.microsoft",
    )
    graph.node.append(node)
    of_buffer = graph.input.add()
    of_buffer.CopyFrom(value)
    of_buffer.name = buffer
    graph.output.append(helper.make_tensor_value_info(done, TensorProto.BOOL, [1]))


def _differentiate(
    model: ModelProto, loss: str, names: list[str], library: str | None
) -> ModelProto:
    """The model with the nodes that compute the gradients of these inputs, which it reads."""
    node = helper.make_node(
        "Gradient",
        names,
        [_gradient_of(name) for name in names],
        name="Gradient",
        domain=GRADIENT_DOMAIN,
        xs=names,
        y=loss,
    )
    before = [other for other in model.graph.node if other.op_type != "InPlaceAccumulatorV2"]
    nodes = GraphProto(node=[*before, node, *model.graph.node[len(before) :]])
    del model.graph.node[:]
    model.graph.node.extend(nodes.node)
    _import(model, GRADIENT_DOMAIN)
    with tempfile.TemporaryDirectory() as folder:
        expanded = onnx.load(save_as_opened(model, os.path.join(folder, "model.onnx"), library))
    _remove_unused(expanded, model.opset_import)
    return expanded


def save_as_opened(
    model: ModelProto | str | os.PathLike[str], path: str, library: str | None
) -> str:
    """Opens a session, which replaces Gradient nodes, and saves its model, unoptimized, to `path`,
    in the format of the path's extension. Returns the path."""
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = path
    if library is not None:
        options.register_custom_ops_library(library)
    content = model.SerializeToString() if isinstance(model, ModelProto) else os.fspath(model)
    InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return path


def _remove_unused(model: ModelProto, opsets: Iterable[onnx.OperatorSetIdProto]) -> None:
    """Removes the nodes and constants that no output depends on, and restores the opsets."""
    graph = model.graph
    nodes = nodes_above(graph, [output.name for output in graph.output])
    read = {name for node in nodes for name in reads_of(node)}
    read.update(output.name for output in graph.output)
    constants = [tensor for tensor in graph.initializer if tensor.name in read]
    made = {name for node in nodes for name in node.output}
    types = [value for value in graph.value_info if value.name in made]
    kept = GraphProto(node=nodes, initializer=constants, value_info=types)
    for field in ("node", "initializer", "value_info"):
        graph.ClearField(field)
    graph.MergeFrom(kept)
    present = {opset.domain for opset in model.opset_import}
    domains = set(_domains_of(graph))
    imports = [opset for opset in model.opset_import if opset.domain != GRADIENT_DOMAIN]
    imports += [opset for opset in opsets if opset.domain in domains - present]
    imports = ModelProto(opset_import=imports).opset_import
    del model.opset_import[:]
    model.opset_import.extend(imports)


def _domains_of(graph: GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield node.domain
        for inner in subgraphs_of(node):
            yield from _domains_of(inner)


def _import(model: ModelProto, domain: str) -> None:
    if all(opset.domain != domain for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(domain, 1))

"""Which operators and element types Tenon and onnxruntime run: docs/operators.md.

    python scripts/conformance/operators.py

What stands there was tried: the generated cases of tests/conformance, in the newest version of each
operator. Of operators of com.microsoft without such cases, a session over one node says whether
there is a kernel.
"""

from __future__ import annotations

import functools
import importlib.metadata
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterable

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "operators.md"
sys.path.insert(0, str(ROOT / "tests" / "conformance"))

import contrib_schemas  # noqa: E402
import generated  # noqa: E402
import onnx  # noqa: E402
from onnx import defs, helper  # noqa: E402
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state  # noqa: E402


def run_tenon(case: generated.Case) -> None:
    import tenon  # noqa: PLC0415

    session = tenon.InferenceSession(case.model.SerializeToString())
    session.run(None, generated.feeds_of(case, tenon))


def run_onnxruntime(case: generated.Case) -> None:
    contrib_schemas.run_onnxruntime(case)


# How an engine runs a case, and how many of the cases of a type it must run.
ENGINES = {"tenon": (run_tenon, all), "onnxruntime": (run_onnxruntime, any)}


CasesOf = Callable[[str], Iterable[generated.Case]]


def runs(engine: str, cases: Iterable[generated.Case]) -> bool:
    run, count = ENGINES[engine]
    return count(succeeds(run, case) for case in cases)


def succeeds(run: Callable[[generated.Case], object], case: generated.Case) -> bool:
    try:
        run(case)
    except Exception:
        return False
    return True


def share(engine: str, cases_of: CasesOf, names: list[str]) -> str:
    have = [name for name in names if runs(engine, cases_of(name))]
    if len(have) == len(names):
        return "all"
    if not have:
        return "none"
    lacking = [name for name in names if name not in have]
    if len(lacking) < len(have):
        return f"all but {', '.join(lacking)}"
    return ", ".join(have)


def rows(domain: str) -> list[str]:
    versions: dict[str, list[defs.OpSchema]] = {}
    for schema in generated.schemas((domain,)):
        versions.setdefault(schema.name, []).append(schema)
    lines = []
    for name, schemas in versions.items():
        newest = schemas[-1]
        since = ", ".join(str(schema.since_version) for schema in schemas)
        names = generated.type_names(newest)
        if generated.has_recipe(newest) and names:
            cases_of = functools.partial(generated.cases_of, newest)
            cells = [str(len(names)), *(share(engine, cases_of, names) for engine in ENGINES)]
        else:
            cells = [str(len(names)), *("" for _ in ENGINES)]
        lines.append("| " + " | ".join([name, since, *cells]) + " |")
    return lines


# Of an attribute that a schema requires, by its type's name.
SOME_ATTRIBUTE = {"INT": 1, "FLOAT": 1.0, "STRING": "x", "INTS": [1], "FLOATS": [1.0]}


def contrib_model(schema: ort_state.schemadef.OpSchema) -> bytes:
    """One node, with values of rank 4 of the first type that the schema allows each."""
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    number = {name.lower(): value for name, value in onnx.TensorProto.DataType.items()}

    def value(formal: object, name: str) -> onnx.ValueInfoProto:
        type_name = allowed.get(formal.typeStr, [formal.typeStr])[0]
        element = type_name.removeprefix("sparse_").removeprefix("tensor(").removesuffix(")")
        if type_name.startswith("sparse_"):
            return helper.make_sparse_tensor_value_info(name, number.get(element, 1), ["a", "b"])
        return helper.make_tensor_value_info(name, number.get(element, 1), ["a", "b", "c", "d"])

    needed = [not str(x.option).endswith("Optional") for x in schema.inputs]
    inputs = [value(x, f"x{i}") for i, x in enumerate(schema.inputs) if needed[i]]
    outputs = [value(y, f"y{i}") for i, y in enumerate(schema.outputs)][: max(1, schema.min_output)]
    attributes = {
        name: SOME_ATTRIBUTE[str(attribute.type).rpartition(".")[2]]
        for name, attribute in schema.attributes.items()
        if attribute.required and str(attribute.type).rpartition(".")[2] in SOME_ATTRIBUTE
    }
    names = [f"x{i}" if is_needed else "" for i, is_needed in enumerate(needed)]
    results = [y.name for y in outputs]
    node = helper.make_node(schema.name, names, results, domain=schema.domain, **attributes)
    graph = helper.make_graph([node], "graph", inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(schema.domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def has_kernel(model: bytes) -> bool:
    import tenon  # noqa: PLC0415

    try:
        tenon.InferenceSession(model)
    except Exception as error:
        # What has no kernel may have been widened to types that its schema does not allow.
        return not any(x in str(error) for x in ("no provider has a kernel", ": expected one of"))
    return True


def contrib_rows() -> list[str]:
    kernels = {
        kernel.op_name
        for kernel in ort_state.get_all_opkernel_def()
        if kernel.domain == "com.microsoft" and kernel.provider == "CPUExecutionProvider"
    }
    schemas = {
        x.name: x for x in ort_state.get_all_operator_schema() if x.domain == "com.microsoft"
    }
    lines = []
    for name, schema in sorted(schemas.items()):
        if name in contrib_schemas.SCHEMAS:
            names = contrib_schemas.SCHEMAS[name].type_names()
            cases_of = functools.partial(contrib_schemas.cases_of, name)
            cells = [str(len(names)), share("tenon", cases_of, names)]
            cells.append(share("onnxruntime", cases_of, names) if name in kernels else "")
        else:
            has = [has_kernel(contrib_model(schema)), name in kernels]
            cells = ["", *("yes" if cell else "" for cell in has)]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return lines


# What the schemas of com.microsoft allow and the CPU provider refuses, with an error that says so;
# onnxruntime's refuses it too.
REFUSED = """
What the schemas allow and both engines refuse on the CPU:

- Attention with `do_rotary` = 1: RotaryEmbedding before MultiHeadAttention says it. QAttention with
  it runs in onnxruntime, but as if it were 0.
- CausalConvWithState with `ndim` 2 or 3, of which the schema does not say what pads the other axes.
- CDist with `metric` mahalanobis, seuclidean or wminkowski, which depend on more than two rows.
- Rfft and Irfft with `signal_ndim` above 1.
"""


def main() -> None:
    warnings.filterwarnings("ignore")
    onnx, ort = importlib.metadata.version("onnx"), importlib.metadata.version("onnxruntime")
    header = f"""# Operators

The operators of `ai.onnx`, opset 1 to {defs.onnx_opset_version()}, with the element types of their
first operand that Tenon and onnxruntime {ort} run in the newest version. Written by
`scripts/conformance/operators.py`, which tries the cases that `tests/conformance` generates from
the schemas of onnx {onnx}: calls with every type of every input, with ranks 0 to 6, without
elements, with optional inputs and attributes left out. Tenon has a type if it runs all these cases,
onnxruntime if it runs one. `Gradient` of `ai.onnx.preview.training` has tests of its own.

"""
    columns = (
        "| operator | versions | types | tenon | onnxruntime |\n| --- | --- | ---: | --- | --- |\n"
    )
    contrib = f"""

## com.microsoft

The same of this domain, with the types of the schemas of onnxruntime {ort}: nothing stands where
an engine has no kernel, and *yes* where it has one, but tests of its own.

| operator | types | tenon | onnxruntime |
| --- | ---: | --- | --- |
"""
    tables = [
        (f"## {domain}\n\n" if domain else "") + columns + "\n".join(rows(domain))
        for domain in generated.DOMAINS
    ]
    table = header + "\n\n".join(tables)
    DOCUMENT.write_text(table + contrib + "\n".join(contrib_rows()) + "\n" + REFUSED)


if __name__ == "__main__":
    main()

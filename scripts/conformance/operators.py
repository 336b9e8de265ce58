"""Which operators and element types Tenon and onnxruntime run: docs/operators.md.

    python scripts/conformance/operators.py

Runs the generated cases of tests/conformance, in the newest version of each operator.
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
from onnx import defs  # noqa: E402
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


def contrib_rows() -> list[str]:
    kernels = {
        kernel.op_name
        for kernel in ort_state.get_all_opkernel_def()
        if kernel.domain == "com.microsoft" and kernel.provider == "CPUExecutionProvider"
    }
    lines = []
    for name in sorted((*contrib_schemas.SCHEMAS, *contrib_schemas.WITHOUT_RECIPE)):
        if name in contrib_schemas.SCHEMAS:
            names = contrib_schemas.SCHEMAS[name].type_names()
            cases_of = functools.partial(contrib_schemas.cases_of, name)
            cells = [str(len(names)), share("tenon", cases_of, names)]
            cells.append(share("onnxruntime", cases_of, names) if name in kernels else "")
        else:  # tests/conformance detects that Tenon has no kernel
            cells = ["", "", "yes" if name in kernels else ""]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return lines


# Calls that the schemas of com.microsoft allow, onnxruntime's CPU provider refuses, and Tenon runs.
DEFINED_HERE = """
Tenon runs these calls, which the schemas allow and onnxruntime refuses on the CPU. Where the
schemas do not define the result, Tenon does this:

- Attention and QAttention with `do_rotary` = 1 rotate queries and keys as GPT-NeoX does: the
  elements of a pair are half of `rotary_embedding_dim` apart, the base is 10000, and positions
  continue after the past and its padding. (onnxruntime runs QAttention as if it were 0.)
- CausalConvWithState with `ndim` 2 or 3: axes before the last keep their size, as in Conv with
  `auto_pad` = SAME_UPPER, and `dilation` applies to the last axis.
- CDist has all metrics of the schema, with the defaults of SciPy's `cdist`: mahalanobis and
  seuclidean take covariance and variance from the rows of both inputs, wminkowski has weights of 1.
- Rfft and Irfft transform the last `signal_ndim` axes, as NumPy's `rfftn` and `irfftn`.
"""


def main() -> None:
    warnings.filterwarnings("ignore")
    onnx, ort = importlib.metadata.version("onnx"), importlib.metadata.version("onnxruntime")
    header = f"""# Operators

The operators of `ai.onnx`, opset 1 to {defs.onnx_opset_version()}, with the element types of their
first operand that Tenon and onnxruntime {ort} run in the newest version.
`scripts/conformance/operators.py` writes this page. It runs the cases that `tests/conformance`
generates from the schemas of onnx {onnx}: calls with every type of every input, with ranks 0 to 6,
with empty tensors, and without optional inputs and attributes. A type counts for Tenon if all these
cases run, and for onnxruntime if one of them runs. Tenon takes tensors of up to 32 axes; inputs of
GridSample and DeformConv may have up to 6 spatial axes. `Gradient` of `ai.onnx.preview.training`
has separate tests.

"""
    columns = (
        "| operator | versions | types | tenon | onnxruntime |\n| --- | --- | ---: | --- | --- |\n"
    )
    contrib = f"""

## com.microsoft

This is the same table for this domain, with the types of the schemas of onnxruntime {ort}. A cell
is empty if the engine has no kernel.

| operator | types | tenon | onnxruntime |
| --- | ---: | --- | --- |
"""
    tables = [
        (f"## {domain}\n\n" if domain else "") + columns + "\n".join(rows(domain))
        for domain in generated.DOMAINS
    ]
    table = header + "\n\n".join(tables)
    DOCUMENT.write_text(table + contrib + "\n".join(contrib_rows()) + "\n" + DEFINED_HERE)


if __name__ == "__main__":
    main()

"""Which operators and element types Tenon and onnxruntime run: docs/operators.md.

    python scripts/conformance/operators.py

What stands there was tried: the generated cases of tests/conformance, in the newest version of each
operator.
"""

from __future__ import annotations

import importlib.metadata
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "operators.md"
sys.path.insert(0, str(ROOT / "tests" / "conformance"))

import agreement  # noqa: E402
import generated  # noqa: E402
from onnx import defs  # noqa: E402


def run_tenon(case: generated.Case) -> None:
    import tenon  # noqa: PLC0415

    tenon.InferenceSession(case.model.SerializeToString()).run(None, case.feeds)


ENGINES = {"tenon": run_tenon, "onnxruntime": agreement.run_onnxruntime}


def runs(engine: str, schema: defs.OpSchema, type_name: str) -> bool:
    try:
        for case in generated.cases_of(schema, type_name):
            ENGINES[engine](case)
    except Exception:
        return False
    return True


def share(engine: str, schema: defs.OpSchema, names: list[str]) -> str:
    have = [name for name in names if runs(engine, schema, name)]
    if len(have) == len(names):
        return "all"
    if not have:
        return "none"
    lacking = [name for name in names if name not in have]
    if len(lacking) < len(have):
        return f"all but {', '.join(lacking)}"
    return ", ".join(have)


def rows() -> list[str]:
    versions: dict[str, list[defs.OpSchema]] = {}
    for schema in generated.schemas():
        versions.setdefault(schema.name, []).append(schema)
    lines = []
    for name, schemas in versions.items():
        newest = schemas[-1]
        since = ", ".join(str(schema.since_version) for schema in schemas)
        names = generated.type_names(newest)
        if generated.has_recipe(newest) and names:
            cells = [str(len(names)), *(share(engine, newest, names) for engine in ENGINES)]
        else:
            cells = [str(len(names)), *("" for _ in ENGINES)]
        lines.append("| " + " | ".join([name, since, *cells]) + " |")
    return lines


def main() -> None:
    warnings.filterwarnings("ignore")
    onnx, ort = importlib.metadata.version("onnx"), importlib.metadata.version("onnxruntime")
    header = f"""# Operators

The operators of `ai.onnx`, opset 1 to {defs.onnx_opset_version()}, with the element types that
Tenon and onnxruntime {ort} run in the newest version. Written by
`scripts/conformance/operators.py`, which tries the cases that `tests/conformance` generates from
the schemas of onnx {onnx}; an empty cell means that there is no such case.

| operator | versions | types | tenon | onnxruntime |
| --- | --- | ---: | --- | --- |
"""
    DOCUMENT.write_text(header + "\n".join(rows()) + "\n")


if __name__ == "__main__":
    main()

"""Every operator of the schemas, in every version and element type: see generated.py."""

import warnings

import agreement
import generated
import pytest
import tenon

SCHEMAS: dict[str, list] = {}
for _schema in generated.schemas():
    if generated.has_recipe(_schema):
        SCHEMAS.setdefault(_schema.name, []).append(_schema)

# What Tenon still lacks. An entry goes with the gap.
GAPS = {
    "Attention": "double precision",
    "Col2Im": "strings",
    "DequantizeLinear": "6-bit floats",
    "GridSample": "complex numbers and integers",
}


def check(case: generated.Case) -> str:
    """What is wrong with Tenon's outputs, if anything."""
    session = tenon.InferenceSession(case.model.SerializeToString())
    actual = session.run(None, case.feeds)
    expected = agreement.references(case)
    differences = [agreement.difference(actual, outputs) for outputs in expected]
    agrees = not differences or "" in differences or agreement.is_known_wrong(case)
    return "" if agrees else differences[0]


@pytest.mark.parametrize("operator", SCHEMAS)
def test_operator(operator: str) -> None:
    failures, lacking, count = [], 0, 0
    for schema in SCHEMAS[operator]:
        for type_name in generated.type_names(schema):
            for case in generated.cases_of(schema, type_name):
                count += 1
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        problem = check(case)
                except Exception as error:
                    problem = str(error)
                    lacking += "no provider has a kernel" in problem
                if problem:
                    failures.append(f"{case.name}: {problem}"[:300])
    if count and lacking == count:
        pytest.skip("Tenon does not have it yet")
    if failures and operator in GAPS:
        pytest.xfail(GAPS[operator])
    assert not failures, f"{len(failures)} of {count} cases fail:\n" + "\n".join(failures)

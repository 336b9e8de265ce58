"""Every operator of the schemas, in every version and element type: see generated.py."""

import re
import warnings

import agreement
import generated
import pytest
import tenon

SCHEMAS: dict[str, list] = {}
for _schema in generated.schemas():
    if generated.has_recipe(_schema):
        SCHEMAS.setdefault(_schema.name, []).append(_schema)


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
    failures, count = [], 0
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
                if problem:
                    failures.append(f"{case.name}: {problem}"[:300])
    assert not failures, f"{len(failures)} of {count} cases fail:\n" + "\n".join(failures)


@pytest.mark.parametrize("names", agreement.REFERENCE_IS_WRONG)
def test_references_that_are_said_to_be_wrong_are(names: str) -> None:
    count = 0
    for schema in SCHEMAS[names.split("-", maxsplit=1)[0]]:
        for type_name in generated.type_names(schema):
            for case in generated.cases_of(schema, type_name):
                if re.fullmatch(names, case.name):
                    actual = tenon.InferenceSession(case.model.SerializeToString()).run(
                        None, case.feeds
                    )
                    expected = agreement.references(case)
                    agreed = [agreement.difference(actual, outputs) == "" for outputs in expected]
                    assert not any(agreed), case.name
                    count += 1
    assert count > 0

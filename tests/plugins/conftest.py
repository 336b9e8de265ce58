"""The runtimes and devices that plugins/opencl is tested with."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opencl_cases import LIBRARY, PROVIDER
from plugin_runtimes import RUNTIMES, registered, runtime

# The architectures of the benchmark.
sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))


@pytest.fixture(scope="module", params=RUNTIMES)
def module(request: pytest.FixtureRequest):
    return runtime(request.param)


@pytest.fixture(scope="module")
def devices(module) -> Iterator[list]:
    with registered(module, LIBRARY, PROVIDER) as found:
        if not found:
            pytest.skip("no OpenCL device: Debian has one in pocl-opencl-icd")
        yield found[:1]

"""Copies of session options, for pickle and copy."""

from __future__ import annotations

from typing import Any

from . import _tenon

# Properties are read one by one; those with their default value are left out.
PROPERTIES = (
    "enable_cpu_mem_arena",
    "enable_mem_pattern",
    "enable_mem_reuse",
    "enable_profiling",
    "execution_mode",
    "graph_optimization_level",
    "inter_op_num_threads",
    "intra_op_num_threads",
    "log_severity_level",
    "log_verbosity_level",
    "logid",
    "optimized_model_filepath",
    "profile_file_prefix",
    "use_deterministic_compute",
    "use_per_session_threads",
)
ENUMERATIONS = {
    "execution_mode": _tenon.ExecutionMode,
    "graph_optimization_level": _tenon.GraphOptimizationLevel,
}


def reduce_options(options: _tenon.SessionOptions) -> tuple[Any, ...]:
    """The state for pickle: the properties that are not default, and the calls that add."""
    defaults = _tenon.SessionOptions()
    changed = {}
    for name in PROPERTIES:
        value = getattr(options, name)
        if value != getattr(defaults, name):
            changed[name] = value.value if name in ENUMERATIONS else value
    return remake_options, (changed, list(options._calls()))


def remake_options(changed: dict[str, Any], calls: list[tuple[Any, ...]]) -> _tenon.SessionOptions:
    """Options from their pickled state."""
    options = _tenon.SessionOptions()
    for name, value in changed.items():
        setattr(options, name, ENUMERATIONS[name](value) if name in ENUMERATIONS else value)
    for method, *arguments in calls:
        getattr(options, method)(*arguments)
    return options

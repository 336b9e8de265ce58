"""Says what of a model Tenon computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._functorch.config

from ._backend import compile_with
from ._lowering import why_not
from ._partition import boxed, partition, regions_of
from ._region import Settings


@dataclass
class Explanation:
    """What of a model Tenon computes, forward and backward."""

    # Graphs that torch.compile traced. More than one: something in the model breaks the graph.
    graphs: int = 0
    # Parts of these graphs, and of those of their gradients, that are one session each.
    regions: int = 0
    # How often an operator occurs in regions.
    lowered: Counter[str] = field(default_factory=Counter)
    # The operators that stay in PyTorch: the reasons, and how often each occurs.
    left: dict[str, Counter[str]] = field(default_factory=dict)

    def partition(self, module: torch.fx.GraphModule, settings: Settings) -> torch.fx.GraphModule:
        """Partitions a graph, and adds what Tenon computes of it."""
        for node in module.graph.nodes:
            name = str(node.target)
            if isinstance(node.target, torch._ops.OpOverload) and (reason := why_not(node)):
                self.left.setdefault(name, Counter())[reason] += 1
        fused = partition(module, settings)
        for region in regions_of(fused):
            self.regions += 1
            self.lowered.update(region.operators())
        return fused

    def __str__(self) -> str:
        lines = [
            f"graphs: {self.graphs}, regions: {self.regions}",
            f"operators that Tenon computes: {self.lowered.total()}",
            f"operators that stay in PyTorch: {sum(c.total() for c in self.left.values())}",
        ]
        for name, reasons in sorted(self.left.items()):
            lines += [f"  {count} x {name}: {reason}" for reason, count in reasons.most_common()]
        return "\n".join(lines)


def explain(model: Callable[..., Any], *inputs: Any, **keywords: Any) -> Explanation:
    """Compiles the model and runs it once. Says what of it Tenon computes, and why not all of it.

    Forgets what torch.compile compiled before, as torch.compiler.reset() does.
    """
    explanation = Explanation()

    def compiler(module: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        return boxed(explanation.partition(module, Settings()))

    def forward_compiler(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        explanation.graphs += 1
        return compiler(module, inputs)

    torch.compiler.reset()
    backend = compile_with(forward_compiler, compiler)
    # PyTorch would compile gradients when they are first asked for.
    with torch._functorch.config.patch(force_non_lazy_backward_lowering=True):
        torch.compile(model, backend=backend, dynamic=False)(*inputs, **keywords)
    torch.compiler.reset()
    return explanation

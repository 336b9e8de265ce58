"""Partial execution of training graphs, with the interface of onnxruntime's training module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _tenon

if TYPE_CHECKING:
    from ._devices import OrtDevice


class TrainingAgent(_tenon._TrainingAgent):
    """Runs the two halves of a graph around its YieldOp: forward, then backward.

    `session` is an InferenceSession over the graph, or the native session in it. The forward half
    takes the inputs `fw_feed_names` and returns the inputs of the YieldOp. The backward half takes
    the outputs of the YieldOp and returns the outputs `bw_fetches_names`. The lists of devices say
    where each of these results is allocated. `local_rank` is the rank of the process on its
    machine, for the name of the memory profile.

    Both halves fill `fetches`, a list of OrtValue such as OrtValueVector, and share a
    PartialGraphExecutionState, one for each forward. Failures raise RuntimeError.
    """

    def __init__(
        self,
        session: Any,
        fw_feed_names: Sequence[str],
        fw_outputs_device_info: Sequence[OrtDevice],
        bw_fetches_names: Sequence[str],
        bw_outputs_device_info: Sequence[OrtDevice],
        local_rank: int = 0,
    ) -> None:
        super().__init__(
            getattr(session, "_sess", session),
            list(fw_feed_names),
            list(fw_outputs_device_info),
            list(bw_fetches_names),
            list(bw_outputs_device_info),
        )
        self._set_local_rank(local_rank)
        self.local_rank = local_rank

"""The methods that convert weights of products to integers of few bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._calibration_data import CalibrationDataReader
from ._types import QuantFormat

BITS = (2, 4, 8)
QUANT_AXES = {"MatMul": 0, "Gather": 1}


class WeightOnlyQuantConfig:
    """The settings that all methods share.

    op_types_to_quantize      MatMul if none are named
    quant_axes                pairs of an operator and the axis along which its blocks run
    customized_weight_config  of single nodes, by name: "bits", "group_size", "scheme"
    """

    def __init__(
        self,
        algorithm: str,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        quant_axes: Sequence[tuple[str, int]] | None = None,
        customized_weight_config: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.quant_format = quant_format
        self.op_types_to_quantize = set(op_types_to_quantize or ("MatMul",))
        self.quant_axes = dict(quant_axes or QUANT_AXES)
        self.customized_weight_config = customized_weight_config

    def _needs_operators(self) -> None:
        if self.quant_format != QuantFormat.QOperator:
            raise ValueError(
                f"{self.algorithm}: expected QuantFormat.QOperator, got {self.quant_format}"
            )


class DefaultWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Each block by its own range.

    accuracy_level          the type in which products are computed: 1 float32, 2 float16,
                            3 bfloat16, 4 int8; None: the kernel decides
    channel_wised_quantize  a column is one block, in QuantFormat.QDQ
    """

    def __init__(
        self,
        block_size: int = 128,
        is_symmetric: bool = False,
        accuracy_level: int | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        quant_axes: Sequence[tuple[str, int]] | None = None,
        bits: int = 4,
        channel_wised_quantize: bool = False,
    ) -> None:
        super().__init__("DEFAULT", quant_format, op_types_to_quantize, quant_axes)
        if channel_wised_quantize and quant_format == QuantFormat.QOperator:
            raise NotImplementedError("channel_wised_quantize: expected QuantFormat.QDQ")
        self.block_size = checked_block_size(block_size)
        self.is_symmetric = is_symmetric
        self.bits = checked_bits(bits)
        self.accuracy_level = accuracy_level
        self.channel_wised_quantize = channel_wised_quantize


class RTNWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Round to nearest. `ratios`: by the name of a weight, the share of its range to keep."""

    def __init__(
        self,
        ratios: Mapping[str, float] | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        customized_weight_config: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(
            "RTN",
            quant_format,
            op_types_to_quantize,
            customized_weight_config=customized_weight_config,
        )
        self._needs_operators()
        self.ratios = dict(ratios or {})


class KQuantWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """The least weighted squares of errors. `ratios` is accepted and ignored."""

    def __init__(
        self,
        ratios: Mapping[str, float] | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        customized_weight_config: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(
            "k_quant",
            quant_format,
            op_types_to_quantize,
            customized_weight_config=customized_weight_config,
        )
        self._needs_operators()
        self.ratios = dict(ratios or {})


class GPTQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Rounding that compensates its errors on given data.

    percdamp    a share of the mean of squared values, added to each
    block_size  the number of rows that are rounded before their errors are passed on to the rest
    actorder    rounds the rows with the largest values first
    mse         ranges have the least error
    perchannel  each column has its own scale
    """

    def __init__(
        self,
        calibration_data_reader: CalibrationDataReader | None = None,
        percdamp: float = 0.01,
        block_size: int = 128,
        actorder: bool = False,
        mse: bool = False,
        perchannel: bool = True,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
    ) -> None:
        super().__init__("GPTQ", quant_format, op_types_to_quantize)
        self._needs_operators()
        self.calibration_data_reader = calibration_data_reader
        self.percdamp = percdamp
        self.block_size = block_size
        self.actorder = actorder
        self.mse = mse
        self.perchannel = perchannel


class HQQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Half-quadratic quantization: zero points between integers. Blocks run along axis 1."""

    def __init__(
        self,
        block_size: int = 128,
        bits: int = 4,
        axis: int = 1,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        quant_axes: Sequence[tuple[str, int]] | None = None,
    ) -> None:
        super().__init__("HQQ", quant_format, op_types_to_quantize, quant_axes)
        self._needs_operators()
        self.block_size = checked_block_size(block_size)
        self.bits = checked_bits(bits)
        self.axis = axis


class NVAWQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Refused: it needs NVIDIA's package nvidia-modelopt, which runs the model itself."""

    def __init__(
        self,
        tokenizer_dir: str,
        dataset_name: str = "cnn",
        cache_dir: str = "./cache",
        calibration_method: str = "awq_lite",
    ) -> None:
        raise ImportError(
            "nvidia_awq is modelopt.onnx.quantization.int4.quantize of nvidia-modelopt: call it, "
            "and run the model that it writes"
        )


def checked_bits(bits: int) -> int:
    """The bits, if there are products of such integers."""
    if bits not in BITS:
        raise ValueError(f"expected 2, 4 or 8 bits, got {bits}")
    return bits


def checked_block_size(block_size: int) -> int:
    """The size, if there are products of such blocks."""
    if block_size < 16 or block_size & (block_size - 1):
        raise ValueError(f"expected a block size of 16, 32, 64, ..., got {block_size}")
    return block_size

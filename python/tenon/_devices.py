"""Devices by name, as programs for onnxruntime name them."""

from __future__ import annotations

from enum import IntEnum

from . import _tenon

# Kinds of devices, and the default vendor of each.
KINDS = {"cpu": 0, "cuda": 1, "gpu": 1, "dml": 1, "webgpu": 1, "fpga": 2, "cann": 3, "npu": 3}


class OrtDeviceVendorId(IntEnum):
    """PCI numbers of vendors."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


VENDORS = {
    "cuda": OrtDeviceVendorId.NVIDIA,
    "dml": OrtDeviceVendorId.MICROSOFT,
    "cann": OrtDeviceVendorId.HUAWEI,
}


def get_ort_device_type(device: str) -> int:
    """The number of a kind of device."""
    if device.lower() not in KINDS:
        raise ValueError(f"Unsupported device type: '{device}'; there are {', '.join(KINDS)}")
    return KINDS[device.lower()]


class NativeDevice:
    """A memory location, as programs make it of numbers: kinds of device and memory, vendor, id."""

    def __init__(self, device_type: int, mem_type: int, *vendor_and_id: int) -> None:
        """The vendor may be left out."""
        if len(vendor_and_id) not in (1, 2):
            raise TypeError(f"expected 3 or 4 numbers, got {2 + len(vendor_and_id)}")
        *vendor, self._device_id = vendor_and_id
        self._device_type, self._mem_type = device_type, mem_type
        self._vendor_id = int(vendor[0]) if vendor else 0

    def device_type(self) -> int:
        """The number of its kind."""
        return self._device_type

    def mem_type(self) -> int:
        """The kind of memory."""
        return self._mem_type

    def vendor_id(self) -> int:
        """The vendor."""
        return self._vendor_id

    def device_id(self) -> int:
        """Its number among the devices of its kind."""
        return self._device_id

    @staticmethod
    def cpu() -> int:
        """The kind of processors."""
        return 0

    @staticmethod
    def gpu() -> int:
        """The kind of graphics processors."""
        return 1

    @staticmethod
    def cuda() -> int:
        """The same."""
        return 1

    @staticmethod
    def webgpu() -> int:
        """The same."""
        return 1

    @staticmethod
    def fpga() -> int:
        """The kind of programmed circuits."""
        return 2

    @staticmethod
    def npu() -> int:
        """The kind of neural processors."""
        return 3

    @staticmethod
    def cann() -> int:
        """The same."""
        return 3

    @staticmethod
    def dml() -> int:
        """The kind of what DirectML runs on."""
        return 4

    @staticmethod
    def default_memory() -> int:
        """The kind of memory that is most usual."""
        return 0


class OrtDevice:
    """A memory location for values. This build has only the CPU's."""

    def __init__(self, c_ort_device: NativeDevice) -> None:
        """`c_ort_device` tells kind, memory kind, vendor and number."""
        self._ort_device = c_ort_device

    def _get_c_device(self) -> NativeDevice:
        return self._ort_device

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device of that kind and number."""
        kind = get_ort_device_type(ort_device_name)
        if vendor_id < 0:
            vendor_id = VENDORS.get(ort_device_name.lower(), OrtDeviceVendorId.NONE)
        return OrtDevice(NativeDevice(kind, 0, vendor_id, device_id))

    def device_id(self) -> int:
        """Its number among the devices of its kind."""
        return self._ort_device.device_id()

    def device_type(self) -> int:
        """The number of its kind."""
        return self._ort_device.device_type()

    def device_vendor_id(self) -> int:
        """The vendor."""
        return self._ort_device.vendor_id()

    def device_mem_type(self) -> int:
        """The kind of memory."""
        return self._ort_device.mem_type()


def place_of(device: object, number: int, vendor: int) -> tuple[int, int, int]:
    """Kind, number and vendor of a device that a name and a number tell, or an OrtDevice.

    A vendor of -1 is any.
    """
    if isinstance(device, OrtDevice):
        device = device._get_c_device()
    if isinstance(device, NativeDevice):
        return device.device_type(), device.device_id(), device.vendor_id() or -1
    if not isinstance(device, str):
        raise TypeError(f"expected the name of a device, got {type(device).__name__}")
    kind = get_ort_device_type(device)
    return kind, number, vendor if vendor >= 0 else int(VENDORS.get(device.lower(), -1))


class OrtEpAssignedNode:
    """A node of the model."""

    __slots__ = ("domain", "name", "op_type")

    def __init__(self, name: str, domain: str, op_type: str) -> None:
        self.name, self.domain, self.op_type = name, domain, op_type


class OrtEpAssignedSubgraph:
    """The nodes that one provider runs."""

    __slots__ = ("_nodes", "ep_name")

    def __init__(self, ep_name: str, nodes: list[OrtEpAssignedNode]) -> None:
        self.ep_name = ep_name
        self._nodes = nodes

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """All of them."""
        return list(self._nodes)


class OrtEpContextData:
    """Data of a compiled part of a model. No provider of this build compiles parts."""

    def __init__(self, content: bytes = b"") -> None:
        self._content = content

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self._content)

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Some of the bytes, or all."""
        end = None if length is None else offset + length
        return self._content[offset:end]


class OrtEpContextDataBuffer:
    """Memory for the data of a compiled part of a model."""

    __slots__ = ("_content", "max_size")

    def __init__(self, max_size: int = 0) -> None:
        self.max_size = max_size
        self._content: bytearray | None = None

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self._content or b"")

    @property
    def is_allocated(self) -> bool:
        """Whether allocate was called."""
        return self._content is not None

    def allocate(self, size: int) -> None:
        """Allocates that many bytes."""
        if size > self.max_size:
            raise ValueError(f"expected at most {self.max_size} bytes, got {size}")
        self._content = bytearray(size)

    def write(self, data: bytes, offset: int = 0) -> None:
        """Writes into the memory."""
        if self._content is None or offset + len(data) > len(self._content):
            raise ValueError("expected data that fits into what was allocated")
        self._content[offset : offset + len(data)] = data


def describe_assignment(
    session: _tenon.Session,
) -> list[OrtEpAssignedSubgraph]:
    """The nodes that each provider of a session runs."""
    return [
        OrtEpAssignedSubgraph(name, [OrtEpAssignedNode(*node) for node in nodes])
        for name, nodes in session._assignment()
    ]

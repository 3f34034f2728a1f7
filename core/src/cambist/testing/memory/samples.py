"""What the memory family accepts and refuses, for the conformance kit."""

from __future__ import annotations

from cambist.testing.harness import FamilySamples

from .family import named_address
from .plugin import memory_chain_info

_ADDRESS = named_address("sample")
_XPUBS = ("xpubMemoryAccount0000000000000001", "xpubMemoryAccount0000000000000002")

MEMORY_SAMPLES = FamilySamples(
    account_xpubs=_XPUBS,
    spellings={_ADDRESS: _ADDRESS, _ADDRESS.upper(): _ADDRESS},
    refused=(
        _ADDRESS[:-1],
        _ADDRESS + "a",
        _ADDRESS.title(),
        _ADDRESS[:-1] + ("b" if _ADDRESS[-1] != "b" else "c"),
        "0x" + "00" * 20,
    ),
    chain=memory_chain_info(),
    derived={(_XPUBS[0], 0, 0): "mem1r5ktrylpuzhpthahx6ngtwdppogd4kee5ncr7rx3"},
)

"""An exchange on chains in memory: payloads that approve and call, and a provider's reader, whose calls say it all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cambist.plugin import (
    Allowance,
    Call,
    CallReader,
    ChainInfo,
    Effects,
    ExchangeEffects,
    Units,
    UnreadablePayloadError,
)
from cambist.testing.memory import MemoryFamily
from cambist.testing.memory.family import named_address

ROUTER = named_address("router")
_MARK = b"exchange "


class ExchangePayload(Struct, frozen=True, kw_only=True):
    """What a payload of this family says beside a transfer."""

    sequence: int
    fee_max: int = 1_000
    allowance: Allowance | None = None
    call: Call | None = None


def exchange_payload(**said: Any) -> bytes:
    return _MARK + msgspec.json.encode(ExchangePayload(**said))


class CallingFamily(MemoryFamily):
    """The family of chains in memory, if they ran contracts."""

    def effects(self, chain: ChainInfo, payload: bytes) -> Effects:
        if not payload.startswith(_MARK):
            return super().effects(chain, payload)
        said = msgspec.json.decode(payload.removeprefix(_MARK), type=ExchangePayload)
        return Effects(
            movements=(),
            fee_max=Units(said.fee_max),
            sequence=said.sequence,
            allowance=said.allowance,
            call=said.call,
        )


class FairReader(CallReader):
    """Reads calls of one router, which are the effects themselves, as JSON."""

    def spenders(self, chain: ChainInfo) -> frozenset[str]:  # noqa: ARG002  the same on all
        return frozenset({ROUTER})

    def read(
        self,
        chain: ChainInfo,  # noqa: ARG002  the same on all
        sender: str,  # noqa: ARG002  is not in the call
        call: Call,
        chains: Mapping[str, ChainInfo],  # noqa: ARG002  named in the call
    ) -> ExchangeEffects | None:
        if call.to_address != ROUTER:
            return None
        try:
            found = msgspec.json.decode(call.data, type=ExchangeEffects)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadablePayloadError(str(error)) from error
        if exchange_call(found) != call:
            raise UnreadablePayloadError("the call is not written in the canonical way")
        return found


def exchange_call(effects: ExchangeEffects, **more: Any) -> Call:
    """Return the router's call that has these effects."""
    value = effects.sold if effects.sold_contract is None else Units(0)
    return Call(**{"to_address": ROUTER, "data": msgspec.json.encode(effects), "value": value} | more)

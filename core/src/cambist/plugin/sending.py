"""The values of sending: what is wanted, what must be sent for it, and what a node says of it.

How the gateway sends one thing::

    intent    a transfer that is wanted: from an address of ours, to anybody, so much of a token
    plan      the chain's steps for it, each with the fee it may cost; or the reason why it cannot be
    prepare   a step and its sequence become the bytes to be signed, the *payload*
    sign      the gateway's signer reads the payload, judges it, and signs its digest
    seal      payload and signature become what is broadcast; its id is final before anything is sent
    store     the gateway commits it
    broadcast as often as needed: sending the same bytes twice is no error

The signer never sees a node and believes nobody: what it judges is what ``AddressFamily.effects`` reads out of the
payload itself.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .types import Token, Units


class Fee(Struct, frozen=True, kw_only=True):
    """The most that a transaction may cost its sender.

    ``limit`` is in the chain's unit of work (gas), ``price`` the most paid per unit of work in the native coin's
    smallest unit, ``tip`` the part of the price meant for the block's maker, where the chain knows such a part;
    None makes a transaction of the kind without one. ``extra`` is a charge outside of limit and price, such as a
    rollup's fee for its data, as an upper bound. ``price_now`` is the least price at which the next block takes it,
    where that is less than ``price``: the gateway may pay less headroom than the plan offers, never less than this.
    """

    limit: int
    price: int
    tip: int | None = None
    extra: Units = Units(0)
    price_now: int | None = None

    @property
    def cost_max(self) -> Units:
        """What the sender must hold for it, beside what it sends."""
        return Units(self.limit * self.price + self.extra)


class Intent(Struct, frozen=True, kw_only=True):
    """A transfer that is wanted. Both addresses are normalized, ``amount`` is above zero."""

    source: str
    target: str
    token: Token
    amount: Units


class Step(Struct, frozen=True, kw_only=True):
    """One transaction of a plan: ``sender`` gives ``amount`` of the token to ``target`` and pays at most ``fee``."""

    sender: str
    target: str
    token: Token
    amount: Units
    fee: Fee

    @property
    def native_needed(self) -> Units:
        """What the sender must hold of the native coin."""
        return Units(self.fee.cost_max + (self.amount if self.token.is_native else 0))


class Plan(Struct, frozen=True, kw_only=True):
    """What must be sent for an intent, in this order; or why it can never be sent as it stands.

    That every sender can pay its fee is the gateway's care, not the plan's.
    """

    steps: tuple[Step, ...] = ()
    refused: str | None = None


class UnsignedTx(Struct, frozen=True, kw_only=True):
    """A step that waits for its signature. ``payload`` is exactly what will be signed.

    ``valid_until`` is in seconds since 1970 UTC, and None where transactions do not expire.
    """

    sender: str
    sequence: int | None
    payload: bytes
    fee: Fee
    valid_until: int | None = None


class SignedTx(Struct, frozen=True, kw_only=True):
    """What is broadcast: its id, as ``Transfer.tx_id`` will show it, and its bytes."""

    tx_id: str
    raw: bytes


class Movement(Struct, frozen=True, kw_only=True):
    """A transfer that a payload commands. ``source`` is None where it is the signer's own address."""

    contract: str | None
    recipient: str
    amount: Units
    source: str | None = None


class Effects(Struct, frozen=True, kw_only=True):
    """All that a payload can do to the money of who signs it.

    ``delegate`` is the contract that gets power over the signing address, where the payload gives such power.
    """

    movements: tuple[Movement, ...]
    fee_max: Units
    sequence: int | None
    delegate: str | None = None


class Broadcast(Struct, frozen=True, kw_only=True):
    """What a node said to a transaction.

    ``accepted``: it is out, or was known already, which is the same. ``rejected``: this node will never take these
    bytes as things stand (``sequence_used`` says that its sequence is used up, perhaps by itself). ``underpriced``:
    it would take them for a higher fee. ``unfunded``: the sender cannot pay. ``unknown``: nobody knows whether
    it is out: look it up by id, send the same bytes again, never sign anew.
    """

    state: Literal["accepted", "rejected", "sequence_used", "underpriced", "unfunded", "unknown"]
    reason: str = ""

"""What the gateway asks of its signer, and what comes back: the same whether it is in this process or in its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from cambist.domain.branches import BRANCHES

from .reports import AnswerToQuestion, Outcome, Report

PAYLOAD_BYTES_MAX = 2**17
OWN_PATHS_MAX = 500
DEAD_MAX = 100
NOT_REACHED = "NOT_REACHED"
ALREADY_SIGNED = "ALREADY_SIGNED"
VOIDED = "VOIDED"
DENIED = "DENIED"
VOIDS_MAX = 500
REQUESTS_MAX = 500

Index = Annotated[int, Meta(ge=0, lt=2**31)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]


class KeyPath(Struct, frozen=True, kw_only=True):
    """Where a key is below ``m/44'/coin'``: ``account'/change/index``, where ``change`` is one of ``BRANCHES``."""

    account: Index
    change: Annotated[int, Meta(ge=0, le=BRANCHES[-1])]
    index: Index

    def __str__(self) -> str:
        return f"{self.account}'/{self.change}/{self.index}"


class SignRequest(Struct, frozen=True, kw_only=True):
    """A payload to be signed with the key at ``path``.

    ``own`` are the paths of the recipients and sources that are said to be ours. They save the signer a search; it
    derives them itself and believes nothing. ``purpose`` and ``reference`` can only make it stricter. ``asked_by`` is
    an ``AskedBy`` and says which caps hold beside those for everything; what says nothing is treated most strictly.
    ``tag`` is the one that was asked for: what leaves must carry it, and none where there is none.

    One reference is signed for one nonce slot, and for another one only where the first is among the ``dead`` ones:
    those in which, as the gateway's books say, something else was mined. Where there are no nonces, the number of a
    slot is the time until which its payload is valid, and dead is what has expired. ``follows`` asks for it to be
    refused with NOT_REACHED where the request before it was refused: there would be a gap before its nonce.
    """

    mode: Annotated[str, Meta(max_length=16)]
    chain: Name
    payload: Annotated[bytes, Meta(max_length=PAYLOAD_BYTES_MAX)]
    path: KeyPath
    purpose: Annotated[str, Meta(max_length=64)]
    reference: Name
    asked_by: Annotated[str, Meta(max_length=16)] = ""
    tag: Annotated[str, Meta(max_length=128)] | None = None
    own: Annotated[tuple[KeyPath, ...], Meta(max_length=OWN_PATHS_MAX)] = ()
    dead: Annotated[tuple[int, ...], Meta(max_length=DEAD_MAX)] = ()
    follows: bool = False


class SignReply(Struct, frozen=True, kw_only=True):
    """A signature of 65 bytes (r, s, recovery id), or a refusal: its code and a sentence for the operator.

    ``retry_at`` is when the same request may pass; None where that takes a person, or never happens. With
    ALREADY_SIGNED comes the ``slot_number`` for which the reference was signed before, and without nonces the
    ``tx_id``, too.
    """

    signature: bytes | None = None
    refusal: str | None = None
    reason: str | None = None
    retry_at: datetime | None = None
    slot_number: int | None = None
    tx_id: str | None = None


class Voided(Struct, frozen=True, kw_only=True):
    """What the signer knows of a reference that it will never sign again.

    ``slot_number`` is None where it has never signed it. Otherwise it signed it last for this slot of ``sender``, and
    that may yet take effect, or has: the slot's nonce; or, with the ``tx_id`` that came of it, until when it is valid.
    Earlier slots were said to be dead when it signed for another.
    """

    sender: str | None = None
    slot_number: int | None = None
    tx_id: str | None = None

    @property
    def is_unsigned(self) -> bool:
        return self.slot_number is None


class SignerUnavailableError(Exception):
    """Nothing was signed that is known of: ask again. What was signed before counts once, however often it is asked."""


class XpubSource(ABC):
    """The part of a signer that derives account keys, and signs nothing."""

    @abstractmethod
    async def account_xpub(self, mode: str, coin_type: int, account_index: int) -> str:
        """Return the extended public key at ``m/44'/coin_type'/account_index'`` of the mode's seed.

        Raises SignerUnavailableError.
        """


class Signer(XpubSource):
    """Holds the keys. Signs what its own reading of a payload and its own rules allow, and nothing else."""

    @abstractmethod
    async def sign(self, requests: Sequence[SignRequest]) -> Sequence[SignReply]:
        """Answer each request, in their order. Asking again for the same payload is answered alike, and counts once.

        Raises SignerUnavailableError.
        """

    @abstractmethod
    async def void(self, mode: str, chain: str, references: Sequence[str]) -> Sequence[Voided]:
        """Refuse to sign these references from now on, for ever, and tell what was signed of them before.

        It is on disk before this returns. Asking again is answered alike. Raises ValueError for an unknown chain or
        mode, SignerUnavailableError.
        """

    @abstractmethod
    async def report(self) -> Report:
        """Tell of rules, questions and refusals. Raises SignerUnavailableError."""

    @abstractmethod
    async def answer(self, answer: AnswerToQuestion) -> Outcome:
        """Take a person's answer to a question, and return what came of it.

        An approval is good for what the question said, once; what is denied is voided. Nothing happens unless the
        operator's file opens this, and the code is right. Wrong codes are counted, on disk, and too many close this for
        an hour. Raises SignerUnavailableError.
        """

    @abstractmethod
    async def public_key(self, mode: str, coin_type: int, path: KeyPath) -> bytes:
        """Return the public key, compressed to 33 bytes, of the key that signs for this path.

        For chains that sign it. Raises SignerUnavailableError.
        """

    @abstractmethod
    async def learn(self, mode: str, chain: str, account: int, address: str) -> datetime:
        """Start the delay of an address that money will go to, unless it has started, and return when that was.

        It becomes known for what is signed with keys of this account, and of no other.

        Raises ValueError for an unknown chain or an address that is none, SignerUnavailableError.
        """

    @abstractmethod
    async def knows_token(self, chain: str, contract: str) -> bool:
        """Say whether a token stands in the signer's own file: transfers of others are not signed.

        Raises SignerUnavailableError.
        """

"""What goes over the signer's socket: a length of four bytes, and so many bytes of MessagePack."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from .protocol import REQUESTS_MAX, VOIDS_MAX, Index, KeyPath, Name, SignReply, SignRequest, Voided
from .reports import AnswerToQuestion, Outcome, Report

FRAME_BYTES_MAX = 16 * 2**20
LENGTH_BYTES = 4

T = TypeVar("T")


class FrameError(Exception):
    """What came over the socket is no frame of ours."""


class SignCall(Struct, frozen=True, tag="sign"):
    """``Signer.sign``."""

    requests: Annotated[tuple[SignRequest, ...], Meta(max_length=REQUESTS_MAX)]


class VoidCall(Struct, frozen=True, tag="void"):
    """``Signer.void``."""

    mode: Annotated[str, Meta(max_length=16)]
    chain: Name
    references: Annotated[tuple[Name, ...], Meta(max_length=VOIDS_MAX)]


class ReportCall(Struct, frozen=True, tag="report"):
    """``Signer.report``."""


class Reported(Struct, frozen=True, tag="reported"):
    """Answers ``ReportCall``."""

    report: Report


class AnswerCall(Struct, frozen=True, tag="answer"):
    """``Signer.answer``."""

    answer: AnswerToQuestion


class Answered(Struct, frozen=True, tag="answered"):
    """Answers ``AnswerCall``."""

    outcome: Outcome


class XpubCall(Struct, frozen=True, tag="xpub"):
    """``Signer.account_xpub``."""

    mode: Annotated[str, Meta(max_length=16)]
    coin_type: Index
    account_index: Index


class PublicKeyCall(Struct, frozen=True, tag="public_key"):
    """``Signer.public_key``."""

    mode: Annotated[str, Meta(max_length=16)]
    coin_type: Index
    path: KeyPath


class LearnCall(Struct, frozen=True, tag="learn"):
    """``Signer.learn``."""

    mode: Annotated[str, Meta(max_length=16)]
    chain: Name
    account: Index
    address: Annotated[str, Meta(max_length=256)]


class KnowsTokenCall(Struct, frozen=True, tag="knows_token"):
    """``Signer.knows_token``."""

    chain: Name
    contract: Annotated[str, Meta(max_length=256)]


class Signed(Struct, frozen=True, tag="signed"):
    """Answers ``SignCall``."""

    replies: tuple[SignReply, ...]


class AreVoided(Struct, frozen=True, tag="voided"):
    """Answers ``VoidCall``."""

    voided: tuple[Voided, ...]


class Xpub(Struct, frozen=True, tag="xpub"):
    """Answers ``XpubCall``."""

    xpub: str


class PublicKey(Struct, frozen=True, tag="public_key"):
    """Answers ``PublicKeyCall``."""

    public_key: bytes


class Learned(Struct, frozen=True, tag="learned"):
    """Answers ``LearnCall``."""

    since: datetime


class TokenKnown(Struct, frozen=True, tag="token_known"):
    """Answers ``KnowsTokenCall``."""

    known: bool


class Failed(Struct, frozen=True, tag="failed"):
    """Answers what could not be done. ``wrong``: it never can be; else it may be asked again."""

    message: str
    wrong: bool = False


Call = SignCall | VoidCall | ReportCall | AnswerCall | XpubCall | PublicKeyCall | LearnCall | KnowsTokenCall
Answer = Signed | AreVoided | Reported | Answered | Xpub | PublicKey | Learned | TokenKnown | Failed

CALLS: msgspec.msgpack.Decoder[Call] = msgspec.msgpack.Decoder(Call)
ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def encode(message: Call | Answer) -> bytes:
    """Return the frame of a message. Raises FrameError for one that is too large."""
    body = msgspec.msgpack.encode(message)
    if len(body) > FRAME_BYTES_MAX:
        raise FrameError(f"a message of {len(body)} bytes is too large")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


async def read(reader: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[T], *, timeout_s: float) -> T | None:
    """Return the next call or answer, however long it takes to begin; None at the end. Raises FrameError."""
    try:
        first = await reader.read(1)
        if not first:
            return None
        async with asyncio.timeout(timeout_s):
            size = int.from_bytes(first + await reader.readexactly(LENGTH_BYTES - 1), "big")
            if size > FRAME_BYTES_MAX:
                raise FrameError(f"a frame of {size} bytes is too large")
            return decoder.decode(await reader.readexactly(size))
    except (asyncio.IncompleteReadError, TimeoutError) as error:
        raise FrameError("a frame ended before its end") from error
    except msgspec.DecodeError as error:
        raise FrameError(f"a frame is no message: {error}") from error

"""A signer over chains in memory, and the requests that are put to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec

from cambist.registry import Registry
from cambist.settings import Settings, SignerSettings
from cambist.signer.keystore import Keystore
from cambist.signer.local import LocalSigner
from cambist.signer.protocol import KeyPath, SignReply, SignRequest
from cambist.signer.reading import Reader
from cambist.signer.rules import load_rules
from cambist.signer.store import Store
from cambist.testing.memory.family import named_address, spell
from cambist.testing.memory.keys import signer_of
from cambist.testing.memory.payload import Payload, digest_of, write_payload

KEYSTORE = Keystore(" ".join(["abandon"] * 11 + ["about"]))
CHAINS = {"memory": {}, "other": {}, "later": {"availability": "unconfigured"}, "toy": {"availability": "simulated"}}
FOUND = [EntryPoint("memory", "cambist.testing.memory.plugin", "cambist.plugins")]
COIN_TYPE = 1

GAS = KeyPath(account=0, change=0, index=0)
WALLET = KeyPath(account=1, change=1, index=0)
DEPOSIT = KeyPath(account=1, change=0, index=7)


def registry() -> Registry:
    return Registry({"memory": {"chains": CHAINS}}, found=FOUND)


def address(path: KeyPath, mode: str = "live") -> str:
    """Derive an address of ours."""
    xpub = KEYSTORE.account_xpub(mode, COIN_TYPE, path.account)
    return registry().families["memory"].derive_address(xpub, path.change, path.index)


def stranger(name: str) -> str:
    return named_address(f"stranger/{name}")


def payload(
    to_address: str,
    amount: int,
    *,
    sequence: int = 0,
    symbol: str = "USDX",
    chain: str = "memory",
    price: int = 1,
    tag: str | None = None,
) -> bytes:
    """Write a transfer of so many smallest units; its fee is at most 1,000 times the price."""
    info = registry_of(chain).token(symbol)
    assert info is not None
    said = Payload(
        chain=chain, sequence=sequence, contract=info.contract, recipient=to_address, amount=amount,
        limit=1_000, price=price, tip=None, tag=tag,
    )  # fmt: skip
    return write_payload(said)


def registry_of(chain: str):
    return _REGISTRY.chains[chain]


_REGISTRY = registry()


def request(to_address: str, amount: int, *, path: KeyPath = WALLET, **more: Any) -> SignRequest:
    """Ask for a transfer from the wallet; ``more`` goes to the request or to its payload.

    Each slot has a reference of its own, unless one is named.
    """
    names = ("mode", "purpose", "reference", "asked_by", "own", "dead", "follows")
    asked = {name: more.pop(name) for name in names if name in more}
    if "asked_tag" in more:
        asked["tag"] = more.pop("asked_tag")
    return SignRequest(
        mode=asked.get("mode", "live"),
        chain=more.get("chain", "memory"),
        payload=payload(to_address, amount, **more),
        path=path,
        purpose=asked.get("purpose", "payout"),
        reference=asked.get("reference", f"payout:po_{path} {more.get('sequence', 0)}"),
        asked_by=asked.get("asked_by", "key"),
        tag=asked.get("tag", more.get("tag")),
        own=asked.get("own", ()),
        dead=asked.get("dead", ()),
        follows=asked.get("follows", False),
    )


def open_signer(folder: Path, clock, **rules: Any) -> LocalSigner:
    """Open a signer with these settings over the store in this folder."""
    known, answers_key = registry(), rules.pop("answers_key", None)
    settings = Settings(signer=msgspec.convert(rules, SignerSettings))
    return LocalSigner(
        KEYSTORE,
        Reader(KEYSTORE, known.families, known.chains),
        rules=load_rules(settings, known.chains, known.families),
        store=Store(folder),
        clock=clock,
        answers_key=answers_key,
    )


@asynccontextmanager
async def opening(folder: Path, clock, **always: Any) -> AsyncIterator[Callable[..., LocalSigner]]:
    """Yield what opens signers over one store, each with settings of its own besides; they are closed at the end."""
    async with AsyncExitStack() as stack:

        def make(**rules: Any) -> LocalSigner:
            signer = open_signer(folder, clock, **always, **rules)
            stack.push_async_callback(signer.aclose)
            return signer

        yield make


async def answer(signer: LocalSigner, asked: SignRequest) -> SignReply:
    (reply,) = await signer.sign([asked])
    return reply


def signed_by(asked: SignRequest, reply: SignReply) -> str:
    """Return whose signature it is."""
    assert reply.signature is not None, reply
    return spell(signer_of(digest_of(asked.payload), reply.signature))

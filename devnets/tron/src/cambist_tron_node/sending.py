"""What the accounts of a local node can be made to do: send, stake, lend, call and create contracts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from cambist.testing.contracts import load

from . import keys, proto
from .chain import Chain
from .machine import Call, Machine, Moment, Outcome
from .state import ENERGY
from .tokens import FEE_LIMIT, TronContract, TronToken, plain
from .transactions import (
    CREATE_CONTRACT,
    DELEGATE,
    STAKE,
    TRANSFER,
    TRIGGER,
    UNDELEGATE,
    Transaction,
    build,
    signed,
)

LIFETIME_MS: Final = 60_000
USDT_ENERGY_FACTOR: Final = 34_000
"""What makes the main network's USDT dearer: the highest factor there is, in ten-thousandths."""

_SYMBOL_BYTES: Final = 32


class NotCarriedOutError(Exception):
    """The transaction came into a block and failed there, or came into none."""


class Accounts:
    """Funded accounts whose keys are known, the same on every node. The first is the sender unless another is named."""

    def __init__(self, chain: Chain, machine: Machine, accounts_count: int) -> None:
        self.chain = chain
        self.machine = machine
        self.keys: Mapping[str, bytes] = dict(_funded(accounts_count))
        self.accounts = list(self.keys)

    async def mine(self, blocks: int = 1) -> None:
        """Make blocks; what waits goes into the first."""
        async with self.chain.lock:
            await self.chain.mine(blocks)

    # --- Accounts ---

    def new_account(self, name: str) -> str:
        """Return an address of nobody yet; its key is known from here on."""
        key = keys.named_key(name)
        address = keys.base58(keys.address_of(key))
        self.keys = {**self.keys, address: key}
        return address

    def balance(self, address: str) -> int:
        """Return an account's sun, what waits included; 0 where it is not activated."""
        account = self.chain.state.account(keys.address_bytes(address))
        return account.balance if account is not None else 0

    def activated(self, address: str) -> bool:
        return self.chain.state.account(keys.address_bytes(address)) is not None

    async def give(self, address: str, sun: int) -> None:
        """Let an account have so much more, out of nothing and without a transaction, in a block of its own."""
        async with self.chain.lock:
            await self.chain.grant(keys.address_bytes(address), sun)

    # --- Transactions ---

    async def send_trx(self, to: str, sun: int, *, sender: str | None = None) -> str:
        """Send TRX, and return the transaction's id."""
        owner = self._sender(sender)
        held = proto.new(TRANSFER, owner_address=owner, to_address=keys.address_bytes(to), amount=sun)
        return await self.submit(TRANSFER, held)

    async def stake(self, address: str, sun: int, *, resource: int = ENERGY) -> str:
        """Stake an account's TRX in a block of its own, and return the transaction's id."""
        held = proto.new(STAKE, owner_address=keys.address_bytes(address), frozen_balance=sun, resource=resource)
        return await self._mined(await self.submit(STAKE, held))

    async def delegate(self, owner: str, receiver: str, sun: int, *, resource: int = ENERGY) -> str:
        """Lend stake in a block of its own, and return the transaction's id."""
        return await self._lend(DELEGATE, owner, receiver, sun, resource)

    async def undelegate(self, owner: str, receiver: str, sun: int, *, resource: int = ENERGY) -> str:
        """Take lent stake back in a block of its own, and return the transaction's id."""
        return await self._lend(UNDELEGATE, owner, receiver, sun, resource)

    async def _lend(self, kind: str, owner: str, receiver: str, sun: int, resource: int) -> str:
        ends = {"owner_address": keys.address_bytes(owner), "receiver_address": keys.address_bytes(receiver)}
        return await self._mined(await self.submit(kind, proto.new(kind, **ends, balance=sun, resource=resource)))

    async def trigger(
        self, contract: str, data: bytes, *, sender: str | None = None, call_value: int = 0, fee_limit: int = FEE_LIMIT
    ) -> str:
        """Call a contract, and return the transaction's id."""
        held = proto.new(
            TRIGGER, owner_address=self._sender(sender), contract_address=keys.address_bytes(contract), data=data,
            call_value=call_value,
        )  # fmt: skip
        return await self.submit(TRIGGER, held, fee_limit=fee_limit)

    async def constant(self, contract: str, data: bytes, *, sender: str | None = None) -> Outcome:
        head = self.chain.blocks.head
        call = Call(self._sender(sender)[1:], keys.address_bytes(contract)[1:], data, 100_000_000)
        moment = Moment(head.number, head.timestamp_ms, head.header.raw_data.witness_address[1:])
        async with self.chain.lock:
            return await self.machine.constant(call, moment)

    async def create(  # noqa: PLR0913 - what a creation can say
        self,
        bytecode: bytes,
        *,
        abi: bytes = b"[]",
        name: str = "",
        sender: str | None = None,
        call_value: int = 0,
        consume_user_percent: int = 100,
        origin_energy_limit: int = 10_000_000,
    ) -> str:
        """Create a contract in a block of its own, and return its address. ``abi`` is JSON."""
        owner = self._sender(sender)
        entries = proto.from_json("ABI", {"entrys": msgspec.json.decode(abi)})
        new = proto.new(
            "SmartContract", origin_address=owner, bytecode=bytecode, name=name, abi=entries, call_value=call_value,
            consume_user_resource_percent=consume_user_percent, origin_energy_limit=origin_energy_limit,
        )  # fmt: skip
        held = proto.new(CREATE_CONTRACT, owner_address=owner, new_contract=new)
        tx_id = await self._mined(await self.submit(CREATE_CONTRACT, held, fee_limit=FEE_LIMIT))
        return keys.base58(self._found(tx_id).made_address)

    async def deploy(
        self,
        name: str,
        *args: Any,  # noqa: ANN401 - ABI values
        sender: str | None = None,
        call_value: int = 0,
    ) -> TronContract:
        """Create one of the test contracts in a block of its own."""
        artifact = load(name)
        code = artifact.creation_code(*plain(args))
        address = await self.create(code, abi=artifact.abi, name=name, sender=sender, call_value=call_value)
        return TronContract(self, artifact, address)

    async def deploy_token(self, symbol: str, decimals: int, *, usdt_like: bool = False) -> TronToken:
        """Create a token in a block of its own: an ordinary one, or one that behaves and costs like USDT on TRON."""
        artifact = load("TronUsdt" if usdt_like else "TestToken")
        if not usdt_like:
            address = await self.create(artifact.creation_code(symbol, decimals), abi=artifact.abi, name=symbol)
            return TronToken(self, artifact, address)
        told = symbol.encode().ljust(_SYMBOL_BYTES, b"\0") + decimals.to_bytes(32, "big")
        address = await self.create(artifact.creation_code() + told, abi=artifact.abi, name=symbol)
        self.set_energy_factor(address, USDT_ENERGY_FACTOR)
        return TronToken(self, artifact, address)

    def set_energy_factor(self, contract: str, ten_thousandths: int) -> None:
        self.machine.set_energy_factor(keys.address_bytes(contract)[1:], ten_thousandths)

    async def submit(self, kind: str, held: Any, *, signers: Iterable[bytes] = (), **raw: Any) -> str:  # noqa: ANN401 - a message, fields of Raw
        """Build, sign and send any transaction, and return its id. Raises RefusedError.

        It refers to the solid block, so that it fits on every branch, and is signed by its owner unless told otherwise.
        """
        async with self.chain.lock:
            solid = self.chain.blocks.at(self.chain.solid_number)
            assert solid is not None
            fields = {
                "ref_block_bytes": solid.id[6:8], "ref_block_hash": solid.id[8:16],
                "timestamp": self.chain.unique_ms(),
                "expiration": self.chain.blocks.head.timestamp_ms + LIFETIME_MS, **raw,
            }  # fmt: skip
            plain = build(kind, held, **fields)
            transaction = signed(plain, *(signers or [self.keys[keys.base58(plain.owner)]]))
            await self.chain.broadcast(transaction)
            return transaction.id.hex()

    def info(self, tx_id: str) -> Mapping[str, Any] | None:
        """Return what came of a transaction as nodes tell it, None until it is in a block."""
        found = self.chain.view().find(bytes.fromhex(tx_id))
        return None if found is None else proto.to_json(found[0].infos[found[1]])

    def pending(self) -> list[str]:
        """Return the ids of what waits, in its order."""
        return [each.id.hex() for each in self.chain.pool]

    async def _mined(self, tx_id: str) -> str:
        await self.mine()
        info = self.info(tx_id)
        if info is None or info.get("result") == "FAILED":
            words = bytes.fromhex(info.get("resMessage", "")).decode() if info else "it is in no block"
            raise NotCarriedOutError(f"{tx_id}: {words}")
        return tx_id

    def _found(self, tx_id: str) -> Transaction:
        found = self.chain.view().find(bytes.fromhex(tx_id))
        if found is None:
            raise LookupError(f"{tx_id} is in no block")
        return found[0].transactions[found[1]]

    def _sender(self, sender: str | None) -> bytes:
        return keys.address_bytes(sender or self.accounts[0])


def _funded(count: int) -> Iterable[tuple[str, bytes]]:
    for number in range(count):
        key = keys.named_key(f"account {number}")
        yield keys.base58(keys.address_of(key)), key

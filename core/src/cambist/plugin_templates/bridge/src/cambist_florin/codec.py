"""The one function that is called, and the three logs that tell what came of it. Pure.

::

    deposit(address sells, address buys, uint256 units, uint256 unitsOut, address recipient, uint256 toChain,
            uint256 deadline)
    Deposited(uint256 indexed id, uint256 indexed toChain, address indexed sender, address sells, address buys,
              uint256 units, uint256 unitsOut, address recipient, uint256 deadline)
    Filled(uint256 indexed fromChain, uint256 indexed id, address token, address recipient, uint256 units)
    Refunded(address indexed to, address token, uint256 units)

The units come from who calls, and go back there when nobody has filled the deposit by its deadline.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cambist.plugin import Log, UnreadablePayloadError

from .words import address_of, address_word, contract_of, number_word, read_address, read_number, words_of

SELECTOR = bytes.fromhex("888d38c3")
"""The first bytes of Keccak-256 of ``deposit(address,address,uint256,uint256,address,uint256,uint256)``."""

DEPOSITED = bytes.fromhex("de49fad262045e4183203bba52520e5ed221c5f8aa1ccce413aca58855e1f368")
FILLED = bytes.fromhex("5e3c1c04be0cfa9699422bd0917306be9da196c38ef4e072f3144012fd61aad9")
REFUNDED = bytes.fromhex("ec1e5ed733e00f1a00915d56caef57b4f52312dde4f9b3165f213319a0da156b")
"""Keccak-256 of the logs' names and types, which is the first topic of each."""


class Deposit(Struct, frozen=True, kw_only=True):
    """What a call says, in the order in which it says it. A contract that is None is native coin."""

    sells: str | None
    buys: str | None
    units: int
    units_out: int
    recipient: str
    to_chain: int
    deadline: int


class Deposited(Struct, frozen=True, kw_only=True):
    """What a deposit's log says: the same, with its number and who has given it."""

    deposit_id: int
    sender: str
    deposit: Deposit


class Filled(Struct, frozen=True, kw_only=True):
    """What a fill's log says."""

    from_chain: int
    deposit_id: int
    contract: str | None
    recipient: str
    units: int


class Refunded(Struct, frozen=True, kw_only=True):
    """What a refund's log says. It may be for several deposits, and names none."""

    recipient: str
    contract: str | None
    units: int


def write(deposit: Deposit) -> bytes:
    """Return the bytes of the call."""
    return SELECTOR + b"".join(
        (
            *_first_words(deposit),
            address_word(deposit.recipient),
            number_word(deposit.to_chain),
            number_word(deposit.deadline),
        )
    )


def read(data: bytes) -> Deposit:
    """Return what a call says. Raises UnreadablePayloadError for all that ``write`` does not write."""
    if not data.startswith(SELECTOR):
        raise UnreadablePayloadError("this is no call of deposit()")
    deposit = _deposit(words_of(data.removeprefix(SELECTOR), 7))
    if write(deposit) != data:
        raise UnreadablePayloadError("the call is not written in the one way")
    return deposit


def write_deposited(said: Deposited) -> tuple[tuple[bytes, ...], bytes]:
    """Return the topics and the data of a deposit's log."""
    deposit = said.deposit
    topics = (DEPOSITED, number_word(said.deposit_id), number_word(deposit.to_chain), address_word(said.sender))
    data = (*_first_words(deposit), address_word(deposit.recipient), number_word(deposit.deadline))
    return topics, b"".join(data)


def read_deposited(log: Log) -> Deposited | None:
    """Return what a log says of a deposit; None for another log. Raises UnreadablePayloadError."""
    if len(log.topics) != 4 or log.topics[0] != DEPOSITED:
        return None
    _, deposit_id, to_chain, sender = log.topics
    *words, deadline = words_of(log.data, 6)
    deposit = _deposit([*words, to_chain, deadline])
    return Deposited(deposit_id=read_number(deposit_id), sender=read_address(sender), deposit=deposit)


def fill_topics(from_chain: int, deposit_id: int) -> tuple[bytes, ...]:
    """Return the topics that the fill of this deposit has, and no other log."""
    return (FILLED, number_word(from_chain), number_word(deposit_id))


def write_filled(said: Filled) -> tuple[tuple[bytes, ...], bytes]:
    """Return the topics and the data of a fill's log."""
    data = (address_word(address_of(said.contract)), address_word(said.recipient), number_word(said.units))
    return fill_topics(said.from_chain, said.deposit_id), b"".join(data)


def read_filled(log: Log) -> Filled | None:
    """Return what a log says of a fill; None for another log. Raises UnreadablePayloadError."""
    if len(log.topics) != 3 or log.topics[0] != FILLED:
        return None
    contract, recipient, units = words_of(log.data, 3)
    return Filled(
        from_chain=read_number(log.topics[1]),
        deposit_id=read_number(log.topics[2]),
        contract=contract_of(read_address(contract)),
        recipient=read_address(recipient),
        units=read_number(units),
    )


def refund_topics(recipient: str) -> tuple[bytes, ...]:
    """Return the topics that refunds to this address have, and no other log."""
    return (REFUNDED, address_word(recipient))


def write_refunded(said: Refunded) -> tuple[tuple[bytes, ...], bytes]:
    """Return the topics and the data of a refund's log."""
    data = (address_word(address_of(said.contract)), number_word(said.units))
    return refund_topics(said.recipient), b"".join(data)


def read_refunded(log: Log) -> Refunded | None:
    """Return what a log says of a refund; None for another log. Raises UnreadablePayloadError."""
    if len(log.topics) != 2 or log.topics[0] != REFUNDED:
        return None
    contract, units = words_of(log.data, 2)
    return Refunded(
        recipient=read_address(log.topics[1]),
        contract=contract_of(read_address(contract)),
        units=read_number(units),
    )


def _first_words(deposit: Deposit) -> Sequence[bytes]:
    """Return what call and log begin with."""
    contracts = (address_word(address_of(contract)) for contract in (deposit.sells, deposit.buys))
    return (*contracts, number_word(deposit.units), number_word(deposit.units_out))


def _deposit(words: Sequence[bytes]) -> Deposit:
    sells, buys, units, units_out, recipient, to_chain, deadline = words
    return Deposit(
        sells=contract_of(read_address(sells)),
        buys=contract_of(read_address(buys)),
        units=read_number(units),
        units_out=read_number(units_out),
        recipient=read_address(recipient),
        to_chain=read_number(to_chain),
        deadline=read_number(deadline),
    )

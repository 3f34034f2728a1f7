"""What the two chains show of a deposit: the log that it left where it was made, its fill, and what is paid back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cambist.plugin import (
    BridgeDeposit,
    BridgeFill,
    ChainInfo,
    ExchangeRefusedError,
    FoundLog,
    Log,
    LogQuery,
    Receipt,
    Units,
)

from .abi import CLAIMED_TOPIC, DEPOSITED_TOPIC, FILLED_TOPIC, REFUNDED_TOPIC, TRANSFER_TOPIC
from .addresses import from_word, same
from .codec import WORD, Claimed, Deposited, Filled, Refunded, UndecodableError, codec
from .deployments import Deployment, Deployments
from .reader import destination_of

NO_MESSAGE: Final = bytes(32)

SLOW_FILL: Final = 2
"""Of the kinds of fills, the one that the SpokePool pays itself."""


class Events:
    """Reads the logs of the SpokePools. Pure."""

    def __init__(self, deployments: Deployments) -> None:
        self._deployments = deployments

    def deposit(self, chain: ChainInfo, receipt: Receipt, chains: Mapping[str, ChainInfo]) -> BridgeDeposit | None:
        """Return the one deposit of a receipt, or None: where there is none, several, or one that is none of ours."""
        here = self._deployments.of(chain)
        if here is None or not receipt.succeeded:
            return None
        told = [_deposited(log) for log in receipt.logs if _is(log, here.spoke_pool, DEPOSITED_TOPIC)]
        if len(told) != 1 or told[0] is None or told[0].message:
            return None
        return self._deposit(chain, receipt.tx_id, told[0], chains)

    def _deposit(
        self, chain: ChainInfo, tx_id: str, told: Deposited, chains: Mapping[str, ChainInfo]
    ) -> BridgeDeposit | None:
        destination = destination_of(chain, told.destination_chain_id, chains)
        there = None if destination is None else self._deployments.of(destination)
        contract, recipient = from_word(told.output_token), from_word(told.recipient)
        given, depositor = from_word(told.input_token), from_word(told.depositor)
        if destination is None or there is None or contract is None or recipient is None:
            return None
        if given is None or depositor is None:
            return None
        return BridgeDeposit(
            deposit_id=str(told.deposit_id),
            tx_id=tx_id,
            units=Units(told.input_amount),
            chain=destination.id,
            contract=None if same(contract, there.wrapped_native) else contract,
            units_out=Units(told.output_amount),
            recipient=recipient,
            refund_to=depositor,
            refund_contract=given,
            fill_deadline=told.fill_deadline,
        )

    def fill_query(
        self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, first: int, last: int
    ) -> LogQuery:
        """Return what finds the fills of a deposit, by the two numbers that are its name everywhere."""
        there = self._deployments.of(chain)
        if there is None or origin.chain_id_num is None:
            raise ExchangeRefusedError(f"Across is not known on {chain.name}", reason="unsupported")
        topics = (FILLED_TOPIC, _word(origin.chain_id_num), _word(int(deposit.deposit_id)))
        return LogQuery(address=there.spoke_pool, topics=topics, first=first, last=last)

    def fill(self, chain: ChainInfo, deposit: BridgeDeposit, origin: ChainInfo, found: FoundLog) -> BridgeFill | None:
        """Return the fill that a log tells of, where all that it says of the deposit is so.

        Anybody may fill something that only looks like the deposit, and has then given money away: only a log that
        agrees in everything, and has paid whom the deposit names, is this deposit's.
        """
        there = self._deployments.of(chain)
        if there is None or chain.id != deposit.chain or not _is(found.log, there.spoke_pool, FILLED_TOPIC):
            return None
        told = _filled(found.log)
        if told is None or told.origin_chain_id != origin.chain_id_num or str(told.deposit_id) != deposit.deposit_id:
            return None
        contract = there.wrapped_native if deposit.contract is None else deposit.contract
        numbers = (told.input_amount, told.output_amount, told.fill_deadline)
        addresses = (
            (told.input_token, deposit.refund_contract),
            (told.output_token, contract),
            (told.depositor, deposit.refund_to),
            (told.recipient, deposit.recipient),
            (told.updated_recipient, deposit.recipient),
        )
        if (
            numbers != (deposit.units, deposit.units_out, deposit.fill_deadline)
            or not all(same(from_word(word), address) for word, address in addresses)
            or {told.message_hash, told.updated_message_hash} != {NO_MESSAGE}
        ):
            return None
        return BridgeFill(deposit_id=deposit.deposit_id, tx_id=found.tx_id, units=Units(told.updated_output_amount))

    def refund_query(self, chain: ChainInfo, deposit: BridgeDeposit, first: int, last: int) -> LogQuery:
        """Return what finds the transfers of the token from the SpokePool to the depositor."""
        here = self._deployments.of(chain)
        if here is None or deposit.refund_contract is None:
            raise ExchangeRefusedError(f"Across pays nothing of this back on {chain.name}", reason="unsupported")
        topics = (TRANSFER_TOPIC, _address_word(here.spoke_pool), _address_word(deposit.refund_to))
        return LogQuery(address=deposit.refund_contract, topics=topics, first=first, last=last)

    def refund(self, chain: ChainInfo, deposit: BridgeDeposit, receipt: Receipt) -> Units | None:
        """Return what the SpokePool's bundles say that they paid to the depositor, where just that has arrived.

        A transfer may be refused by the token, which then left none: the depositor claims that later, which is a
        refund as well. And the SpokePool also transfers where it fills by itself, and where somebody else has their
        claim sent here. Anybody can have it do all of that in one transaction, so these are told apart, by their own
        logs; with any other transfer beside it, a sum is nobody's.
        """
        here, token, whose = self._deployments.of(chain), deposit.refund_contract, deposit.refund_to
        if here is None or token is None or not receipt.succeeded:
            return None
        query = self.refund_query(chain, deposit, 0, 0)
        came = [log for log in receipt.logs if same(log.address, token) and log.topics == query.topics]
        told = [_refunded(log) for log in receipt.logs if _is(log, here.spoke_pool, REFUNDED_TOPIC)]
        owed = 0
        for leaf in told:
            if leaf is None or leaf.chain_id != chain.chain_id_num:
                return None
            if same(leaf.token, token):
                pairs = zip(leaf.amounts, leaf.addresses, strict=True)
                owed += sum(units for units, address in pairs if same(address, whose))
        claimed, given = self._claimed(here, deposit, receipt)
        owed += claimed
        if not owed or any(len(log.data) != WORD for log in came):
            return None
        rest = sum(int.from_bytes(log.data, "big") for log in came) - self._filled_slowly(here, deposit, receipt)
        return Units(owed) if owed == rest - given else None

    def _claimed(self, here: Deployment, deposit: BridgeDeposit, receipt: Receipt) -> tuple[int, int]:
        """Return what of refunds that the token had refused is sent to the depositor: of its own, and of others'."""
        told = [_claimed(log) for log in receipt.logs if _is(log, here.spoke_pool, CLAIMED_TOPIC)]
        own = others = 0
        for claim in told:
            if claim is None or not same(from_word(claim.token), deposit.refund_contract):
                continue
            if not same(from_word(claim.recipient), deposit.refund_to):
                continue
            if same(claim.caller, deposit.refund_to):
                own += claim.amount
            else:
                others += claim.amount
        return own, others

    def _filled_slowly(self, here: Deployment, deposit: BridgeDeposit, receipt: Receipt) -> int:
        """Return what a receipt's slow fills transferred of the deposit's token to its depositor. Coin is unwrapped."""
        if same(deposit.refund_contract, here.wrapped_native):
            return 0
        told = [_filled(log) for log in receipt.logs if _is(log, here.spoke_pool, FILLED_TOPIC)]
        return sum(
            fill.updated_output_amount
            for fill in told
            if fill is not None
            and fill.fill_type == SLOW_FILL
            and same(from_word(fill.output_token), deposit.refund_contract)
            and same(from_word(fill.updated_recipient), deposit.refund_to)
        )


def _is(log: Log, address: str, topic: bytes) -> bool:
    return same(log.address, address) and log.topics[:1] == (topic,)


def _deposited(log: Log) -> Deposited | None:
    try:
        return codec().read_deposited(log)
    except UndecodableError:
        return None


def _filled(log: Log) -> Filled | None:
    try:
        return codec().read_filled(log)
    except UndecodableError:
        return None


def _refunded(log: Log) -> Refunded | None:
    try:
        return codec().read_refunded(log)
    except UndecodableError:
        return None


def _claimed(log: Log) -> Claimed | None:
    try:
        return codec().read_claimed(log)
    except UndecodableError:
        return None


def _address_word(address: str) -> bytes:
    return _word(int(address, 16))


def _word(number: int) -> bytes:
    return number.to_bytes(WORD, "big")

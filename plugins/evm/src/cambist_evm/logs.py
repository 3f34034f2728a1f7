"""Logs as nodes tell them: what makes one, and what makes those of a receipt whole. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cambist.plugin import InconsistentChainError, Log
from cambist_chainkit.eip55 import ADDRESS, spell

from .bloom import NO_LOGS, UNTOLD, bloom_of, told_bloom
from .quantities import is_word, quantity
from .wire import RpcFullReceipt, RpcLog, SimulatedLog

TOPICS_MAX: Final = 4
_BYTES: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)


def log_of(log: RpcLog | SimulatedLog, ordinal: int) -> Log:
    """Return a log that is the so many-th of its transaction. Raises InconsistentChainError where it is none."""
    words = len(log.topics) <= TOPICS_MAX and all(map(is_word, log.topics))
    if ADDRESS.fullmatch(log.address) is None or not words or _BYTES.fullmatch(log.data) is None:
        raise InconsistentChainError("a log has an address, a topic or data that is none")
    return Log(
        address=spell(log.address[2:].lower()),
        topics=tuple(bytes.fromhex(topic[2:]) for topic in log.topics),
        data=bytes.fromhex(log.data[2:]),
        position=f"log:{ordinal}",
    )


def logs_of(receipt: RpcFullReceipt) -> Sequence[Log]:
    """Return all logs of a receipt, in order. Raises InconsistentChainError where they are not whole and its own."""
    logs = [log_of(log, ordinal) for ordinal, log in enumerate(receipt.logs)]
    tx_id = receipt.transaction_hash
    if any(log.removed or log.transaction_hash.lower() != tx_id.lower() for log in receipt.logs):
        raise InconsistentChainError(f"a log of {tx_id} is of another transaction, or gone by a reorg")
    numbers = [quantity(log.log_index) for log in receipt.logs]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise InconsistentChainError(f"logs of {tx_id} are missing, doubled or not numbered")
    _check_bloom(receipt)
    return logs


def _check_bloom(receipt: RpcFullReceipt) -> None:
    """Raise InconsistentChainError where the receipt's filter is of other logs than it has."""
    if receipt.logs_bloom in (UNTOLD if receipt.logs else NO_LOGS):
        return
    try:
        whole = bloom_of(receipt.logs) == told_bloom(receipt.logs_bloom)
    except ValueError:
        whole = False
    if not whole:
        raise InconsistentChainError(f"the receipt of {receipt.transaction_hash} tells of other logs than it has")

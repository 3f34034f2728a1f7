"""Has a provider build the call of an exchange, and compares what it does with what the merchant was promised.

Whoever builds is not believed: the same pure reader that the signer uses reads the call, and one that does anything
else than was asked for is thrown away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import structlog
from msgspec import Struct

from cambist.deadlines import within
from cambist.domain.exchanges import AWAY_MAX_S, BPS, Kind
from cambist.domain.money import UNITS_MAX
from cambist.plugin import (
    Call,
    CallReader,
    ChainInfo,
    ChainToken,
    ExchangeEffects,
    ExchangeRefusedError,
    ExchangeRequest,
    Movement,
    ProviderUnavailableError,
    UnreadablePayloadError,
)
from cambist.plugin.text import printable
from cambist.signer.exchanges import is_own_call

from .rows import ExchangeRow
from .worker import ExchangeWorker

log = structlog.get_logger(__name__)

CALL_BYTES_MAX = 64_000
REASON_CHARS_MAX = 200


class Readers(Struct, frozen=True, kw_only=True):
    """Who reads calls, and the chains that they may name."""

    readers: Sequence[CallReader]
    infos: Mapping[str, ChainInfo]

    def read(self, chain: ChainInfo, sender: str, call: Call) -> ExchangeEffects:
        """Return what a call does, told by the one reader whose contract it calls. Raises whatever a plugin raises.

        One that fails on a call that is none of its own is passed over, as the signer does. UnreadablePayloadError:
        nobody reads it, or it lets somebody else take tokens.
        """
        if not 0 < len(call.data) <= CALL_BYTES_MAX:
            raise UnreadablePayloadError("it is empty, or too long")
        failed: Exception | None = None
        for reader in self.readers:
            try:
                effects = reader.read(chain, sender, call, self.infos)
            except Exception as error:  # also one that it can read nothing of, said of a stranger's call
                failed = error
                if is_own_call(reader, chain, call):
                    break
                log.exception("reader_failed", chain=chain.id, reader=type(reader).__module__)
                continue
            if effects is None:
                continue
            if effects.spender is not None and effects.spender not in reader.spenders(chain):
                raise UnreadablePayloadError(f"{effects.spender} may take no tokens")
            return effects
        if failed is not None:
            raise failed
        raise UnreadablePayloadError(f"it calls {call.to_address}, which nobody reads")

    def is_call_of(self, row: ExchangeRow, call: Call) -> bool | None:
        """Whether this is the call of an exchange; None where that cannot be told.

        One that gives something else, or to somebody else, never was: whatever was built for it was compared with the
        same terms, which never change. One that differs only in what it brings, and where, may be: by then a chain had
        another name, a token another contract, or the reader another version.
        """
        chain = self.infos.get(row.source_chain)
        if chain is None:
            return None
        try:
            effects = self.read(chain, row.sender, call)
            problem = difference(row, call, effects)
        except Exception as error:  # noqa: BLE001  whatever a plugin trips over, it has not read the call
            log.warning("call_not_read", txn_id=row.txn_id, error=f"{type(error).__name__}: {error}")
            return None
        if problem is None:
            return True
        log.warning("call_not_recognized", txn_id=row.txn_id, difference=problem)
        gives_the_same = _given_difference(row, call, effects) is None and effects.recipient == row.recipient
        return None if gives_the_same else False


class Built(Struct, frozen=True):
    """A call, and what it does."""

    call: Call
    effects: ExchangeEffects


class NotNow(Exception):  # noqa: N818  nothing is wrong with the exchange
    """No call can be had now: it is asked for again, not before ``retry_after_s``."""

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class Refused(Exception):  # noqa: N818  likewise
    """The provider or the chain refuses what was to be had a moment ago: asked again a few times, then it fails so."""


class Never(Refused):
    """No call that may be sent will ever be had: the exchange fails with this sentence."""


async def build(worker: ExchangeWorker, row: ExchangeRow, fee_recipient: str | None) -> Built:
    """Return a call that does what was asked for. Raises NotNow, Refused, Never."""
    provider = worker.provider(row)
    if provider is None:
        raise NotNow(f"{row.provider} is not enabled")
    request = ExchangeRequest(
        sells=ChainToken(chain=worker.infos[row.source_chain], token=row.source),
        buys=ChainToken(chain=worker.infos[row.dest_chain], token=row.dest),
        units=row.given,
        sender=row.sender,
        recipient=row.recipient,
        slippage_bps=row.slippage_bps,
        fee_bps=row.fee_bps,
        fee_recipient=fee_recipient if row.fee_bps else None,
    )
    try:
        call = await within(worker.build_timeout_s, provider.build(request, row.units_min), of=provider)
    except ExchangeRefusedError as error:
        sentence = f"{row.provider} will not do it: {printable(str(error))[:REASON_CHARS_MAX]}"
        if error.reason in {"price_moved", "no_liquidity"}:
            raise NotNow(sentence) from error
        if error.reason == "unsupported":
            raise Never(sentence) from error
        raise Refused(sentence) from error
    except ProviderUnavailableError as error:
        raise NotNow(printable(str(error))[:REASON_CHARS_MAX], error.retry_after) from error
    except TimeoutError as error:
        raise NotNow(f"{row.provider} did not answer in time") from error
    except Exception as error:  # a plugin may raise anything, and only it is affected
        log.exception("exchange_provider_broken", provider=row.provider, txn_id=row.txn_id)
        raise NotNow(f"{row.provider} failed: {type(error).__name__}") from error
    effects = _read(worker, row, call)
    problem = difference(row, call, effects) or _timing(worker, row, effects)
    if problem is not None:
        worker.alert("call_differs", row, difference=problem)
        raise NotNow(f"{row.provider} built something else than was asked for: {problem}")
    return Built(call, effects)


def _read(worker: ExchangeWorker, row: ExchangeRow, call: Call) -> ExchangeEffects:
    """Return what the call does, told by the one reader whose contract it calls. Raises NotNow."""
    chain = worker.infos[row.source_chain]
    try:
        return Readers(readers=worker.readers, infos=worker.infos).read(chain, row.sender, call)
    except Exception as error:  # whatever a plugin trips over, it has not read the call
        worker.alert("call_not_read", row, error=str(error))
        raise NotNow(f"what {row.provider} built cannot be read") from error


def _timing(worker: ExchangeWorker, row: ExchangeRow, read: ExchangeEffects) -> str | None:
    """Return what is wrong with until when a bridge's deposit is away."""
    if row.kind is Kind.SWAP or read.valid_until is None:
        return None
    left_s = read.valid_until - worker.clock.now().timestamp()
    return None if left_s <= AWAY_MAX_S else f"the deposit would be away for {left_s:.0f} s"


def difference(row: ExchangeRow, call: Call, read: ExchangeEffects) -> str | None:
    """Return in what a call differs from what was asked for, None where it is just that."""
    is_native = row.source_contract is None
    given = _given_difference(row, call, read)
    checks = (
        (given is None, given),
        ((read.spender is None) is is_native, "the spender is not who takes the token"),
        (read.chain == row.dest_chain, f"the output is on {read.chain}"),
        (read.bought_contract == row.dest_contract, "it gives another token"),
        (row.units_min <= read.bought_min <= UNITS_MAX, f"it gives {read.bought_min}, and {row.units_min} is promised"),
        (read.recipient == row.recipient, f"{read.recipient} gets the output"),
        (read.refund_to in {None, row.sender}, f"{read.refund_to} gets back what nobody pays out"),
        (row.kind is Kind.SWAP or (read.refund_to is not None and read.valid_until is not None), "it never comes back"),
    )
    return next((problem for holds, problem in checks if not holds), None)


def _given_difference(row: ExchangeRow, call: Call, read: ExchangeEffects) -> str | None:
    """Return in what that which a call takes differs from what is given, None where it is just that."""
    value = row.given if row.source_contract is None else 0
    checks = (
        (read.sold_contract == row.source_contract, "it takes another token"),
        (read.sold == row.given, f"it takes {read.sold} instead of {row.given}"),
        (call.value == value, f"{call.value} of native coin go along"),
    )
    return next((problem for holds, problem in checks if not holds), None)


def fee_difference(row: ExchangeRow, moved: Sequence[Movement], recipient: str | None) -> str | None:
    """Return in what the platform's fee, as a trial moves it, differs from what was told; None where it does not.

    A provider takes it out of what is given or of what comes out: together no more than the share that was told. Less
    is no fault: a provider may keep a part of it. Of native coin a trial tells nothing.
    """
    if recipient == row.recipient:
        return None
    source, dest = row.source_contract, row.dest_contract
    fees: Counter[str | None] = Counter()
    for one in moved:
        if one.recipient == recipient and one.amount:
            fees[one.contract] += one.amount
    if fees.keys() - {source, dest}:
        return "it would pay the platform's fee in a token of which nothing was told"
    if row.fee_bps and not fees and source is not None and dest is not None:
        return "it would leave the platform's fee out"
    came = sum(one.amount for one in moved if (one.recipient, one.contract) == (row.recipient, dest))
    share = Fraction(fees[source], row.given)
    if dest != source and fees[dest]:
        share += Fraction(fees[dest], came + fees[dest])
    if share > Fraction(row.fee_bps, BPS):
        paid = f"{fees[source]} of what is given and {fees[dest] if dest != source else 0} of what comes out"
        return f"it would pay the platform {paid}: more than the {row.fee_bps} bps that were told"
    return None

"""What Across's servers answer, from what the two chains show: the shapes are those of its older interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from .deposits import SLOW_FILL, Deposit, FillStatus
from .faults import STATUS_PATH
from .fees import MIN_DEPOSIT_GAS, Fees, converted, fees, gas_fee, share
from .refunds import Refunds
from .routes import RefusedError, Route, check, find_route, refusal, rows
from .side import ZERO, Side, Token

QUOTE_AGE_S: Final = 60
"""How old a quote is at once, so that no chain takes it for one of its future."""

FILL_ESTIMATE_S: Final = 2
FILL_GAS: Final = 137_265
LIMITS_UNITS: Final = "100"
"""For how much the fees in ``/limits`` are where no amount is asked about."""

Answer = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Answers:
    """Answers by path. Raises RefusedError. ``now`` is the server's time, ``fill_s`` what a quote's deposit has."""

    def __init__(self, sides: Sequence[Side], refunds: Refunds, now: Callable[[], float], fill_s: int) -> None:
        self._sides = sides
        self._refunds = refunds
        self._now = now
        self.fill_s = fill_s
        self.paths: Mapping[str, Callable[[Mapping[str, str]], Awaitable[Answer]]] = {
            "suggested-fees": self.suggested_fees,
            "limits": self.limits,
            "available-routes": self.available_routes,
            STATUS_PATH: self.deposit_status,
        }

    async def suggested_fees(self, query: Mapping[str, str]) -> Answer:
        check(query, "amount", "destinationChainId")
        route = find_route(self._sides, query)
        units, now = int(query["amount"]), int(self._now())
        quoted_at = int(query.get("timestamp", now - QUOTE_AGE_S))
        if quoted_at > now:
            raise refusal("INVALID_PARAM", "Provided timestamp can not be in the future", "timestamp")
        limits = await _bounds(route)
        if units > int(limits["maxDeposit"]):
            bound = _written(int(limits["maxDeposit"]), route.taken)
            raise refusal("AMOUNT_TOO_HIGH", f"Amount exceeds max. deposit limit: {bound}")
        is_too_low = units < int(limits["minDeposit"])
        if is_too_low and query.get("skipAmountLimit") != "true":
            raise refusal("AMOUNT_TOO_LOW", "Sent amount is too low relative to fees")
        kept = fees(route.taken, units)
        return {
            "estimatedFillTimeSec": FILL_ESTIMATE_S,
            **_fees_of_old(kept, units),
            "timestamp": str(quoted_at),
            "isAmountTooLow": is_too_low,
            "quoteBlock": str(int(await route.origin.node.call("eth_blockNumber"), 16)),
            "exclusiveRelayer": ZERO,
            "exclusivityDeadline": 0,
            "spokePoolAddress": route.origin.pool,
            "destinationSpokePoolAddress": route.destination.pool,
            "totalRelayFee": _fee(kept.total, units),
            "relayerCapitalFee": _fee(kept.capital, units),
            "relayerGasFee": _fee(kept.gas, units),
            "lpFee": _fee(kept.lp, units),
            "limits": limits,
            "fillDeadline": str(quoted_at + self.fill_s),
            "outputAmount": str(max(0, converted(units - kept.total, route.taken, route.given))),
            "inputToken": _token(route.taken, route.origin),
            "outputToken": _token(route.given, route.destination),
        }

    async def limits(self, query: Mapping[str, str]) -> Answer:
        check(query, "destinationChainId")
        route = find_route(self._sides, query)
        units = int(query.get("amount", LIMITS_UNITS))
        kept, bounds = fees(route.taken, units), await _bounds(route)
        return {
            **bounds,
            "relayerFeeDetails": {
                "relayFeeTotal": str(kept.relay),
                "relayFeePercent": share(kept.relay, units),
                "gasFeeTotal": str(kept.gas),
                "gasFeePercent": share(kept.gas, units),
                "capitalFeeTotal": str(kept.capital),
                "capitalFeePercent": share(kept.capital, units),
            },
            "gasFeeDetails": {
                "nativeGasCost": str(FILL_GAS),
                "opStackL1GasCost": "0",
                "gasPrice": str(int(await route.destination.node.call("eth_gasPrice"), 16)),
                "tokenGasCost": str(kept.gas),
            },
            "reserves": {"liquidReserves": bounds["maxDeposit"], "utilizedReserves": "0"},
        }

    async def available_routes(self, query: Mapping[str, str]) -> Answer:
        names = {
            "originChainId", "destinationChainId", "originToken", "destinationToken", "originTokenSymbol",
            "destinationTokenSymbol",
        }  # fmt: skip
        asked = {name: value.lower() for name, value in query.items() if name in names}
        return [row for row in rows(self._sides) if all(str(row[name]).lower() == asked[name] for name in asked)]

    async def deposit_status(self, query: Mapping[str, str]) -> Answer:
        found, index = await self._asked_deposits(query), query.get("index", "0")
        if not found:
            raise _not_so("DepositNotFoundException", "Deposit not found given the provided constraints", found=False)
        if not index.isdecimal() or int(index) >= len(found):
            message = f"Index {index} out of range. Index must be between 0 and {len(found) - 1}"
            raise _not_so("IndexParamOutOfRangeException", message)
        deposit = found[int(index)]
        status, fill, refund = await self._became(deposit)
        return {
            "status": status,
            "originChainId": deposit.relay.origin,
            "depositId": str(deposit.relay.number),
            "depositTxHash": deposit.tx_id,
            "depositTxnRef": deposit.tx_id,
            "fillTx": fill,
            "fillTxnRef": fill,
            "destinationChainId": deposit.destination,
            "depositRefundTxHash": refund,
            "depositRefundTxnRef": refund,
            "actionsSucceeded": None,
            "pagination": {"currentIndex": int(index), "maxIndex": len(found) - 1},
        }

    async def _asked_deposits(self, query: Mapping[str, str]) -> Sequence[Deposit]:
        tx_id = query.get("depositTxnRef") or query.get("depositTxHash")
        origin, number = query.get("originChainId"), query.get("depositId")
        if tx_id is None and (origin is None or number is None):
            raise _not_so("IncorrectQueryParamsException", "Incorrect query params provided")
        if tx_id is None and (not str(origin).isdecimal() or not str(number).isdecimal()):
            raise refusal("INVALID_PARAM", "Invalid parameter at path 'depositId'. Expected type 'union'", "depositId")
        deposits = [one for side in self._sides for one in await side.deposits()]
        if tx_id is not None:
            return [one for one in deposits if one.tx_id == tx_id.lower()]
        return [one for one in deposits if (str(one.relay.origin), str(one.relay.number)) == (origin, number)]

    async def _became(self, deposit: Deposit) -> tuple[str, str | None, str | None]:
        """Return the state of a deposit, the transaction that filled it, and the one that paid it back."""
        there = next((side for side in self._sides if side.chain_id == deposit.destination), None)
        if there is not None and (fill := await there.find_fill(deposit)) is not None:
            tx_id, kind = fill
            return "slowFilled" if kind == SLOW_FILL else "filled", tx_id, None
        refund = await self._refunds.of(deposit)
        if refund is not None:
            return "refunded", None, refund
        if await self._refunds.is_expired(deposit):
            return "expired", None, None
        asked = there is not None and (await there.fill_statuses([deposit])) == [FillStatus.SLOW_FILL_REQUESTED]
        return "slowFillRequested" if asked else "pending", None, None


async def _bounds(route: Route) -> dict[str, str]:
    most = str(await route.max_deposit())
    return {
        "minDeposit": str(min(int(most), MIN_DEPOSIT_GAS * gas_fee(route.taken))),
        "maxDeposit": most,
        "maxDepositInstant": most,
        "maxDepositShortDelay": most,
        "recommendedDepositInstant": most,
    }


def _fees_of_old(kept: Fees, units: int) -> dict[str, str]:
    """Return what is told twice, for who knows only the older names."""
    return {
        "capitalFeePct": share(kept.capital, units),
        "capitalFeeTotal": str(kept.capital),
        "relayGasFeePct": share(kept.gas, units),
        "relayGasFeeTotal": str(kept.gas),
        "relayFeePct": share(kept.total, units),
        "relayFeeTotal": str(kept.total),
        "lpFeePct": "0",
    }


def _fee(part: int, units: int) -> dict[str, str]:
    return {"pct": share(part, units), "total": str(part)}


def _token(token: Token, side: Side) -> dict[str, Any]:
    return {"address": token.address, "symbol": token.symbol, "decimals": token.decimals, "chainId": side.chain_id}


def _written(units: int, token: Token) -> str:
    whole, rest = divmod(units, 10**token.decimals)
    return f"{whole}.{rest:0{token.decimals}} {token.symbol}"


def _not_so(error: str, message: str, *, found: bool = True) -> RefusedError:
    """Return a refusal of the server that follows deposits, which speaks otherwise than the one that quotes."""
    return RefusedError({"error": error, "message": message}, HTTPStatus.BAD_REQUEST if found else HTTPStatus.NOT_FOUND)

"""What is never planned, whatever a node says of it: what would be lost, and what could not be signed. Pure."""

from __future__ import annotations

from cambist.plugin import ChainInfo, Intent

from .decode import ZERO_ADDRESS


def refusal_of(info: ChainInfo, intent: Intent) -> str | None:
    """Return why an intent must not be, or None."""
    if intent.action == "call":
        return _of_call(info, intent)
    if intent.action not in {"transfer", "nothing", "approve"}:
        return f"nothing is staked or lent on {info.id}"
    if intent.to_address == ZERO_ADDRESS:
        return "nobody owns the zero address"
    symbol = _symbol_at(info, intent.to_address)
    if intent.action == "approve":
        if intent.token.is_native:
            return f"nobody can be allowed to take {intent.token.symbol}, which is no contract's"
        return symbol and f"{intent.to_address} is the contract of {symbol}, which takes no tokens"
    return symbol and f"{intent.to_address} is the contract of {symbol}: what is sent there is lost"


def _of_call(info: ChainInfo, intent: Intent) -> str | None:
    """Return why a call must not be: the signer would not read it, or it takes along what nobody counts."""
    call = intent.call
    if call is None or not call.data:
        return "nothing is said of what to call"
    if call.to_address == ZERO_ADDRESS:
        return "nobody owns the zero address"
    if (symbol := _symbol_at(info, call.to_address)) is not None:
        return f"{call.to_address} is the contract of {symbol}, of which only transfers and approvals are signed"
    if call.to_address == info.sweeper:
        return f"{call.to_address} is the sweeper, which only sweeps"
    given = intent.amount if intent.token.is_native else 0
    if call.value != given:
        return f"the call takes {call.value} of the native coin along, and the intent gives {given}"
    return None


def _symbol_at(info: ChainInfo, address: str) -> str | None:
    return next((token.symbol for token in info.tokens if token.contract == address), None)

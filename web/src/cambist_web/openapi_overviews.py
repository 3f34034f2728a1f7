"""What the API's description says of overviews and plugins: errors, sentences and values of their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .openapi_values import CONTRACT, MOMENT

OVERVIEW_ERRORS: Sequence[tuple[str, str, Mapping[int, Sequence[str]]]] = (
    (r"^/api/(admin|dashboard)/overview$", "get", {503: ["OVERVIEW_TOO_SLOW"]}),
    (
        r"^/api/dashboard/overview$",
        "get",
        {403: ["PROJECT_NOT_OWNED", "PROJECT_NOT_OPEN"], 404: ["PROJECT_NOT_FOUND"]},
    ),
)

_ANSWERS = ("MerchantOverview", "GatewayOverview")
_COINS = ("CoinTurnover", "CoinBalance", "HeldCoin", "CoinFee")
_COUNTED = ("Turnover", "TurnoverPart", "CoinTurnover")
_STATES = ("pending", "detected", "confirming", "paid", "overpaid", "underpaid", "expired", "failed", "refunded")

OVERVIEW_WORDS: Mapping[str, str] = {
    **{f"StateCounts.{state}": f"How many are `{state}` now." for state in _STATES},
    **{f"{name}.currency": "The currency of every `fiat`." for name in _ANSWERS},
    **{f"{name}.mode": "Whether it is about live money." for name in _ANSWERS},
    **{f"{name}.since": "When the first part of the series begins." for name in _ANSWERS},
    **{f"{name}.until": "When the last part of the series ends." for name in _ANSWERS},
    **{f"{name}.step": "What each part of the series is." for name in _ANSWERS},
    **{f"{name}.time_zone": "In which days and hours begin." for name in _ANSWERS},
    **{f"{name}.deposits": "How many confirmed deposits came in." for name in _COUNTED},
    **{f"{name}.fiat": "What it was worth, by the prices of its time." for name in _COUNTED},
    **{
        f"{name}.unpriced": "How many deposits are not in `fiat`: no price of their time is known." for name in _COUNTED
    },
    "Payments.made": "How many payments were made.",
    "Payments.open": "How many of them can still be paid, or are being paid.",
    "Payments.paid": "How many of them were paid in full.",
    "Payments.conversion_percent": "How many of a hundred that have ended were paid; null while none has.",
    "TurnoverPart.begins_at": "When the day or hour begins.",
    "CoinTurnover.amount": "What came in, in whole tokens.",
    "CoinTurnover.amounts": "The same for each part of the series, in its order.",
    "CoinTurnover.fiat": "What it was worth, by the prices of its time; null where none is known.",
    "CoinBalance.available": "What can be spent now, in tokens.",
    "CoinBalance.held": "What waits for a decision or for its payment to end, in tokens.",
    "CoinBalance.pending": "What is on its way out, in tokens.",
    "CoinBalance.receivable": "Below zero where a reorg took back what was spent.",
    "CoinBalance.fiat": "What all of it is worth now; null where no price is known.",
    "CoinBalance.price": "What one token costs now; null where nobody knows.",
    "Balances.fiat": "What all coins with a price are worth together.",
    "Balances.unpriced": "How many coins are not in `fiat`: nobody knows their price now.",
    "Held.fiat": "What merchants have of all coins with a price, together.",
    "Held.unpriced": "How many coins are not in `fiat`: nobody knows their price now.",
    "HeldCoin.merchants": "What merchants have, in tokens: to spend, on its way out, or held.",
    "HeldCoin.receivable": "Below zero: what merchants owe since a reorg took back what was spent.",
    "HeldCoin.on_addresses": "What one-time and permanent addresses hold.",
    "HeldCoin.in_wallets": "What merchants' main wallets hold.",
    "HeldCoin.between_chains": "What has left a chain by a bridge, and arrived on none yet.",
    "HeldCoin.gas": "What gas stations hold and have staked.",
    "HeldCoin.fiat": "What the merchants' part is worth now; null where no price is known.",
    "HeldCoin.price": "What one token costs now; null where nobody knows.",
    "CoinFee.amount": "The fees, in whole tokens.",
    "CoinFee.transactions": "For how many swaps, bridges or transactions.",
    "CoinFee.fiat": "What they were worth, by the prices of their time; null where none is known at all.",
    "CoinFee.unpriced": "For how many of these nobody knows a price of their time, so that `fiat` is without them.",
    "Fees.fiat": "What all with a price were worth together.",
    "Fees.unpriced": "How many transactions are not in `fiat`: no price of their time is known.",
    "PluginList.contract_version": "The version of the contract that this gateway has.",
    "PluginSetting.name": "Where it stands in the plugin's table.",
    "PluginSetting.value": "What it is set to; null where that may be secret.",
    "PluginView.name": "What its table in the operator's file is called.",
    "PluginView.state": "Whether it is enabled, and whether its chains fail.",
    "PluginView.distribution": "The package that brought it.",
    "PluginView.version": "The package's version.",
    "PluginView.contract_version": "The version of the contract that it was written for.",
    "PluginView.kinds": "What it teaches the gateway: `chain`, `price`, `swap`, `bridge`.",
    "PluginView.chains": "The chains that it brings.",
    "PluginView.problems": "What fails now, a sentence for each chain.",
}

OVERVIEW_VALUES: Mapping[str, Any] = {
    **{f"{name}.currency": "usd" for name in _ANSWERS},
    **{f"{name}.since": "2026-01-01T00:00:00.000Z" for name in _ANSWERS},
    **{f"{name}.until": "2026-02-01T00:00:00.000Z" for name in _ANSWERS},
    **{f"{name}.step": "day" for name in _ANSWERS},
    **{f"{name}.time_zone": "Europe/Berlin" for name in _ANSWERS},
    **{f"{name}.chain": "ethereum" for name in _COINS},
    **{f"{name}.token": "USDT" for name in _COINS},
    **{f"{name}.fiat": "79.99" for name in (*_COINS, "Turnover", "TurnoverPart", "Balances", "Held", "Fees")},
    **{f"{name}.unpriced": 0 for name in (*_COUNTED, "Balances", "Held", "Fees")},
    **{f"{name}.deposits": 1 for name in _COUNTED},
    "CoinFee.unpriced": 0,
    **{f"{name}.contract_address": CONTRACT for name in _COINS if name != "CoinFee"},
    **{f"{name}.decimals": 6 for name in _COINS if name != "CoinFee"},
    **{f"{name}.price": "0.9999" for name in ("CoinBalance", "HeldCoin")},
    **{f"StateCounts.{state}": int(state == "paid") for state in _STATES},
    "Payments.made": 1,
    "Payments.open": 0,
    "Payments.paid": 1,
    "Payments.conversion_percent": "100.00",
    "TurnoverPart.begins_at": MOMENT,
    "CoinTurnover.amount": "80",
    "CoinTurnover.amounts": ["80"],
    "CoinBalance.available": "80",
    "CoinBalance.held": "0",
    "CoinBalance.pending": "0",
    "CoinBalance.receivable": "0",
    "HeldCoin.merchants": "80",
    "HeldCoin.receivable": "0",
    "HeldCoin.on_addresses": "80",
    "HeldCoin.in_wallets": "0",
    "HeldCoin.between_chains": "0",
    "HeldCoin.gas": "0",
    "PluginList.contract_version": 1,
    "PluginSetting.name": "chains.ethereum.confirmations",
    "PluginSetting.value": "12",
    "PluginView.name": "evm",
    "PluginView.state": "loaded",
    "PluginView.distribution": "cambist-evm",
    "PluginView.version": "0.1.0",
    "PluginView.contract_version": 1,
    "PluginView.kinds": ["chain"],
    "PluginView.chains": ["ethereum"],
    "PluginView.problems": [],
    "CoinFee.amount": "0.5",
    "CoinFee.transactions": 1,
}

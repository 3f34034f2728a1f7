"""The operator's tokens beside the built-in ones, endpoints that are written down wrongly, and what contracts tell."""

from __future__ import annotations

from typing import Any

import pytest

from cambist.plugin import ConfigError, Token
from cambist_chainkit.contracts import bytes_of, read_text, token_problem
from cambist_chainkit.endpoints import check_endpoints
from cambist_chainkit.reverts import refusal_in
from cambist_chainkit.tokens import KnownToken, TokenConfig, merged_tokens

KNOWN = [
    KnownToken(symbol="USDT", contract="C1", decimals=6, label="Tether USD"),
    KnownToken(symbol="USDC", contract="C2", decimals=6, label="USD Coin", symbols_onchain=("USDC.e",)),
]
TOKEN = Token(symbol="USDT", contract="C1", decimals=6, label="Tether USD")


def merged(*own: dict[str, Any]) -> list[tuple[str, str, int, str]]:
    tokens = merged_tokens(
        KNOWN,
        [TokenConfig(**one) for one in own],
        native_symbol="COIN",
        normalized=lambda text: text.upper() if text[:1] in "cC" else None,
        not_tokens={"C0": "nobody's"},
        where="plugins.example",
    )
    return [(one.symbol, one.contract, one.decimals, one.token.label) for one in tokens]


def test_own_tokens_are_added_or_replace_the_one_of_their_symbol() -> None:
    """In the order of the list, under the normalized contract, with the symbol as a label where there is no other."""
    assert merged() == [("USDT", "C1", 6, "Tether USD"), ("USDC", "C2", 6, "USD Coin")]
    own = [{"symbol": "usdt", "contract": "c5", "decimals": 18}, {"symbol": "X", "contract": "C6", "decimals": 0}]
    assert merged(*own) == [
        ("USDT", "C5", 18, "USDT"), ("USDC", "C2", 6, "USD Coin"), ("X", "C6", 0, "X"),
    ]  # fmt: skip
    assert KNOWN[1].symbols == {"USDC", "USDC.e"}


@pytest.mark.parametrize(
    "own, said",
    [
        ([{"symbol": "CO IN", "contract": "C5"}], "is not 1 to 16"),
        ([{"symbol": "", "contract": "C5"}], "is not 1 to 16"),
        ([{"symbol": "coin", "contract": "C5"}], "native"),
        ([{"symbol": "X", "contract": "D5"}], "no address"),
        ([{"symbol": "X", "contract": "C0"}], "nobody's"),
        ([{"symbol": "X", "contract": "C1"}], "contract C1 is listed twice"),
        ([{"symbol": "X", "contract": "C5"}, {"symbol": "x", "contract": "C6"}], "symbol X is listed twice"),
    ],
)
def test_tokens_that_mean_nothing_are_refused(own: list[dict[str, Any]], said: str) -> None:
    """Naming the table that they stand in."""
    with pytest.raises(ConfigError, match=rf"plugins\.example\.tokens.*{said}"):
        merged(*({"decimals": 6, **one} for one in own))


@pytest.mark.parametrize(
    "urls, quorum, said",
    [
        (["https://a.example", "a.example"], 1, "number 2 is no http"),
        (["ftp://a.example"], 1, "number 1 is no http"),
        (["http://"], 1, "number 1 is no http"),
        (["http://[::1"], 1, "number 1 is no http"),
        (["http://a.example:0"], 1, "number 1 is no http"),
        (["http://a.example", "http://a.example"], 1, "twice"),
        (["http://a.example/key", "HTTP://A.example:80//key/?"], 1, "twice"),
        (["http://a.example"], 2, "quorum is 2, but there are only 1"),
    ],
)
def test_endpoints_that_mean_nothing_are_refused(urls: list[str], quorum: int, said: str) -> None:
    """By their place in the list, because an address may carry a key."""
    check_endpoints(["http://a.example/key", "https://[::1]:8545"], quorum=2, where="plugins.example")
    with pytest.raises(ConfigError, match=said) as caught:
        check_endpoints(urls, quorum=quorum, where="plugins.example")
    assert "a.example" not in str(caught.value)


@pytest.mark.parametrize(
    "decimals, symbol, said",
    [
        (6, b"USDT".ljust(32, b"\0"), None),
        (6, (32).to_bytes(32, "big") + (4).to_bytes(32, "big") + b"USDT", None),
        (18, b"USDT".ljust(32, b"\0"), "has 18 decimals"),
        (None, b"", "is no token contract"),
        (6, b"Tether".ljust(32, b"\0"), "calls itself 'Tether'"),
        (6, b"", "calls itself ''"),
        (6, (32).to_bytes(32, "big") + (10**9).to_bytes(32, "big") + b"x" * 10_000, "calls itself 'xxxx"),
    ],
)
def test_a_contract_that_is_not_what_the_registry_says_is_told(
    decimals: int | None, symbol: bytes, said: str | None
) -> None:
    """Its decimals first, since they make every amount wrong."""
    told = b"" if decimals is None else decimals.to_bytes(32, "big")
    problem = token_problem(TOKEN, told, symbol, frozenset({"USDT"}))
    assert (problem is None) if said is None else (said in str(problem))
    assert len(str(problem)) < 150


def test_texts_of_contracts_are_read_however_they_lie() -> None:
    """And whatever they hold."""
    assert read_text(b"MKR".ljust(32, b"\0")) == "MKR"
    assert read_text(b"") == ""
    assert read_text((32).to_bytes(32, "big") + (10**9).to_bytes(32, "big") + b"\xffA") == "\ufffdA"
    assert (bytes_of("0aff"), bytes_of("xy"), bytes_of("")) == (b"\x0a\xff", b"", b"")


@pytest.mark.parametrize(
    "output, said",
    [
        ("08c379a0" + f"{32:064x}{5:064x}" + b"paused".hex(), "pause"),
        ("08c379a0" + f"{32:064x}{10**9:064x}" + b"p".hex(), "p"),
        ("08c379a0xy", ""),
        ("4e487b71" + f"{0x11:064x}", "panic 0x11"),
        ("E450D38C" + "00" * 96, "error 0xe450d38c"),
        ("08c3", ""),
        ("", ""),
    ],
)
def test_what_a_contract_says_of_a_refusal_is_read(output: str, said: str) -> None:
    """Solidity's text, its panics, and errors of the contract's own."""
    assert refusal_in(output) == said

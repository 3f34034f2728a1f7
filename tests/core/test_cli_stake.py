"""``cambist stake``, as an operator types it."""

from __future__ import annotations

import pytest

from tests.support.command import run_command

STATION = "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"
CHAINS = """
[plugins.tron]
rpc_urls = ["http://127.0.0.1:1"]
[plugins.evm.chains.ethereum]
rpc_urls = ["http://127.0.0.1:1"]
"""
TRX = 10**6


@pytest.fixture
def cambist(tmp_path, database_url):
    (tmp_path / "cambist.toml").write_text(f'[database]\nurl = "{database_url}"\n{CHAINS}')

    def run(*arguments):
        return run_command(*arguments, cwd=tmp_path)

    return run


@pytest.fixture
async def station(db):
    """Have the worker have seen gas stations, one of which stakes."""
    async with db.transaction() as conn:
        for family, chain, staked in (("tron", "tron", 40_000 * TRX), ("evm", "ethereum", None)):
            await conn.exec_driver_sql(
                "INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index)"
                " VALUES ('live', $1, $2, 'gas', 0, 0, 0)",
                (family, STATION),
            )
            await conn.exec_driver_sql(
                "INSERT INTO gas_stations (mode, chain, address, symbol, decimals, balance, staked, lent, lendable,"
                " leaving, withdrawable, free_at)"
                " VALUES ('live', $1, $2, 'TRX', 6, $3, $4, 0, $4, $5, $5, '2026-02-14T12:00:00Z')",
                (chain, STATION, 1_000 * TRX, staked, None if staked is None else 0),
            )


def test_a_change_is_asked_for_and_shown(cambist, station):
    asked = cambist("stake", "tron", "stake", "250.5")
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith("stake:stk_")
    shown = cambist("stake", "tron", "show").stdout
    assert f"gas station {STATION}" in shown
    assert "staked        40000 TRX" in shown
    assert "free at       2026-02-14 12:00:00 UTC" in shown
    assert "stake 250.5 TRX: waiting" in shown


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("tron", "stake"), "amount is required to stake"),
        (("tron", "stake", "1e3"), "amount must"),
        (("tron", "stake", "1001"), "To stake on tron there is 1000 TRX."),
        (("tron", "unstake", "40000.1"), "To unstake on tron there is 40000 TRX."),
        (("tron", "withdraw"), "To withdraw on tron there is 0 TRX."),
        (("ethereum", "stake", "1"), "Nothing can be staked on ethereum."),
        (("moon", "stake", "1"), "There is no chain 'moon'."),
        (("tron", "burn", "1"), "'burn' is not one of"),
        (("tron", "show", "1"), "show takes no AMOUNT."),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(cambist, station, arguments, sentence):
    answer = cambist("stake", *arguments)
    assert answer.returncode != 0
    assert sentence in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "waiting" not in cambist("stake", "tron", "show").stdout


def test_before_the_worker_has_looked_it_says_so(cambist):
    assert "has not seen this chain's gas station yet" in cambist("stake", "tron", "show").stdout
    assert "has not seen the gas station of tron yet" in cambist("stake", "tron", "stake", "1").stderr

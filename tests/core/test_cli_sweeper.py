"""``cambist sweeper``, as an operator types it."""

from __future__ import annotations

import pytest

from cambist_evm.sweeper import deployment
from tests.support.command import run_command

STATION = "0x" + "52" * 20
CHAIN = """
[plugins.evm.chains.ethereum]
rpc_urls = ["http://127.0.0.1:1"]
"""


@pytest.fixture
def cambist(tmp_path, database_url):
    def run(*arguments, settings=CHAIN):
        (tmp_path / "cambist.toml").write_text(f'[database]\nurl = "{database_url}"\n{settings}')
        return run_command(*arguments, cwd=tmp_path)

    return run


@pytest.fixture
async def station(db):
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index)"
            " VALUES ('live', 'evm', $1, 'gas', 0, 0, 0)",
            (STATION,),
        )


def test_it_tells_where_the_sweeper_is_and_what_deploys_it(cambist, station):
    made = deployment(STATION)
    answer = cambist("sweeper", "ethereum")
    assert answer.returncode == 0, answer.stderr
    for text in (f"address: {made.address}", f"to:      {made.to_address}", f"data:    0x{made.data.hex()}"):
        assert text in answer.stdout.splitlines()
    assert f'signer.delegates = {{ ethereum = ["{made.delegate}"] }}' in answer.stdout
    answer = cambist("sweeper", "ethereum", settings=f'{CHAIN}sweeper = "{made.address}"\n')
    assert "It is the one that is configured." in answer.stdout
    assert f"delegate to {made.delegate}" in answer.stdout


def test_without_a_gas_station_or_such_a_chain_it_says_so(cambist):
    answer = cambist("sweeper", "ethereum")
    assert (answer.returncode, "There is no gas station yet" in answer.stderr) == (78, True)
    answer = cambist("sweeper", "moon")
    assert (answer.returncode, "'moon' is no live chain that can sweep" in answer.stderr) == (78, True)

"""The lines that an operator copies for a token are what the signer's own file reads."""

from __future__ import annotations

import pytest

from cambist.plugin import Token
from cambist.registry import Registry
from cambist.settings_file import load_settings
from cambist.signer.startup import open_local_signer
from tests.support.signing import KEYSTORE

FILE = """
[signer]
store = "signed"
[plugins.evm.chains.ethereum]
rpc_urls = ["http://127.0.0.1:1/a-key"]
[plugins.evm.chains.base]
rpc_urls = ["http://127.0.0.1:1"]
[[plugins.evm.chains.base.tokens]]
symbol = "GIFT"
contract = "0x52908400098527886E0F7030069857D2E4169EE7"
decimals = 18
[plugins.tron]
network = "nile"
rpc_urls = ["http://127.0.0.1:1"]
"""
LABEL = 'The "odd" one\\, of Zürich'
EVM, TRON = "0xde709f2102306220921060314715629080e2fb77", "TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj"


@pytest.mark.parametrize(
    "chain, contract, heading",
    [
        ("ethereum", EVM, "[[plugins.evm.chains.ethereum.tokens]]"),
        ("base", EVM, "[[plugins.evm.chains.base.tokens]]"),
        ("tron", TRON, "[[plugins.tron.tokens]]"),
    ],
)
async def test_a_signer_whose_file_has_the_lines_knows_the_token(tmp_path, clock, chain, contract, heading):
    path = tmp_path / "cambist.toml"

    async def knows_it(text: str) -> bool:
        path.write_text(text)
        settings = load_settings(path, {}, signer_only=True)
        async with open_local_signer(settings, Registry(settings.plugins), clock, KEYSTORE) as signer:
            return await signer.knows_token(chain, token.contract)

    path.write_text(FILE)
    registry = Registry(load_settings(path, {}, signer_only=True).plugins)
    contract = registry.families[registry.chains[chain].family].normalize_address(contract)
    token = Token(symbol="EURX", contract=contract, decimals=6, label=LABEL)
    assert not await knows_it(FILE)
    lines = registry.file_lines(chain, token)
    assert lines is not None
    assert (lines.splitlines()[0], lines.count("[["), "a-key" in lines) == (heading, 1, False)
    assert await knows_it(FILE + lines)
    read = Registry(load_settings(path, {}, signer_only=True).plugins).file_chains[chain].token("EURX")
    assert read == token


def test_there_are_none_for_what_the_file_cannot_take(tmp_path):
    (tmp_path / "cambist.toml").write_text(FILE)
    registry = Registry(load_settings(tmp_path / "cambist.toml", {}, signer_only=True).plugins)
    known = registry.chains["base"].token("GIFT")
    assert known is not None
    again = Token(symbol="GIFT2", contract=known.contract, decimals=18, label="Gift")
    assert registry.file_lines("base", again) is None

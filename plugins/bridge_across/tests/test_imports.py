"""What it costs a process to import the plugin: no web3.py before calls are built or read, and no limit ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import asyncio
import sys
import time
from datetime import UTC, datetime
from random import Random

from cambist.plugin import PluginContext
from cambist_bridge_across.config import AcrossConfig
from cambist_bridge_across.plugin import AcrossPlugin, register_bridge_providers


async def connect():
    context = PluginContext(
        now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="cambist/tests"
    )
    async with AcrossPlugin().connect(AcrossConfig(), context) as bridges:
        assert len(bridges) == 1


register_bridge_providers()
asyncio.run(connect())
assert not {"web3", "eth_abi", "py_ecc"} & set(sys.modules)
limit = sys.getrecursionlimit()
AcrossPlugin().readers(AcrossConfig())
assert {"web3", "py_ecc"} <= set(sys.modules)
assert sys.getrecursionlimit() == limit, sys.getrecursionlimit()
"""


BUILDING = """
import asyncio
import sys
import threading
import time
from datetime import UTC, datetime
from random import Random

from cambist.plugin import ChainInfo, ChainToken, ExchangeRequest, PluginContext, ProviderUnavailableError, Token
from cambist_bridge_across.config import AcrossConfig
from cambist_bridge_across.plugin import AcrossPlugin

missing, threads = MISSING, set()


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"web3", "py_ecc", "eth_abi"}:
            threads.add(threading.current_thread() is threading.main_thread())
            if missing and name == "web3":
                raise ImportError("no web3 today")


def side(name, number):
    coin = Token(symbol="ETH", contract=None, decimals=18, label="Ether")
    chain = ChainInfo(
        id=name, name=name, family="evm", confirmations=1, chain_id_num=number, is_evm=True, tokens=(coin,)
    )
    return ChainToken(chain=chain, token=coin)


async def build():
    context = PluginContext(
        now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="cambist/tests"
    )
    one = "0x" + "34" * 20
    asked = ExchangeRequest(
        sells=side("ethereum", 1), buys=side("base", 8453), units=10**18, sender=one, recipient=one, slippage_bps=50
    )
    async with AcrossPlugin().connect(AcrossConfig(base_url="http://127.0.0.1:1"), context) as (bridge,):
        done = await asyncio.gather(*(bridge.build(asked, 1) for _ in range(3)), return_exceptions=True)
        print(*{type(one).__name__ for one in done}, *{"cannot be written here" in str(one) for one in done})


sys.meta_path.insert(0, Finder())
sys.setrecursionlimit(1234)
asyncio.run(build())
print(*threads, sys.getrecursionlimit(), "web3" in sys.modules)
"""


@pytest.mark.parametrize("missing", [False, True], ids=["there", "missing"])
def test_what_a_first_deposit_needs_is_imported_beside_the_event_loop(missing):
    """Where it cannot be, the bridge is unavailable."""
    script = BUILDING.replace("MISSING", str(missing))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    told = ["ProviderUnavailableError", str(missing), "False", "1234", str(not missing)]
    assert (done.stdout.split(), done.stderr) == (told, "")


def test_the_codec_is_imported_with_the_readers_and_changes_no_limit():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

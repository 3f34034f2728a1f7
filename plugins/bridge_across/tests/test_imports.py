"""What it costs a process to import the plugin: no web3.py before calls are built or read, and no limit ever."""

from __future__ import annotations

import subprocess
import sys

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


def test_the_codec_is_imported_with_the_readers_and_changes_no_limit():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

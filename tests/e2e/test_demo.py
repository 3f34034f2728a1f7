"""The demo tells its story and says so; where a step fails, it says which."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

from cambist.embedded.processes import free_port

CAMBIST = str(Path(sys.executable).with_name("cambist"))


async def run_demo(folder: Path, *arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        CAMBIST, "demo", "--once", "--data-dir", str(folder), *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=os.environ,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode is not None
    return process.returncode, output.decode()


async def test_it_plays_the_story_on_embedded_servers_and_again_on_the_same_folder(tmp_path):
    for _ in range(2):
        code, output = await run_demo(tmp_path / "demo", "--port", str(free_port()))
        assert code == 0, output
        told = [line.split()[1] for line in output.splitlines() if line.strip().startswith("webhook")]
        paid = ["payment.detected", "payment.confirming", "payment.paid"]
        assert told == [*paid, "payout.completed", "payment.refunded"]
        assert output.count("signature verified") == 5
        assert "exactly what was paid" in output
        assert "exactly what is left" in output


async def test_a_port_that_is_taken_is_named_in_its_failure(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, output = await run_demo(tmp_path / "demo", "--port", str(taken.getsockname()[1]))
    assert code == 1
    assert "The demo failed" in output

"""A process ends when its work has ended, also where a plugin has left something running that does not."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

BEGINS = """
    import asyncio, threading
    from cambist_tasks.ending import run_to_the_end
    from tests.support.stubborn import stay

    kept = []
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    code = textwrap.dedent(BEGINS) + textwrap.dedent(script)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "left",
    ["kept.append(asyncio.create_task(stay(asyncio.Event())))", "asyncio.create_task(asyncio.to_thread(never.wait))"],
    ids=["a task that catches its cancellation", "a thread that waits for somebody"],
)
def test_what_a_plugin_has_left_running_keeps_no_process(left: str) -> None:
    done = run(f"""
        never = threading.Event()

        async def work():
            {left}
            await asyncio.sleep(0)

        run_to_the_end(work(), end_s=0.5)
        """)
    assert (done.returncode, "left_running" in done.stdout) == (0, True), done


def test_what_ends_by_itself_is_not_waited_for_and_tells_nothing() -> None:
    done = run("""
        async def work():
            kept.append(asyncio.create_task(asyncio.sleep(100)))

        run_to_the_end(work(), end_s=50)
        print("ended")
        """)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done


def test_what_went_wrong_is_told_and_is_the_exit_code() -> None:
    done = run("""
        async def work():
            kept.append(asyncio.create_task(stay(asyncio.Event())))
            await asyncio.sleep(0)
            raise LookupError("it went wrong")

        run_to_the_end(work(), end_s=0.5)
        """)
    assert (done.returncode, "it went wrong" in done.stdout + done.stderr) == (1, True), done

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


def test_what_asks_for_the_end_of_the_process_in_a_task_or_a_callback_ends_itself_alone() -> None:
    """As a plugin's background task, or a callback of its library; a work that is kept running is begun again."""
    done = run("""
        import sys
        from cambist_tasks.supervision import keep_running

        async def leaves():
            sys.exit("bye")

        async def work():
            again, times = asyncio.Event(), []

            async def kept_running():
                times.append(1)
                if len(times) == 1:
                    sys.exit("a synchronous method")  # of a plugin, which this calls
                again.set()
                await asyncio.Event().wait()

            kept.append(asyncio.create_task(leaves()))
            asyncio.get_running_loop().call_later(0.01, sys.exit, 3)
            keeping = asyncio.create_task(keep_running("it", kept_running))
            await asyncio.wait_for(again.wait(), 30)
            keeping.cancel()
            await asyncio.wait([keeping])
            print("the work has ended")

        run_to_the_end(work(), end_s=50)
        print("ended")
        """)
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, ["the work has ended", "ended"]), done
    assert "exit_refused" in done.stdout


def test_what_went_wrong_is_told_and_is_the_exit_code() -> None:
    done = run("""
        async def work():
            kept.append(asyncio.create_task(stay(asyncio.Event())))
            await asyncio.sleep(0)
            raise LookupError("it went wrong")

        run_to_the_end(work(), end_s=0.5)
        """)
    assert (done.returncode, "it went wrong" in done.stdout + done.stderr) == (1, True), done

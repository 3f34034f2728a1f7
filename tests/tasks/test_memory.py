"""What one batch of blocks frees is there for the next, and connections that nobody needs are closed."""

import subprocess
import sys
from contextlib import AsyncExitStack

import pytest
from msgspec.structs import replace

from cambist.bootstrap import WORKER_KEEPS, open_database
from cambist.db.engine import BusyError

BATCHES = 20
BATCH_BYTES = 8 << 20

# In a process of its own: there is no way back.
PROGRAM = f"""
import resource
from cambist_tasks.memory import tune_memory
tune_memory()
for number in range({BATCHES} + 1):
    if number == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pieces = [b"x" * (1 << 18) for _ in range({BATCH_BYTES} >> 18)]
    del pieces
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="another C library has other ways")
def test_memory_is_not_asked_for_anew_with_each_batch():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(ended.stdout) < BATCHES * BATCH_BYTES // 4096 // 10


@pytest.mark.parametrize("role, kept", [("worker", WORKER_KEEPS), ("web", 6)])
async def test_a_worker_keeps_few_of_the_connections_that_it_may_open(gateway_settings, role, kept):
    few = replace(gateway_settings.database, pool_size=6, pool_overflow=2, pool_timeout_s=1)
    database = open_database(replace(gateway_settings, database=few), role)
    try:
        async with AsyncExitStack() as stack:
            for _ in range(8):
                await stack.enter_async_context(database.autocommit())
            with pytest.raises(BusyError):
                await stack.enter_async_context(database.autocommit())
        assert database.engine.pool.checkedin() == kept
    finally:
        await database.close()

"""What one batch of blocks frees is there for the next."""

import subprocess
import sys

import pytest

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

"""How much memory a whole gateway takes at rest: all processes of `cambist up` on a fresh folder, servers included."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from _gateway import serving, simulated_gateway
from _harness import at_most, report, sized, unjudged

from cambist.embedded.processes import free_port

MEGABYTE = 1_000_000
ALL_MB_MAX = 350
REST_S = sized(60, tiny=0)
SAMPLES = sized(5, tiny=1)
APART_S = 5
KINDS = ("up", "web", "worker", "PostgreSQL", "Valkey")


@contextmanager
def fresh_gateway() -> Iterator[psutil.Process]:
    """Run ``cambist up`` without a setting, in a new folder; yield its process."""
    if sized(full=False, tiny=True):
        # One that runs already, on servers that are others': to start one takes longer than to measure it.
        with simulated_gateway(workers=1) as (port, _):
            yield serving_at(port)
        return
    port = free_port()
    with TemporaryDirectory(prefix="cambist-bench-", ignore_cleanup_errors=True) as name:
        # As root the servers run under another account, which must get through.
        Path(name).chmod(0o711)
        config, cambist = Path(name) / "cambist.toml", str(Path(sys.executable).with_name("cambist"))
        config.touch()
        argv = [cambist, "up", "--config", str(config), "--data-dir", f"{name}/data", "--port", str(port)]
        with Path(name, "log").open("wb") as log, serving(argv, b"ready ", log):
            ends = ["--port", str(port)]
            yield next(one for one in psutil.process_iter(["cmdline"]) if (one.info["cmdline"] or [])[-2:] == ends)


def serving_at(port: int) -> psutil.Process:
    """Return a process of the gateway that listens there."""
    listening = (one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN)
    return psutil.Process(next(one.pid for one in listening if one.laddr.port == port))


def kind_of(process: psutil.Process, up: psutil.Process) -> str:
    """Return which part of the gateway a process is."""
    if process == up:
        return "up"
    if process.name().startswith(("postgres", "valkey")):
        return "PostgreSQL" if process.name().startswith("postgres") else "Valkey"
    return "worker" if process.cmdline()[-1:] == ["worker"] else "web"


def sample(up: psutil.Process) -> Mapping[str, float]:
    """Return what each part holds at this moment, in megabytes: its share of what it shares (PSS)."""
    found = dict.fromkeys(KINDS, 0.0)
    for process in [up, *up.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # a vacuum has ended
            found[kind_of(process, up)] += process.memory_full_info().pss / MEGABYTE
    return found


def at_rest(up: psutil.Process) -> Sequence[Mapping[str, float]]:
    """Wait until everything is in place that is at a start, and take several samples."""
    time.sleep(REST_S)
    samples = [sample(up)]
    while len(samples) < SAMPLES:
        time.sleep(APART_S)
        samples.append(sample(up))
    return samples


def main() -> None:
    with fresh_gateway() as up:
        samples = at_rest(up)
    held = {kind: statistics.median(one[kind] for one in samples) for kind in KINDS}
    everything = statistics.median(sum(one.values()) for one in samples)
    report(
        "Memory at rest",
        [
            at_most("all of it", everything, ALL_MB_MAX, " MB"),
            *(unjudged(kind, f"{megabytes:.0f} MB") for kind, megabytes in held.items() if megabytes),
        ],
        note=f"`cambist up` on a fresh folder without a setting, {REST_S} s after its start; PSS",
    )


if __name__ == "__main__":
    main()

"""Every benchmark runs, at its tiny size, so that what it calls in the gateway cannot change without it."""

import importlib
import json
import os
from pathlib import Path

import pytest

from cambist_web.dashboard.files import BUILT
from tests.browser.conftest import CHROMIUM
from tests.support.command import run_script
from tests.support.gateway import GatewayProcess

BENCH = Path(__file__).resolve().parents[2] / "bench"
FILES = sorted(BENCH.glob("bench_*.py"))
SHARING = [file for file in FILES if "simulated_gateway" in file.read_text()]
IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"
MISSING = [
    reason
    for reason, is_missing in (
        ("no chromium: apt-get install chromium-headless-shell", CHROMIUM is None),
        ("the dashboard is not built: make dashboard", not (BUILT / "dashboard.html").exists()),
    )
    if is_missing
]
"""What a benchmark of pages wants and does not have. In CI it is there."""

pytestmark = pytest.mark.timeout(300)  # most of them start processes, which takes its time on a busy machine


@pytest.fixture
def environment(servers, redis_url, tmp_path):
    return {
        **os.environ,
        "CAMBIST_BENCH_SIZE": "tiny",
        "CAMBIST_BENCH_RESULTS": str(tmp_path / "results"),
        "CAMBIST_BENCH_DATABASE_URL": servers.database_url,
        "CAMBIST_BENCH_REDIS_URL": redis_url,
    }


@pytest.fixture(scope="class")
async def gateway(servers, databases, tmp_path_factory):
    """Start one with the settings of benchmarks, beside a Valkey that the other benchmarks do not empty."""
    with pytest.MonkeyPatch.context() as patch, databases.fresh() as database_url:
        patch.syspath_prepend(str(BENCH))
        theirs = importlib.import_module("_gateway")
        settings = theirs.SETTINGS.format(
            database_url=database_url, redis_url=servers.redis(0), workers=1, plugins=theirs.SIMULATED
        )
        async with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as running:
            yield f"{running.url.rpartition(':')[2]} {database_url}"


class TestOnOneGateway:
    """Those that need a gateway with nothing but a simulated chain."""

    @pytest.mark.parametrize("file", SHARING, ids=lambda file: file.stem)
    def test_a_benchmark_runs_and_prints_its_figures(self, gateway, file, environment, tmp_path):
        if "playwright" in file.read_text() and MISSING and not IN_CI:
            pytest.skip(MISSING[0])
        runs_and_prints_its_figures(file, {**environment, "CAMBIST_BENCH_GATEWAY": gateway}, tmp_path)


@pytest.mark.parametrize("file", [file for file in FILES if file not in SHARING], ids=lambda file: file.stem)
def test_a_benchmark_runs_and_prints_its_figures(file, environment, tmp_path):
    runs_and_prints_its_figures(file, environment, tmp_path)


def runs_and_prints_its_figures(file, environment, tmp_path):
    ended = run_script(file, environment)
    assert ended.returncode == 0, ended.stderr
    tables = [json.loads(line) for line in (tmp_path / "results").read_text().splitlines()]
    assert tables
    for table in tables:
        assert table["title"] in ended.stdout
        assert table["lines"]
        for what, *figures in table["lines"]:
            assert what in ended.stdout
            assert any(character.isdigit() for figure in figures for character in figure) or "yes" in figures

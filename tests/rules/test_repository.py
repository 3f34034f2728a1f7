"""What may stand in the repository at all."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = {
    "a package registry's host": r"(?:registry\.npmjs\.org|(?:files\.)?pythonhosted\.org|\bpypi\.org)",
    "a path of somebody's machine": r"(?<![\w.-])/(?:work|home/\w+|Users/\w+)/",
}


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607  git of whoever runs the tests
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("pattern", PARTS.values(), ids=PARTS.keys())
def test_no_file_names(pattern):
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()[:100]}"
        for path in tracked()
        if path.suffix not in {".png", ".woff2", ".ico"}
        if re.search(pattern, text := path.read_text(errors="replace"))
        for line in text.splitlines()
        if re.search(pattern, line)
    ]
    assert found == []


def test_nothing_built_and_no_lock_file_with_addresses_is_kept():
    names = [str(path.relative_to(ROOT)) for path in tracked()]
    assert [name for name in names if re.search(r"(^|/)(uv\.lock|node_modules/|dist/)", name)] == []
    for path in tracked():
        if path.name == "package-lock.json":
            assert '"resolved"' not in path.read_text()


def test_files_stay_small_enough_to_be_read():
    lines_max = {False: 350, True: 500}
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked()
        if path.suffix == ".py"
        and "migrations/versions" not in str(path)
        and (lines := len(path.read_text().splitlines())) > lines_max["tests" in path.parts]
    }
    assert long == {}


def test_links_between_documents_lead_somewhere():
    broken = [
        f"{path.relative_to(ROOT)}: {link}"
        for path in tracked()
        if path.suffix == ".md"
        for link in re.findall(r"\]\(([^)#\s]+)", path.read_text())
        if "://" not in link and not (path.parent / link).exists()
    ]
    assert broken == []

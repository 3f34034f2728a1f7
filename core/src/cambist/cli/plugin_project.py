"""Writes a plugin's project: a copy of its kind's template, which is a plugin that works, under another name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

KINDS = ("chain", "price", "swap", "bridge")
TEMPLATES = "plugin_templates"
TEMPLATE_NAME = "florin"
NAME_CHARS_MAX = 24

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_TOP = PurePosixPath()
# How many leading parts of its version a project pins. The contract, which comes with core, is kept within a major
# version, and a plugin of another is refused at the start; chainkit's functions may change with a minor version.
_PINNED = {"cambist-core": 1, "cambist-chainkit": 2}
_LEFT_BEHIND = re.compile(r"\..*|__pycache__|build|dist")


class PluginProjectError(Exception):
    """The project cannot be written. The message is a sentence for whoever asked for it."""


def write_project(name: str, folder: Path, kind: str = "chain") -> Path:
    """Write a plugin of one of ``KINDS`` into a folder ``cambist-<name>`` below this one, and return that.

    Nothing that exists is written over. Raises PluginProjectError.
    """
    _check_name(name)
    project = folder / distribution_name(name)
    try:
        project.mkdir(parents=True)
        for path, source in _walk(files("cambist") / TEMPLATES / kind):
            copy = project / _renamed(str(path), name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = _renamed(source.read_text("utf-8"), name)
            copy.write_text(_pinned(text) if path.name == "pyproject.toml" else text, "utf-8")
    except FileExistsError as error:
        raise PluginProjectError(f"{error.filename} exists already, and is not written over.") from error
    except OSError as error:
        raise PluginProjectError(f"{error.filename} cannot be written: {error.strerror}.") from error
    return project


def distribution_name(name: str) -> str:
    """Return what the plugin of this name is called where packages are installed."""
    return "cambist-" + name.replace("_", "-")


def release_range(version: str, parts: int) -> str:
    """Return the range from this version to the next that may break something: the next of so many leading parts.

    ``>=0.1.3,<0.2`` for two parts of 0.1.3, and ``>=0.1.3,<1`` for one.
    """
    release = [int(part) for part in re.findall(r"[0-9]+", version)[:parts]]
    release[-1] += 1
    return f">={version.partition('+')[0]},<{'.'.join(map(str, release))}"


def _pinned(text: str) -> str:
    """Put the range that fits what is installed behind each of our distributions: it is what the kit is run against."""
    for pinned, parts in _PINNED.items():
        text = text.replace(f'"{pinned}"', f'"{pinned}{release_range(distribution(pinned).version, parts)}"')
    return text


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None or len(name) > NAME_CHARS_MAX:
        raise PluginProjectError(
            f"{name!r} is no name for a plugin: small letters, then digits and single underscores too,"
            f" up to {NAME_CHARS_MAX} characters."
        )
    try:
        distribution(distribution_name(name))
    except PackageNotFoundError:
        return
    raise PluginProjectError(f"{name!r} is taken: {distribution_name(name)} is installed here.")


def _walk(folder: Traversable, above: PurePosixPath = _TOP) -> Iterator[tuple[PurePosixPath, Traversable]]:
    """Yield every file of the template with its path, but for what running its tests leaves behind."""
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if _LEFT_BEHIND.fullmatch(entry.name):
            continue
        if entry.is_dir():
            yield from _walk(entry, above / entry.name)
        else:
            yield above / entry.name, entry


def _renamed(text: str, name: str) -> str:
    """Put the name in place of the template's, in each of its spellings."""
    title = "".join(part.capitalize() for part in name.split("_"))
    spellings = {
        f"cambist-{TEMPLATE_NAME}": distribution_name(name),
        TEMPLATE_NAME: name,
        TEMPLATE_NAME.capitalize(): title,
        TEMPLATE_NAME.upper(): name.upper(),
    }
    for old, new in spellings.items():
        text = text.replace(old, new)
    return text

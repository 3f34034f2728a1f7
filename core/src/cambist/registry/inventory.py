"""What ``cambist plugins`` lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint

from msgspec import Struct

from .checks import RegistryError
from .loading import check_plugin, enabled_tables, plugin_objects, points_by_name


class InstalledPlugin(Struct, frozen=True, kw_only=True):
    """A row of ``cambist plugins``: what is there, whether it is used, and what is wrong with it."""

    name: str
    distribution: str
    version: str
    api_version: int | None
    enabled: bool
    problem: str | None


def installed_plugins(
    tables: Mapping[str, object], *, found: Iterable[EntryPoint] | None = None
) -> Sequence[InstalledPlugin]:
    """List every installed plugin, by name.

    Imports all of them, enabled or not, to see their API version: for the command alone, not for the start. A
    plugin named in the file that is not installed has a row too.
    """
    rows = []
    points = points_by_name(found)
    used = enabled_tables(tables, points)
    for name in sorted({*points, *used}):
        api_version, problem = _inspect(name, points) if name in points else (None, "it is not installed")
        rows += [
            InstalledPlugin(
                name=name,
                distribution=dist.name if dist else "?",
                version=dist.version if dist else "?",
                api_version=api_version,
                enabled=name in used,
                problem=problem,
            )
            for dist in [point.dist for point in points.get(name, [])] or [None]
        ]
    return rows


def _inspect(name: str, points: Mapping[str, Sequence[EntryPoint]]) -> tuple[int | None, str | None]:
    api_version: int | None = None
    try:
        objects = plugin_objects(name, points)
        versions = [getattr(plugin, "api_version", None) for plugin in objects]
        api_version = next((version for version in versions if isinstance(version, int)), None)
        for plugin in objects:
            check_plugin(name, plugin)
    except RegistryError as error:
        return api_version, str(error)
    return api_version, None

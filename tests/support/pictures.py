"""Tells whether two pictures of a page show the same, however another machine draws its letters."""

from __future__ import annotations

from functools import reduce
from itertools import product
from pathlib import Path

from PIL import Image, ImageChops

SCALE = 2
"""Pictures are kept at half their size: that is enough to compare, and small."""

BLOCK_PX = 8
"""What is compared is the mean of a block: what antialiasing moves, stays within it."""
SHIFT_PX = 1
"""How far a block may have moved, at half size. Letters of another version stand a little to the side."""
SHADES_MAX = 16
"""How different the mean of a block may be, of 255 shades."""
BLOCKS_MAX = 12
"""How many blocks may be more different than that: a word or two."""


def shrunk(file: Path) -> Image.Image:
    """Return a screenshot as it is kept."""
    with Image.open(file) as shot:
        return shot.convert("RGB").reduce(SCALE)


def keep(file: Path, target: Path) -> None:
    """Keep a screenshot as what later ones are compared with."""
    shrunk(file).save(target, optimize=True)


def differing(kept: Image.Image, shown: Image.Image) -> list[tuple[int, int]]:
    """Return the blocks that differ, each as column and row. Pictures of different sizes differ everywhere."""
    if kept.size != shown.size:
        columns, rows = (-(-side // BLOCK_PX) for side in shown.size)
        return list(product(range(columns), range(rows)))
    blocks = shown.reduce(BLOCK_PX)
    shifts = product((-SHIFT_PX, 0, SHIFT_PX), repeat=2)
    apart = reduce(ImageChops.darker, (_apart(ImageChops.offset(kept, *by).reduce(BLOCK_PX), blocks) for by in shifts))
    return [
        (number % apart.width, number // apart.width)
        for number, shades in enumerate(apart.tobytes())
        if shades > SHADES_MAX
    ]


def _apart(one: Image.Image, other: Image.Image) -> Image.Image:
    """Return by how many shades two pictures differ, in the colour in which they differ most."""
    return reduce(ImageChops.lighter, ImageChops.difference(one, other).split())

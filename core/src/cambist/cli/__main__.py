"""Lets processes of ours start each other: ``python -m cambist.cli``."""

from . import main

main()

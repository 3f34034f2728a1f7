"""Swaps and bridges of merchants' money: quoted, set aside, built and checked, sent, credited as the chain shows."""

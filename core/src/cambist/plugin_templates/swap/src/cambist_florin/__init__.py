"""Cambist's plugin for the swaps of Florin."""

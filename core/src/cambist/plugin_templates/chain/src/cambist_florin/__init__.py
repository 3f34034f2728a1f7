"""Cambist's plugin for Florin."""

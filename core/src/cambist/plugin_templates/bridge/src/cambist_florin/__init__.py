"""Cambist's plugin for the bridge of Florin."""

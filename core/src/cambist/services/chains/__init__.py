"""Chains at run time: endpoints and tokens that operators change, and what workers see of chains.

The operator's file gives the start, and rows change it. Web writes what is asked for, workers ask nodes and decide, and
every process follows what is in use: see ``setups``.
"""

"""Finds the installed plugins, loads the enabled ones, checks them, and hands out typed objects.

What is wrong with a plugin stops the start with one sentence, a RegistryError; what goes wrong later, when a
loaded plugin connects, is reported and touches no other plugin. Only ``loading`` drives pluggy.
"""

from .brought import BroughtPlugin, PluginSetting
from .checks import RegistryError
from .connect import ConnectProblem
from .connections import ChainConnections
from .inventory import InstalledPlugin, installed_plugins
from .loading import GROUP, check_names
from .registry import Registry, SetupError
from .switching import SwitchedChain

__all__ = [
    "GROUP",
    "BroughtPlugin",
    "ChainConnections",
    "ConnectProblem",
    "InstalledPlugin",
    "PluginSetting",
    "Registry",
    "RegistryError",
    "SetupError",
    "SwitchedChain",
    "check_names",
    "installed_plugins",
]

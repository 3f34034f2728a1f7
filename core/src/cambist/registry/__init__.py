"""Finds the installed plugins, loads the enabled ones, checks them, and hands out typed objects.

What is wrong with a plugin stops the start with one sentence, a RegistryError; what goes wrong later, when a
loaded plugin connects, is reported and touches no other plugin. Only ``loading`` drives pluggy.
"""

from .checks import RegistryError
from .connect import ConnectProblem
from .inventory import InstalledPlugin, installed_plugins
from .loading import GROUP
from .registry import Registry

__all__ = ["GROUP", "ConnectProblem", "InstalledPlugin", "Registry", "RegistryError", "installed_plugins"]

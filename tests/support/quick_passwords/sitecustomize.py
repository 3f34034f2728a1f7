"""Has passwords hashed in no time, where the real thing takes a fifth of a second of a core by design.

Python imports it at the start of each process that has this folder on its path, as those have that stories run without
forking them.
"""

from argon2 import PasswordHasher

made = PasswordHasher.__init__
_TIME_COST, _MEMORY_KIB, _PARALLELISM = 1, 8, 1
made.__defaults__ = (_TIME_COST, _MEMORY_KIB, _PARALLELISM, *(made.__defaults__ or ())[3:])

"""What the tests of the price sources share with the rest of the workspace."""

from cambist.testing.fixtures import _no_network, clock

__all__ = ["_no_network", "clock"]

// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

interface IToken {
    function transfer(address to, uint256 value) external returns (bool);
}

/// What exchanges, multisigs and batch payers do: several transfers in one transaction, some of which fail inside.
contract Splitter {
    receive() external payable {}

    function splitNative(address[] calldata to, uint256[] calldata value) external payable {
        for (uint256 i = 0; i < to.length; i++) {
            _pay(to[i], value[i]);
        }
    }

    /// Where fails[i] is set, the payment is made inside a frame that reverts and is caught.
    function splitNativeSome(address[] calldata to, uint256[] calldata value, bool[] calldata fails) external payable {
        for (uint256 i = 0; i < to.length; i++) {
            try this.payOrRevert(to[i], value[i], fails[i]) {} catch {}
        }
    }

    function payOrRevert(address to, uint256 value, bool fails) external {
        _pay(to, value);
        require(!fails, "asked to fail");
    }

    /// Pays at the bottom of depth nested calls. revertAt counts from the bottom; a frame that reverts is caught above.
    function nest(address to, uint256 value, uint256 depth, uint256 revertAt) external payable {
        if (depth == 0) {
            _pay(to, value);
        } else {
            try this.nest(to, value, depth - 1, revertAt) {} catch {}
        }
        require(depth != revertAt, "asked to fail");
    }

    function splitToken(IToken token, address[] calldata to, uint256[] calldata value) external {
        for (uint256 i = 0; i < to.length; i++) {
            token.transfer(to[i], value[i]);
        }
    }

    function splitTokenSome(IToken token, address[] calldata to, uint256[] calldata value, bool[] calldata fails)
        external
    {
        for (uint256 i = 0; i < to.length; i++) {
            try this.payTokenOrRevert(token, to[i], value[i], fails[i]) {} catch {}
        }
    }

    function payTokenOrRevert(IToken token, address to, uint256 value, bool fails) external {
        token.transfer(to, value);
        require(!fails, "asked to fail");
    }

    /// Takes value and reverts: a failed transaction with value.
    function refuse() external payable {
        revert("refused");
    }

    function _pay(address to, uint256 value) internal {
        (bool ok, ) = to.call{value: value}("");
        require(ok, "payment failed");
    }
}

/// Sends its whole value by SELFDESTRUCT while it is being created.
contract Bequest {
    constructor(address payable to) payable {
        selfdestruct(to);
    }
}

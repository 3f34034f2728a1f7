// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Pays on as many old contracts do: with the 2300 gas that every payment brings, and no more.
contract Stingy {
    function pay(address to) external payable {
        (bool done, ) = to.call{value: msg.value, gas: 0}("");
        require(done, "not paid");
    }
}

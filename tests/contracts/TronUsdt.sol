// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// What TronUsdt.yul answers to.
interface TronUsdt {
    event Transfer(address indexed from, address indexed to, uint256 value);

    function name() external view returns (string memory);
    function symbol() external view returns (string memory);
    function decimals() external view returns (uint8);
    function totalSupply() external view returns (uint256);
    function balanceOf(address account) external view returns (uint256);
    function allowance(address owner, address spender) external view returns (uint256);
    function isBlackListed(address account) external view returns (bool);
    function approve(address spender, uint256 value) external returns (bool);
    function transfer(address to, uint256 value) external returns (bool);
    function transferFrom(address from, address to, uint256 value) external returns (bool);
    function mint(address to, uint256 value) external;
    function addBlackList(address account) external;
    function removeBlackList(address account) external;
    function setParams(uint256 basisPoints, uint256 feeMax) external;
}

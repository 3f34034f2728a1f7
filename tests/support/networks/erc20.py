"""What clients need to be told of a token: the same on every chain that runs such contracts."""

ERC20 = [
    {
        "name": "balanceOf",
        "type": "function",
        "stateMutability": "view",
        "inputs": [{"name": "owner", "type": "address"}],
        "outputs": [{"name": "", "type": "uint256"}],
    },
    {
        "name": "transfer",
        "type": "function",
        "stateMutability": "nonpayable",
        "inputs": [{"name": "to", "type": "address"}, {"name": "units", "type": "uint256"}],
        "outputs": [{"name": "", "type": "bool"}],
    },
]

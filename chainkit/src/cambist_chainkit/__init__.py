"""What chain plugins have in common: key derivation, signatures, and failover between nodes."""

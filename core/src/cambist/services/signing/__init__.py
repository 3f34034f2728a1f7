"""What people see of the signer, and how their answers reach it: by tables, since only workers may ask it."""

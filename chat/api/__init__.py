"""What programs can call: each protocol is a thin adapter over `calls`."""

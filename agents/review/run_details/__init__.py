"""What the page of one run shows beside its trace."""

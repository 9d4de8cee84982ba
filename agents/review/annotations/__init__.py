"""What people add to runs: feedback, comments, examples."""

"""What is set up for a server: its options, variables and command line."""

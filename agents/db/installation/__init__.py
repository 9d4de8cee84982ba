"""Settings of the installation, which administrators change without a restart.

`configured` has them all; a value comes from the environment if it is set there, from its row,
or is the default.
"""

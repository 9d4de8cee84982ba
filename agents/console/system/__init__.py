"""Pages of the installation: health, settings, configuration files."""

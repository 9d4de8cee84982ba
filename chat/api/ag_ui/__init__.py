"""AG-UI: events of a run for user interfaces of others."""

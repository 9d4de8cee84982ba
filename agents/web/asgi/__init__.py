"""The web process: server, request limits, health probes, warm-up."""

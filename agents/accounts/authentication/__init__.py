"""Second factors, throttling and sessions."""

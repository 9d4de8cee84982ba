"""Pages of guardrails: patterns, their tests, personal data."""

"""Alerts: rules, channels, deliveries with retries, notifications, scheduled summaries."""

"""Tests of guardrails on samples, and what their page displays: order, sets, hits, privacy."""

"""Replay, rerun and comparison of runs."""

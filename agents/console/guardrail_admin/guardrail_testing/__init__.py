"""Tools for guardrail patterns: sample test, backtest, presets and verdicts."""

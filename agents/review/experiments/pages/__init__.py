"""Pages of the console: example sets, examples, experiments and backtests."""

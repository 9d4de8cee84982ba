"""The list of runs: rows, columns, charts, bulk actions."""

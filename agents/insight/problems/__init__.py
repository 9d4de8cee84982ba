"""Problems: failures, bad ratings, blocks and limits of runs, grouped by their cause."""

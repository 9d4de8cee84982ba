"""The filter language of the list of runs."""

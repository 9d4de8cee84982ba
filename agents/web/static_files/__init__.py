"""Static files: their version, the bundles of a page, and how they are served."""

"""HTTP, streams and errors, as all providers have them."""

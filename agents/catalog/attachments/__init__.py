"""Files of messages as an agent reads them."""

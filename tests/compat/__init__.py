"""Other people's software, installed and used as it comes."""

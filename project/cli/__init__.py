"""The command `ashiato`: it asks agents of a server or of the local database."""

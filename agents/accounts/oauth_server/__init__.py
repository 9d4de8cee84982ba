"""The OAuth 2.1 server: apps that users connect to their account."""

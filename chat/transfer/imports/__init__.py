"""Imports chats from the exports of other products, and from our own."""

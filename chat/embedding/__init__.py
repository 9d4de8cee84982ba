"""Chats in other people's pages: who may use them, their frame, its socket, and retention."""

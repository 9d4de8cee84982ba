"""Chats in and out: imports from other products, exports."""

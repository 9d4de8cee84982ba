"""Projects: chats with instructions, documents, members and a memory of their own."""

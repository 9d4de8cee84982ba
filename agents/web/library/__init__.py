"""The library: collections of documents, uploads, sharing and the document viewer."""

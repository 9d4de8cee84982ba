"""What answers and documents are worth, measured on things that nobody tuned for.

Each section of docs/quality.md is a module here, with a TITLE, an INTRO of a few sentences
(what is measured, and on what), and `measure()`, which returns the figures as Markdown.
"""

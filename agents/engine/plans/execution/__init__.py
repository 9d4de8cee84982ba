"""Runs the steps of a plan, tries them again and evaluates them."""

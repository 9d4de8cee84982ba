"""Registers the pages of examples and experiments with the console."""

from .pages.example_admin import ExampleAdmin
from .pages.experiment_admin import ExperimentAdmin
from .pages.set_admin import ExampleSetAdmin

__all__ = ["ExampleAdmin", "ExampleSetAdmin", "ExperimentAdmin"]

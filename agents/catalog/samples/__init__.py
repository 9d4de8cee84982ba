"""Sample data and questions for a new installation."""

"""What runs used: budgets, caches and slots of models."""

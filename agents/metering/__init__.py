"""What runs use and what they may use: figures, budgets, limits of models, saved results."""

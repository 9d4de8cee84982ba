"""What runs say together: dashboard, problems, alerts and suggestions."""

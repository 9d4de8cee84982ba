"""Who sees what: memberships, collections and projects."""

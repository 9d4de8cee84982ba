"""Users: profiles, roles, groups, invitations, their list."""

import pytest
from django.contrib.auth.models import Permission, User


@pytest.fixture
def reviewer(db):
    reviewer = User.objects.create_user("rei", password="x")
    reviewer.user_permissions.add(Permission.objects.get(codename="review_runs"))
    return reviewer

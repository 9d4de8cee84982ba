"""The addresses of this protocol."""

urlpatterns: list[object] = []

"""The REST API under `/api/v1`, on django-ninja.

`app` puts the routers together, one per noun; each has its schemas and its operations. What
they share: `access` (scopes), `schemas`, `pages` (cursors), `idempotency`, `etags`, `problems`
(errors) and `document` (what OpenAPI says beyond the signatures).
"""

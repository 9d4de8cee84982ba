"""Why the server closes a page's socket.

Autobahn sends 1000 and 3000 to 4999 only, and only plain integers: an `IntEnum` is refused.
"""

UNSIGNED = 4401  # the token of the visitor of an embedded chat is missing, wrong or expired
FORBIDDEN = 4403  # for users who had access; for others there is nothing
NOT_FOUND = 4404
REPLACED = 4409  # by a newer socket of the same page
TOO_MANY = 4429
TRY_AGAIN_LATER = 4503  # the page reconnects a little later

"""The installation's name, logo, color, banner and start page, as pages display them."""

from .current import Banner, Branding, current, from_values, last_read

__all__ = ["Banner", "Branding", "current", "from_values", "last_read"]

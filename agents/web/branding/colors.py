"""Shades of the accent color that are readable in light and dark (WCAG 2.2, AA)."""

import colorsys
from dataclasses import dataclass
from functools import lru_cache

# Part of the stylesheet's URL: raise it if the same color gives another stylesheet.
REVISION = 1
MIN_CONTRAST = 4.5
STEP = 0.005
HOVER_STEP = 0.07
# `--hover` of base.css, the darkest and the lightest background that text and buttons are on.
# The text of a button is lighter (darker) than these, so it has a higher contrast.
LIGHT_BACKGROUND = "#eeece9"
DARK_BACKGROUND = "#292826"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    color: str
    hover: str  # of a button
    contrast: float  # to its background
    is_adjusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shades:
    light: Shade
    dark: Shade

    @property
    def stylesheet(self) -> str:
        return (
            "@layer base { :root { "
            f"--brand: light-dark({self.light.color}, {self.dark.color}); "
            f"--brand-hover: light-dark({self.light.hover}, {self.dark.hover}); "
            "} }\n"
        )


@lru_cache(maxsize=64)
def derive(color: str) -> Shades:
    """Return the color, or the nearest shade of it that is readable, for light and dark."""
    return Shades(
        light=_derive(color, LIGHT_BACKGROUND, -STEP),
        dark=_derive(color, DARK_BACKGROUND, STEP),
    )


def contrast(color: str, other: str) -> float:
    lighter, darker = sorted((_luminance(color), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _derive(color: str, background: str, step: float) -> Shade:
    shade = color
    distance = 0.0
    while contrast(shade, background) < MIN_CONTRAST:
        distance += step
        shade = _lighten(color, distance)
    return Shade(
        color=shade,
        hover=_lighten(shade, HOVER_STEP if step > 0 else -HOVER_STEP),
        contrast=contrast(shade, background),
        is_adjusted=shade != color,
    )


def _lighten(color: str, step: float) -> str:
    hue, lightness, saturation = colorsys.rgb_to_hls(*_channels(color))
    channels = colorsys.hls_to_rgb(hue, min(1.0, max(0.0, lightness + step)), saturation)
    return "#" + "".join(f"{round(channel * 255):02x}" for channel in channels)


def _luminance(color: str) -> float:
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in _channels(color)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return red, green, blue

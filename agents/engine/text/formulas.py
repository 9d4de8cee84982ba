"""What a spreadsheet would run: the beginning of a formula in a cell of a text file."""

import re

# Excel also runs the full-width signs of Japanese keyboards.
FORMULA = re.compile(r"\s*[-=+@＝＋－＠\t\r\n]")

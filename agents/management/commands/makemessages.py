"""Django's `makemessages`, whose output depends on nothing but the texts in the code."""

import re
from pathlib import Path

from django.core.management.commands import makemessages

CREATION_DATE = re.compile(r'^"POT-Creation-Date: .*\n', re.MULTILINE)


class Command(makemessages.Command):
    # A guessed translation is worse than a missing one, which a test finds.
    msgmerge_options = [*makemessages.Command.msgmerge_options, "--no-fuzzy-matching"]
    msgattrib_options = [*makemessages.Command.msgattrib_options, "--sort-output"]

    def write_po_file(self, potfile: str, locale: str) -> None:
        super().write_po_file(potfile, locale)
        file = Path(potfile).parent / locale / "LC_MESSAGES" / f"{self.domain}.po"
        file.write_text(CREATION_DATE.sub("", file.read_text()))

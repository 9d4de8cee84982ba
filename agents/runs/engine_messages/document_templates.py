"""Why a document can't be read, and what is missing in it, listed for the translators.

Parsers run without gettext; their sentences are saved in English, as those of the engine are.
"""

from django.utils.translation import gettext_noop as _

DOCUMENT_TEMPLATES = (
    _(
        "The name ends with %(suffix)s, but the content is a %(kind)s. Rename the file and "
        "upload it again."
    ),
    _("Reading took longer than %(seconds)s s. Split the file and try again."),
    _(
        "Reading this file ended the process that read it, twice (%(signal)s). It may need "
        "more memory than this server has. Split it or save it in another format, then try "
        "again."
    ),
    _("Only the first %(limit)s characters were read."),
    _("Only the first rows of the sheet %(words)s were read."),
    _("This CSV file can't be read: %(words)s."),
    _("Only the first %(read)s of %(count)s scanned pages were read."),
    _("Only the first %(read)s of %(count)s pages were read."),
    _("%(count)s scanned pages weren't read. %(sentence)s"),
    _("%(count)s damaged pages were left out."),
    _("The attachment %(words)s wasn't read. %(sentence)s"),
    _("The server answered with status %(status)s."),
    _(
        "This page is no longer on the web (status %(status)s). The text from before stays "
        "searchable until you delete it."
    ),
    _("The last fetch failed, so the text from before stays. %(sentence)s"),
    _("The sitemap couldn't be fetched. %(sentence)s"),
    _("This PDF has no text layer. %(sentence)s"),
    _("This page has an element with more than %(count)s attributes, so it can't be read."),
    _("This file is larger than %(size)s MB."),
    _("Unpacked, this file is larger than %(size)s MB."),
    _("This image is larger than %(size)s megapixels."),
)
DOCUMENT_SENTENCES = frozenset(
    {
        _("This file is empty."),
        _(
            "This page isn't on the public web. Check the address. An administrator can allow "
            "a private host in ASHIATO_PAGES_ALLOW."
        ),
        _("This file contains no text."),
        _("This file is damaged or incomplete."),
        _("This file contains a document type declaration, which isn't allowed."),
        _("This file is password-protected. Remove the password and upload it again."),
        _("This file has an old Microsoft format. Save it as DOCX, PPTX or EML and try again."),
        _("This file type isn't supported."),
        _("This file is nested too deeply to be read."),
        _("This page is nested too deeply to be read."),
        _("This file has too many elements to be read. Split it and upload the parts."),
        _("This file needs too much memory to be read."),
        _("This file needs too much memory or time to be read."),
        _("This file can't be read: its content makes the parser crash."),
        _("This file contains too much text. Split it and upload the parts."),
        _("This page contains no text. It may need JavaScript to display its content."),
        _("This presentation contains no text. Its slides may be pictures."),
        _("This book contains no text."),
        _("This book is copy-protected, so it can't be read."),
        _("This PDF has no text layer, and no text was recognized on its pages."),
        _("No text was found in this image."),
        _("It contains macros, which were ignored."),
        _("Archives can't be read. Unpack it and upload the files in it."),
        _("Programs can't be read as documents."),
        _("Audio and video files can't be read as documents."),
        _("Only the first rows were read, because the file is very long."),
        _("Text recognition isn't installed. Run `make run` on the server and try again."),
        _("Reading this file failed several times. Check the server's log."),
        _("The uploaded file is missing on the server. Upload it again."),
        _("Fetching stopped: the user who scheduled it can no longer edit this collection."),
        _("There is no sitemap at this address."),
        _("This sitemap lists more than 50,000 pages. Use one of a part of the site."),
        _("This sitemap lists no pages of its own site."),
        _("Word document"),
        _("PowerPoint presentation"),
        _("spreadsheet"),
        _("CSV file"),
        _("EPUB book"),
        _("web page"),
        _("e-mail"),
        _("Markdown file"),
        _("text file"),
        _("image"),
    }
)

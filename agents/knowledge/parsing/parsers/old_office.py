"""Word and PowerPoint files from before 2007, which another program converts first."""

from .ole import CompoundFile
from .values import NeedsConversion, ParsedDocument, SourceFile


def parse(source: SourceFile) -> ParsedDocument:
    streams = CompoundFile(source.data, source.work).names()
    raise NeedsConversion("word" if "WordDocument" in streams else "powerpoint")

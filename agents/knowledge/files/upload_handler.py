"""Receives uploaded files; for FILE_UPLOAD_HANDLERS."""

from tempfile import TemporaryFile
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler


class UnnamedFileUploadHandler(FileUploadHandler):
    """Writes a file without a name, so that nothing remains of it if the process dies."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.file: UploadedFile[Any] = UploadedFile(
            TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR),  # noqa: SIM115
            self.file_name,
            self.content_type,
            0,
            self.charset,
            self.content_type_extra,
        )

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.file.write(raw_data)

    def file_complete(self, file_size: int) -> "UploadedFile[Any]":
        self.file.seek(0)
        self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()

"""An object in a bucket is read from where it is asked to, with one request per part."""

import io

import pytest

bucket = pytest.importorskip("agents.knowledge.files.bucket", reason="needs `make s3`")

pytestmark = pytest.mark.slow


class Stored:
    """An object that notes which parts it was asked for."""

    def __init__(self, content):
        self.content, self.ranges = content, []

    def get(self, Range):
        self.ranges.append(Range)
        start = int(Range.removeprefix("bytes=").removesuffix("-"))
        return {"Body": io.BytesIO(self.content[start:])}


def test_a_part_is_read_with_one_request():
    found = Stored(b"0123456789")
    reader = bucket.BucketReader(found, 10)

    reader.seek(4)

    assert (reader.read(2), reader.read(3), reader.read(), reader.read()) == (
        b"45",
        b"678",
        b"9",
        b"",
    )
    assert found.ranges == ["bytes=4-"]
    reader.seek(-1, io.SEEK_END)
    assert reader.read() == b"9"


def test_a_providers_error_is_one_of_the_file_system():
    class Gone:
        def get(self, Range):
            raise bucket.ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")

    with pytest.raises(FileNotFoundError):
        bucket.BucketReader(Gone(), 3).read()

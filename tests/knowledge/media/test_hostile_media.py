"""Files made to harm the decoder are refused with a sentence, or read without harm."""

import struct
import subprocess
from contextlib import suppress
from dataclasses import replace

import pytest

from agents import file_types
from agents.knowledge.media import ffmpeg, transcription, video
from agents.knowledge.parsing import UnreadableDocument
from agents.tools import sandbox
from tests.wire import serve_in_thread

from .sounds import segment, wav

needs_ffmpeg = pytest.mark.skipif(not ffmpeg.executable(), reason="ffmpeg isn't installed")
SECRET = "the secret of another file"
PATH = "/v1/audio/transcriptions"


def make(path, *options: str):
    command = [ffmpeg.executable(), "-loglevel", "error", *options, "-y", str(path)]
    subprocess.run(command, check=True, timeout=60)
    return path


def watch(path, mime_type="video/mp4"):
    return video.read_video(path, path.name, mime_type, lambda done, total: None)


@pytest.fixture
def heard(configure):
    """What the transcription service was sent."""
    page = {"segments": [segment(0, "Hello.")]}
    with serve_in_thread(pages={PATH: page}) as server:
        configure(transcription_model="openai/whisper-1", transcription_url=server.url)
        yield server.requests


PLAYLISTS = {
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{secret}\n#EXT-X-ENDLIST\n",
    "concat": "ffconcat version 1.0\nfile '{secret}'\n",
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 0\n",
}


@pytest.mark.parametrize("kind", PLAYLISTS)
def test_a_playlist_with_the_name_of_a_video_is_a_text(tmp_path, kind):
    path = tmp_path / "film.mp4"
    path.write_text(PLAYLISTS[kind].format(secret="/etc/passwd"))
    with path.open("rb") as file:
        found = file_types.refine(file_types.sniff(file), path.name)
    assert found.startswith("text/")


@pytest.mark.slow
@needs_ffmpeg
@pytest.mark.parametrize("kind", PLAYLISTS)
@pytest.mark.parametrize("mime_type", ["video/mp4", "audio/mpeg", "video/webm"])
def test_a_playlist_that_poses_as_a_recording_opens_no_other_file(tmp_path, kind, mime_type):
    secret = tmp_path / "secret.wav"
    secret.write_bytes(wav())
    path = tmp_path / "film"
    path.write_text(PLAYLISTS[kind].format(secret=secret))
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "sound.wav"
    with pytest.raises(UnreadableDocument, match="can't be decoded"):
        ffmpeg.run(
            path,
            mime_type,
            ["-vn", "-f", "wav", f"file:{target}"],
            tmp_path / "out",
            seconds=20,
        )
    assert not target.exists() or target.stat().st_size < 100


@pytest.mark.slow
@needs_ffmpeg
def test_ffmpeg_can_read_nothing_but_its_file(tmp_path):
    other = tmp_path / "other.wav"
    other.write_bytes(wav())
    path = tmp_path / "mine.wav"
    path.write_bytes(wav())
    (tmp_path / "out").mkdir()
    if sandbox.landlock_abi() <= 0:
        pytest.skip("this system has no Landlock")
    options = ["-i", f"file:{other}", "-map", "1:a", "-f", "null", "-"]
    with pytest.raises(UnreadableDocument):
        ffmpeg.run(path, "audio/wav", options, tmp_path / "out", seconds=20)


@pytest.mark.slow
@needs_ffmpeg
def test_a_truncated_video_is_refused_or_read_as_far_as_it_goes(tmp_path):
    whole = make(tmp_path / "a.mp4", "-f", "lavfi", "-i", "testsrc=duration=4:rate=5")
    path = tmp_path / "cut.mp4"
    path.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(UnreadableDocument):
        watch(path)


@pytest.mark.slow
@needs_ffmpeg
def test_a_video_that_claims_to_be_endless_is_refused(tmp_path):
    path = make(tmp_path / "a.mkv", "-f", "lavfi", "-i", "testsrc=duration=2:rate=5")
    data = path.read_bytes()
    at = data.index(b"\x44\x89\x88") + 3  # the duration in milliseconds
    path.write_bytes(data[:at] + struct.pack(">d", 1e15) + data[at + 8 :])
    with pytest.raises(UnreadableDocument, match="longer than 2 hours"):
        watch(path, "video/x-matroska")


@pytest.mark.slow
@needs_ffmpeg
def test_frames_that_are_years_apart_are_refused(tmp_path):
    path = make(tmp_path / "a.mp4", "-f", "lavfi", "-i", "testsrc=duration=2:rate=5")
    data = path.read_bytes()
    at = data.index(b"stts") + 16  # the ticks between two frames
    path.write_bytes(data[:at] + b"\x7f\xff\xff\xff" + data[at + 4 :])
    with pytest.raises(UnreadableDocument):
        watch(path)


@pytest.mark.slow
@needs_ffmpeg
def test_frames_with_too_many_pixels_are_refused(tmp_path, monkeypatch):
    path = make(tmp_path / "a.mp4", "-f", "lavfi", "-i", "testsrc=size=64x64:duration=1")
    found = ffmpeg.inspect(path, "video/mp4", tmp_path)
    assert video._extract(found, 0.2, tmp_path / "a.jpg", lambda done, total: None)
    monkeypatch.setattr(ffmpeg, "MAX_PIXELS", 1_000)
    assert not video._extract(found, 0.2, tmp_path / "b.jpg", lambda done, total: None)


@pytest.mark.slow
@needs_ffmpeg
def test_a_picture_in_a_song_is_not_looked_at(tmp_path, heard):
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    frame = b"\0image/svg+xml\0\x03\0" + svg
    tag = b"APIC" + struct.pack(">I", len(frame)) + b"\0\0" + frame
    size = bytes(len(tag) >> shift & 0x7F for shift in (21, 14, 7, 0))
    song = make(tmp_path / "a.mp3", "-f", "lavfi", "-i", "sine=duration=2").read_bytes()
    path = tmp_path / "b.mp3"
    path.write_bytes(b"ID3\x03\0\0" + size + tag + song)
    assert transcription.transcribe(path, "audio/mpeg").text == "Hello."


@pytest.mark.parametrize("rate", [1, 0xFFFF_FFFF])
@pytest.mark.parametrize("channels", [1, 65_535])
def test_impossible_sample_rates_end_with_a_sentence_or_a_transcript(
    tmp_path, heard, rate, channels
):
    data = bytearray(wav(0.2))
    data[22:28] = struct.pack("<HI", channels, rate)
    path = tmp_path / "a.wav"
    path.write_bytes(bytes(data))
    with suppress(UnreadableDocument):
        assert transcription.transcribe(path, "audio/wav").text == "Hello."


def test_a_sound_file_that_claims_gigabytes_takes_none(tmp_path, heard):
    data = bytearray(wav(0.2))
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    path = tmp_path / "a.wav"
    path.write_bytes(bytes(data))
    assert transcription.transcribe(path, "audio/wav").text == "Hello."


@pytest.mark.slow
@needs_ffmpeg
def test_a_decoder_that_never_ends_is_killed(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(wav(5))
    options = ["-af", "aloop=-1:40000", "-f", "null", "-"]
    with pytest.raises(UnreadableDocument, match="took too long"):
        ffmpeg.run(path, "audio/wav", options, tmp_path, seconds=1.0)


@pytest.mark.slow
@needs_ffmpeg
def test_a_decoder_that_writes_without_end_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(ffmpeg, "FFMPEG", replace(ffmpeg.FFMPEG, file_bytes=100_000))
    path = tmp_path / "a.wav"
    path.write_bytes(wav(5))
    out = tmp_path / "out.wav"
    options = ["-af", "aloop=-1:40000", "-f", "wav", f"file:{out}"]
    with pytest.raises(UnreadableDocument):
        ffmpeg.run(path, "audio/wav", options, tmp_path, seconds=20)
    assert out.stat().st_size <= 100_000

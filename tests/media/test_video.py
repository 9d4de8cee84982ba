"""Videos become what is said and seen, each with its time."""

import subprocess

import pytest

from agents.knowledge.parsing import UnreadableDocument
from agents.media import ffmpeg, video
from tests.wire import serve_in_thread

from .sounds import segment

needs_ffmpeg = pytest.mark.skipif(not ffmpeg.executable(), reason="ffmpeg isn't installed")


@pytest.fixture
def clip(tmp_path):
    path = tmp_path / "clip.mp4"
    sources = ["testsrc=size=320x240:rate=5:duration=12", "sine=duration=12"]
    inputs = [part for each in sources for part in ("-f", "lavfi", "-i", each)]
    command = [ffmpeg.executable(), "-loglevel", "error", *inputs, "-shortest", str(path)]
    subprocess.run(command, check=True, timeout=60)
    return path


@pytest.mark.slow
@needs_ffmpeg
def test_a_video_is_heard_and_seen(clip, configure):
    pages = {
        "/v1/audio/transcriptions": {"segments": [segment(3, "Look at the clock.")]},
        "/v1/chat/completions": {"choices": [{"message": {"content": "A test card."}}]},
    }
    with serve_in_thread(pages=pages) as server:
        configure(transcription_model="whisper-1", transcription_url=server.url)
        configure(vision_model="seer", vision_url=server.url)
        found = video.read_video(clip, "clip.mp4", "video/mp4", lambda done, total: None)
    [part] = found.parts
    assert "[00:03] Look at the clock." in part.text
    assert part.text.count("(frame) A test card.") == 2


@pytest.mark.slow
@needs_ffmpeg
def test_a_damaged_video_is_refused(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(b"\0\0\0\x18ftypmp42" + bytes(200))
    with pytest.raises(UnreadableDocument, match="Neither speech nor text"):
        video.read_video(path, "a.mp4", "video/mp4", lambda done, total: None)


def test_without_ffmpeg_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(ffmpeg, "executable", lambda: "")
    with pytest.raises(UnreadableDocument, match="ffmpeg isn't installed"):
        video.read_video(tmp_path / "a.mp4", "a.mp4", "video/mp4", lambda done, total: None)

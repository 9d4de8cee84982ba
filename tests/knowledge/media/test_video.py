"""Videos become what is said and seen, each with its time."""

import os
import subprocess
from pathlib import Path

import pytest

from agents.knowledge.media import ffmpeg, scenes, video
from agents.knowledge.parsing import UnreadableDocument
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
    assert part.text.count("(frame) A test card.") == 1  # the same again isn't repeated
    assert len([one for one in found.usage if "seer" in one["model"]]) == 2


@pytest.fixture
def film(tmp_path):
    """Three scenes, of 4, 14 and 6 seconds."""
    colors = [("red", 4), ("green", 14), ("blue", 6)]
    sources = [f"color={name}:size=160x120:rate=5:duration={long}" for name, long in colors]
    inputs = [part for each in sources for part in ("-f", "lavfi", "-i", each)]
    path = tmp_path / "film.webm"
    joined = ["-filter_complex", "concat=n=3", "-c:v", "libvpx"]
    command = [ffmpeg.executable(), "-loglevel", "error", *inputs, *joined, str(path)]
    subprocess.run(command, check=True, timeout=60)
    return path


@pytest.mark.slow
@needs_ffmpeg
def test_a_video_is_looked_at_where_the_picture_changes(film, tmp_path):
    found = ffmpeg.inspect(film, "video/webm", tmp_path)
    changes = scenes.find_changes(found, tmp_path, lambda: None)
    assert changes == pytest.approx([4, 18], abs=0.6)
    assert scenes.measure(found, tmp_path, lambda: None) == pytest.approx(24, abs=1)


@pytest.mark.parametrize(
    ("duration", "changes", "moments"),
    [
        (0.0, [], [0.0]),
        (1.0, [], [0.3]),
        (12.0, [], [0.3, 6.15]),  # spread evenly
        (24.0, [4.0, 18.0], [0.3, 4.3, 18.3]),
        (24.0, [4.0, 4.2, 30.0], [0.3, 4.3]),  # too close, and after the end
        (60.0, [10.0], [0.3, 10.3, 22.725, 35.15]),  # the longest gaps are looked into
    ],
)
def test_moments_are_changes_first_and_then_an_even_spread(duration, changes, moments):
    assert scenes.choose(duration, changes) == pytest.approx(moments)


def test_a_video_with_many_cuts_is_looked_at_from_beginning_to_end():
    moments = scenes.choose(7_000, [float(second) for second in range(5, 7_000, 7)])
    assert len(moments) == scenes.MAX_FRAMES
    assert moments[0] < 10
    assert moments[-1] > 6_900


@pytest.mark.slow
@needs_ffmpeg
def test_a_damaged_video_is_refused(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(b"\0\0\0\x18ftypmp42" + bytes(200))
    with pytest.raises(UnreadableDocument, match="Neither speech nor text"):
        video.read_video(path, "a.mp4", "video/mp4", lambda done, total: None)


def test_finding_ffmpeg_starts_no_process(monkeypatch):
    """It would have the server's environment, with all its secrets."""
    monkeypatch.setattr(ffmpeg.shutil, "which", lambda name: None)
    monkeypatch.setattr(subprocess, "Popen", None)

    program = Path(ffmpeg.executable.__wrapped__())

    assert program.name.startswith("ffmpeg")
    assert os.access(program, os.X_OK)


def test_without_ffmpeg_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(ffmpeg, "executable", lambda: "")
    with pytest.raises(UnreadableDocument, match="ffmpeg isn't installed"):
        video.read_video(tmp_path / "a.mp4", "a.mp4", "video/mp4", lambda done, total: None)

"""Sound, video and images: transcripts, key frames, speech, and tools that make or describe."""

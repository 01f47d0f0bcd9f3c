"""Pictures, videos and speech, read and held against texts."""

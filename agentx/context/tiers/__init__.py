"""The steps of compaction, one file each."""

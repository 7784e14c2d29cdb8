"""The steps of compaction, one file each, with one interface: `Work` in, `Step` out."""

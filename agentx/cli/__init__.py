"""The command line: stdout is the answer, stderr is the story."""

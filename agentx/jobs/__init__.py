"""A job on disk: started, detached, watched, stopped, resumed."""

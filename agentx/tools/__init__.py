"""What the model can do: files, search, shell, notes and plan, restore."""

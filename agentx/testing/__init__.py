"""The test kit that agentx ships: a scripted model, a fault server on a real socket, a clock."""

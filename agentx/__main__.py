"""`python -m agentx` is the same program as `agentx`."""

from agentx.cli.main import main

if __name__ == "__main__":
    main()

"""`python -m replay_parity`."""

from replay_parity.cli.main import main

if __name__ == "__main__":
    main()

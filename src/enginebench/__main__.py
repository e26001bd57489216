"""`python -m enginebench`: the same as the `enginebench` command."""

from enginebench.cli.main import main

if __name__ == "__main__":
    main()

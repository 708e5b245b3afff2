"""``python -m lamina``: the same as the command ``lamina``."""

from lamina.cli.main import main

if __name__ == "__main__":
    main()

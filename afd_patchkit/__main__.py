"""`python -m afd_patchkit`."""

from afd_patchkit.cli import main

if __name__ == "__main__":
    main(prog_name="afd-patchkit")

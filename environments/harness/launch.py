"""A kernel that starts anew, as the user: python launch.py CONNECTION_FILE. See start.py."""

import sys

from harness.kernel import start

if __name__ == "__main__":
    start.main(sys.argv[1])

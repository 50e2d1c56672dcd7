"""The name of the user, where programs look for names.

Each sandbox has a user of its own, and the image has one name for it. The image's /etc/passwd
and /etc/group are links into a folder of root's in memory, see finish.sh: there they are
written once, before any other program runs.
"""

from __future__ import annotations

from harness.system import privileges
from harness.system.places import HARNESS

IMAGE = "/etc"
IMAGES_USER = "64000"  # the user's ids in the image


def write() -> None:
    """Write both files, as the image has them but for the user's ids."""
    for name in ("passwd", "group"):
        with open(f"{IMAGE}/{name}.image") as image, open(f"{HARNESS}/{name}", "w") as own:
            own.write(image.read().replace(IMAGES_USER, str(privileges.USER)))

"""Prints the packages that failed though none of their tests did, from go test -json.

Such a failure (TestMain, os.Exit) is not repeated by running a test again: what a second
run then says is that no test failed, which was so before.
"""

import json
import sys

failed: dict[str, int] = {}  # tests, by the package that is being run
for line in sys.stdin:
    event = json.loads(line)
    if event["Action"] == "fail" and "Package" in event:
        package = event["Package"]
        if "Test" in event:
            failed[package] = failed.get(package, 0) + 1
        elif not failed.pop(package, 0):
            print(package)

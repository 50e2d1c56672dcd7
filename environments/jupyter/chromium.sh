#!/bin/sh
# Debian's headless Chromium as a sandbox can run it: it has no namespaces of its own there,
# no display and little of /dev/shm.
exec chromium-headless-shell --no-sandbox --no-zygote --disable-gpu --disable-dev-shm-usage "$@"

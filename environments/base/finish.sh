#!/bin/sh
# The last step of each language's image: run by its Dockerfile, with environments/harness
# at /srv and environments/base at /media. Not by COPY, which keeps the modes of a host's
# files. Compiled for good, as nothing can be written later.
set -eu
mkdir /opt/notebox
cp -r --no-preserve=all /srv/*.py /srv/harness /opt/notebox/
install -m 755 /srv/supervisor /opt/notebox/
for name in installing layer apt; do cp --no-preserve=all /media/$name.py /opt/installers/; done
for name in kernelrelay messages; do cp --no-preserve=all /media/$name.py /opt/relay/; done
/opt/venv/bin/python3 -m compileall -q -f --invalidation-mode unchecked-hash \
    /opt/notebox /opt/installers /opt/relay
# Names of users are in a folder that is memory in a sandbox: the harness writes them there.
install -d -m 755 /run/notebox
for name in passwd group; do
    cp /etc/$name /etc/$name.image
    mv /etc/$name /run/notebox/
    ln -s /run/notebox/$name /etc/$name
done
rm -rf /run/secrets

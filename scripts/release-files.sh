#!/usr/bin/env bash
# Makes what a release has beside the program, below bin/release: man pages, and what makes
# shells complete its words. The same commit gives the same bytes.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
rm -rf bin/release
mkdir -p bin/release/man bin/release/completion
make -s build
bin/notebox man bin/release/man
gzip -9n bin/release/man/*.1
bin/notebox completion bash >bin/release/completion/notebox
bin/notebox completion zsh >bin/release/completion/_notebox
bin/notebox completion fish >bin/release/completion/notebox.fish

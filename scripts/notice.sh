#!/usr/bin/env bash
# Writes NOTICE from what the program is made of. notice.sh --check changes nothing: it
# fails where NOTICE is not that.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
case ${1:-} in '' | --check) ;; *) die "usage: notice.sh [--check]" ;; esac
new=$(mktemp)
trap 'rm -f -- "$new"' EXIT
# The flags that the program is built with, whoever calls: the tags decide what is in it.
GOFLAGS=$(sed -n "s/^export GOFLAGS := \\\$(GOFLAGS) //p" Makefile)
export GOFLAGS
go run ./scripts/notice >"$new"
if [ "${1:-}" = --check ]; then
  diff -u NOTICE "$new" >&2 || die "NOTICE is not what the program is made of: run scripts/notice.sh"
else
  cp -- "$new" NOTICE
fi

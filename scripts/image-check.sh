#!/usr/bin/env bash
# image-check.sh REF: shows that the image holds no trace of the host that built it, in
# any layer: no certificate that only this host trusts, nothing of its pip.conf, its
# .npmrc and its proxies; and that no file in it can raise the rights of who runs it.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export LC_ALL=C # bytes

readonly ref=${1:?the image}
in_image() { docker run --rm -i --network none --entrypoint sh "$ref" -c "$1"; }

work=$(mktemp -d)
trap 'rm -f -- "$work"/*; rmdir -- "$work"' EXIT
failures=0
fail() { say "FAILED: $*"; failures=$((failures + 1)); }

# certificates prints each certificate of a PEM file on one line.
certificates() {
  awk '/^-----BEGIN/ { text = ""; next } /^-----END/ { print text } { gsub(/[ \r]/, ""); text = text $0 }' | sort -u
}

# What everybody trusts is in the image as well: Debian's certificates, which dpkg
# vouches for, and those of the certifi packages, which the lock's hashes vouch for.
in_image 'dpkg --verify ca-certificates | grep -v ^missing || true' >"$work/altered"
if [ -s "$work/altered" ]; then fail "Debian's ca-certificates are altered: $(cat "$work/altered")"; fi
in_image 'cat /usr/share/ca-certificates/mozilla/*.crt
  find / -xdev -path "*/certifi/cacert.pem" -exec cat {} +' | certificates >"$work/public"
: >"$work/own"
ca=$(ca_bundle)
if [ -n "$ca" ]; then certificates <"$ca" | comm -23 - "$work/public" >"$work/own"; fi

# What to look for: of each certificate the last full line of its PEM text, which is of its
# signature; and of the configuration what holds a password.
awk '{ start = int((length($0) - 1) / 64) * 64 - 63; print substr($0, start, 64) }' "$work/own" >"$work/patterns"
python3 "$root/scripts/pip-conf.py" | sed '/^\[/d; s/^.* = //; s/^ *//' >"$work/values"
# Of .npmrc addresses, and what signs in, which is a password whatever it looks like; but a
# user's name may be any word.
python3 "$root/scripts/npm-conf.py" >"$work/npmrc"
sed -n '/^\/\//!s/^[^=]*=\(http.*\)/\1/p' "$work/npmrc" >>"$work/values"
sed -nE 's,^//.*:(_authToken|_auth|_password)=(.{8}),\2,p' "$work/npmrc" | tee -a "$work/patterns" >>"$work/values"
# Of Go's settings what has a password: an address without one may be everybody's.
if command -v go >/dev/null; then
  go env GOPROXY GOSUMDB | tr ',| ' '\n' | grep '://.*@' >>"$work/values" || true
fi
for name in http_proxy https_proxy HTTP_PROXY HTTPS_PROXY; do
  if [ -n "${!name:-}" ]; then echo "${!name}" >>"$work/values"; fi
done
grep '@' "$work/values" >>"$work/patterns" || true

# In every layer, also what a later one deletes; a saved layer may be compressed.
if [ -s "$work/patterns" ]; then
  docker save "$ref" | tar -x --to-command="gzip -dcf | grep -aFc -f '$work/patterns' || true" >"$work/hits"
  if grep -qvx 0 "$work/hits"; then fail "a certificate or password of this host is in the image"; fi
fi
in_image 'find / -xdev \( -name pip.conf -o -name .npmrc -o -path "/run/secrets/*" \)' >"$work/secrets"
if [ -s "$work/secrets" ]; then fail "secrets of the build: $(tr '\n' ' ' <"$work/secrets")"; fi
{ docker history --no-trunc "$ref" && docker image inspect "$ref"; } >"$work/description"
if [ -s "$work/values" ] && grep -F -f "$work/values" "$work/description"; then
  fail "this host's package index or proxy is in the image's description"
fi
in_image 'find / -xdev ! -type l -perm /6000' >"$work/raising"
if [ -s "$work/raising" ]; then fail "setuid or setgid: $(tr '\n' ' ' <"$work/raising")"; fi

[ "$failures" = 0 ] || die "$ref fails $failures of its checks"
say "$ref: none of this host's $(wc -l <"$work/own") own certificates, no secret of the build, no setuid file"

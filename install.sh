#!/bin/sh
# install.sh FROM [FOLDER]: installs notebox from a release, after its SHA-256 was compared.
#
#   FROM    the release's address (https://…, without a file's name), or a folder with its files
#   FOLDER  what bin/ and share/ are in: /usr/local as root, else ~/.local
#
# The program goes to bin/notebox, man pages and completions to share/, and for root on Linux the
# unit of systemd to lib/systemd/system. Nothing is installed if a sum differs. It needs tar,
# sha256sum or shasum, and curl for an address.
set -eu

die() { echo "install: $*" >&2; exit 1; }

# fetch NAME: one of the release's files. A redirection to plain HTTP is not followed.
fetch() {
  case $from in
  http://*@*) die "$from: only https is safe" ;; # what looks like a host can be a user's name
  https://*) curl -fsSL --proto '=https' --tlsv1.2 --retry 3 -o "$work/$1" "$from/$1" || die "$from/$1 cannot be fetched" ;;
  http://127.0.0.1:* | http://localhost:*) curl -fsS -o "$work/$1" "$from/$1" || die "$from/$1 cannot be fetched" ;;
  http://*) die "$from: only https is safe" ;;
  *) cp -- "$from/$1" "$work/$1" || die "$from/$1 is not there" ;;
  esac
}

sum() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# put MODE FILE PLACE: the old file is replaced by one that is complete, so that a program that
# runs goes on. Others may read it, whatever the umask is.
put() {
  mkdir -p "$folder/${3%/*}"
  cp "$2" "$folder/$3.new"
  chmod "$1" "$folder/$3.new"
  mv -f "$folder/$3.new" "$folder/$3"
}

# main is called in the last line: half a script does nothing.
main() {
  case $# in
  1 | 2) ;;
  *) die "usage: install.sh FROM [FOLDER]; FROM is a release's address or folder" ;;
  esac
  from=${1%/}
  if [ $# -eq 2 ]; then
    folder=$2
  elif [ "$(id -u)" = 0 ]; then
    folder=/usr/local
  else
    folder=$HOME/.local
  fi

  case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) die "there is no notebox for $(uname -s); on Windows use WSL2" ;;
  esac
  case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) die "there is no notebox for the processor $(uname -m)" ;;
  esac

  umask 022
  work=$(mktemp -d)
  new=$folder/bin/.notebox.$$
  trap 'rm -rf -- "$work" "$new"' EXIT
  trap 'exit 1' HUP INT TERM

  fetch checksums.txt
  # A line has a sum, two spaces and a name.
  line=$(grep -E "^[0-9a-f]{64}  notebox_[A-Za-z0-9.+~-]+_${os}_${arch}\.tar\.gz\$" "$work/checksums.txt") ||
    die "checksums.txt names no archive for $os on $arch"
  [ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || die "checksums.txt names several archives for $os on $arch"
  want=${line%% *}
  archive=${line##* }
  fetch "$archive"
  got=$(sum "$work/$archive")
  [ "$got" = "$want" ] || die "$archive has the SHA-256 $got, and checksums.txt says $want: nothing is installed"

  mkdir "$work/new"
  tar -xzf "$work/$archive" -C "$work/new"
  [ -f "$work/new/notebox" ] || die "$archive has no program in it"
  # It is tried where it will be: no program may run in the folder of temporary files.
  mkdir -p "$folder/bin"
  cp "$work/new/notebox" "$new"
  chmod 755 "$new"
  "$new" version >/dev/null || die "the program does not run on this machine, or not in $folder/bin"
  mv -f "$new" "$folder/bin/notebox"

  for page in "$work"/new/man/*.1.gz; do put 644 "$page" "share/man/man1/${page##*/}"; done
  put 644 "$work/new/completion/notebox" share/bash-completion/completions/notebox
  put 644 "$work/new/completion/_notebox" share/zsh/site-functions/_notebox
  put 644 "$work/new/completion/notebox.fish" share/fish/vendor_completions.d/notebox.fish
  if [ "$os" = linux ] && [ "$(id -u)" = 0 ]; then
    put 644 "$work/new/notebox.service" lib/systemd/system/notebox.service
  fi

  "$folder/bin/notebox" version
  case :$PATH: in
  *:"$folder/bin":*) ;;
  *) echo "install: add $folder/bin to your PATH" >&2 ;;
  esac
  echo "install: next: notebox image build, and notebox doctor" >&2
}

main "$@"

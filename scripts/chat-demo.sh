#!/usr/bin/env bash
# Takes the pictures of docs/chat: a session of notebox chat in tmux, against the real
# service with real sandboxes. The model is a script, docs/chat/dialogues.json.
# PYTHON is an interpreter with the package rich (default: python3); chromium makes the
# pictures PNG. XTERM, if it is set, is a node_modules with @xterm/xterm and
# @xterm/addon-image: that terminal shows the picture with an image in it, which tmux
# does not pass on.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

readonly start_seconds=120 answer_seconds=180 columns=100
readonly title="notebox chat (the model is a script)"
folder=$(mktemp -d "${TMPDIR:-/tmp}/notebox-chat.XXXXXX")
tmux=(tmux -S "$folder/tmux" -f /dev/null)
pids=()
stop() {
  "${tmux[@]}" kill-server 2>/dev/null || true
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" || true
  done
  rm -rf -- "$folder"
}
trap stop EXIT

# What a .env file or the caller's variables set is for a service of theirs.
for name in $(compgen -e | grep -E '^(NOTEBOX|OPENAI|ANTHROPIC|CLOUDFLARE)_' || true); do unset "$name"; done
go build -o "$folder/" ./cmd/notebox ./agent/agenttest/cmd/scriptedmodel
cp docs/chat/sales.csv "$folder"
(cd "$folder" && exec ./notebox serve --listen 127.0.0.1:0 --state-dir "$folder/state" --storage "file://$folder/files" --pool-size 1 2>"$folder/log") &
pids+=($!)
"$folder/scriptedmodel" -dialogue docs/chat/dialogues.json >"$folder/model" &
pids+=($!)
until url=$(sed -n 's/.*msg="notebox serves" url=\([^ ]*\).*/\1/p' "$folder/log") && [ -n "$url" ] && [ -s "$folder/model" ]; do
  [ "$SECONDS" -lt "$start_seconds" ] || { cat "$folder/log" >&2; die "the service did not start"; }
  sleep 0.2
done

# screen TEXT: waits for a text on the screen.
screen() {
  local until=$((SECONDS + answer_seconds))
  until "${tmux[@]}" capture-pane -p -t chat | grep -qF -- "$1"; do
    [ "$SECONDS" -lt "$until" ] || { "${tmux[@]}" capture-pane -p -t chat >&2; die "the screen does not show: $1"; }
    sleep 0.3
  done
}
# session ROWS [FLAG …]: a new console in a new terminal. Its bytes go to a file too.
session() {
  local rows=$1
  shift
  "${tmux[@]}" new-session -d -s chat -x "$columns" -y "$rows" -c "$folder" \
    env TERM=tmux-256color COLORTERM=truecolor OPENAI_API_KEY=scripted "OPENAI_BASE_URL=$(cat "$folder/model")" \
    sh -c 'stty -echo; read -r _; stty echo; exec "$@"' sh ./notebox chat -url "$url" -model scripted-model -history '' "$@"
  "${tmux[@]}" pipe-pane -t chat "cat >$folder/bytes"
  say_line ''
  screen 'notebox>'
}
say_line() { "${tmux[@]}" send-keys -t chat -l "$1" && "${tmux[@]}" send-keys -t chat Enter; }
# photograph NAME: of its page.
photograph() {
  local size
  size=$("${PYTHON:-python3}" scripts/terminal-picture.py --size "$folder/$1.html")
  chromium-headless-shell --no-sandbox --hide-scrollbars --force-device-scale-factor=1.5 --allow-file-access-from-files \
    --virtual-time-budget=10000 --window-size="$size" --screenshot="$folder/$1.png" "file://$folder/$1.html" 2>"$folder/chromium" ||
    { cat "$folder/chromium" >&2; die "no picture of $1"; }
  cp "$folder/$1.png" "docs/chat/$1.png"
  "${tmux[@]}" kill-session -t chat
}
# picture NAME: of the screen as it is.
picture() {
  "${tmux[@]}" capture-pane -e -p -t chat >"$folder/$1.ansi"
  "${PYTHON:-python3}" scripts/terminal-picture.py --columns "$columns" --title "$title" "$folder/$1.ansi" "$folder/$1.html"
  photograph "$1"
}

session 44
say_line 'Draw a damped oscillation. When is it below 10 %?'
screen 'The chart shows'
screen 'image '
sleep 1
picture chart

session 40
say_line 'What is the tenth Fibonacci number?'
screen 'did not exist'
sleep 1
picture corrected

session 42
say_line '/file sales.csv'
screen '+ /mnt/data/sales.csv'
say_line 'Which product sells best?'
screen 'file /mnt/data/by_product.csv'
sleep 1
picture file

if [ -n "${XTERM:-}" ]; then
  session 60 -images sixel
  say_line 'Draw a damped oscillation. When is it below 10 %?'
  screen 'image image_0.png'
  sleep 1
  "${PYTHON:-python3}" scripts/terminal-picture.py --xterm "$XTERM" --columns "$columns" --title "$title" "$folder/bytes" "$folder/inline.html"
  photograph inline
fi
say "docs/chat has new pictures: look at them, a browser may take one too early"

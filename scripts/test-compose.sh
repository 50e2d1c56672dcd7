#!/usr/bin/env bash
# Starts compose.yaml with each profile, on ports and volumes of its own: a run and its file, by TLS
# where Caddy is, and what Prometheus knows of it. The profiles' servers are made of packages.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

export COMPOSE_PROJECT_NAME=notebox-test-compose COMPOSE_FILE=compose.yaml:scripts/compose/packages.yaml
export NOTEBOX_PORT=18871 PROMETHEUS_PORT=18872 CADDY_HTTP=127.0.0.1:18873 CADDY_HTTPS=127.0.0.1:18874
readonly service=http://127.0.0.1:$NOTEBOX_PORT tls=https://localhost:18874 prometheus=http://127.0.0.1:$PROMETHEUS_PORT
readonly metrics_key=deploy/prometheus/key
[ ! -e "$metrics_key" ] || die "$metrics_key is there, and this test would write to it"
work=$(mktemp -d)
compose() { quietly scripts/compose.sh "$@"; }
finish() {
  PROFILES="azurite s3 monitoring caddy" compose down -v
  COMPOSE_FILE=deploy/compose/sidecar.yaml compose down -v
  as_root rm -rf -- "$work" "$metrics_key"
}
trap finish EXIT

# key NAME: a new API key of the service.
key() { scripts/compose.sh exec -T notebox notebox key -file /var/lib/notebox/api-keys "$@"; }

# run_at URL [CURL FLAG…]: a program prints and leaves a file, and both are there.
run_at() {
  local url=$1 reply
  shift
  reply=$(curl -sSf "$@" -H "Authorization: Bearer $secret" --json '{"code": "open(\"a.txt\", \"w\").write(\"left\")\nprint(6 * 7)"}' "$url/v1/execute")
  jq -e '.status == "ok" and (.text | startswith("42\n"))' <<<"$reply" >/dev/null || die "the reply is $reply"
  [ "$(curl -sSf "$@" "$(jq -r '.files[0].url' <<<"$reply")")" = left ] || die "the file is not there: $reply"
}

# start PROFILE… brings the service up, and services of these profiles that packages have.
start() {
  local services=(notebox "${@/monitoring/prometheus}")
  export PROFILES="$*"
  compose up -d "${services[@]}"
  until_ok curl -sf "$service/readyz"
  [ "$(curl -s -o /dev/null -w '%{http_code}' "$service/v1/environments")" = 401 ] || die "a service without a key lets somebody in"
  secret=$(key person)
  until_ok curl -sf -H "Authorization: Bearer $secret" "$service/v1/environments" # it reads its keys each second
}

scripts/compose-build.sh
scripts/compose-packages.sh
container=$(docker create notebox/service:compose)
docker cp "$container:/tmp" - | tar -tv | grep -q '^drwxrwxrwt' || die "without a tmpfs the service's image has no folder for temporary files"
docker rm "$container" >/dev/null
JUPYTER_IMAGE=$(scripts/image.sh)
export JUPYTER_IMAGE
(
  export COMPOSE_FILE=deploy/compose/sidecar.yaml
  start
  run_at "$service"
  compose down -v
)
say "sidecar works"
for profile in azurite s3; do
  start "$profile"
  run_at "$service"
  compose down -v
  say "$profile works"
done

start monitoring
key prometheus network=no sessions=no | as_root env install -m 400 -o 65534 /dev/stdin "$metrics_key" # as prometheus.yml says
run_at "$service"
# asked QUERY: Prometheus has a value above 0.
asked() { curl -sSfG "$prometheus/api/v1/query" --data-urlencode "query=$1" | jq -e '.data.result | any(.value[1] | tonumber > 0)'; }
until_ok asked 'notebox_runs_total{status="ok"}'
curl -sSf "$prometheus/api/v1/rules" | jq -e '.data.groups[0].rules | length > 0 and all(.lastError == null)' >/dev/null || die "a rule is not well"
compose down -v
say "monitoring works, without Grafana"

export NOTEBOX_PUBLIC_URL=$tls
start caddy
authority() { docker cp "$(scripts/compose.sh ps -q caddy):/tmp/data/caddy/pki/authorities/local/root.crt" "$work/"; }
until_ok authority
run_at "$tls" --cacert "$work/root.crt"
say "caddy works"

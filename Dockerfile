# The service in a container; see compose.yaml. The image has the program, the certificates of
# public authorities and no shell. Needs BuildKit.
#
# Secrets, neither of them required and nothing of them left in the image:
#   ca   the CA bundle that the building host trusts
#   go   the building host's GOPROXY and what belongs to it, as a shell would set them
FROM debian:trixie-slim AS build

RUN --mount=type=secret,id=ca \
    set -eu; \
    [ ! -s /run/secrets/ca ] || set -- -o Acquire::https::CAInfo=/run/secrets/ca; \
    apt-get "$@" update -q; \
    DEBIAN_FRONTEND=noninteractive apt-get "$@" install -y -q --no-install-recommends \
        ca-certificates golang-go

# Debian's Go fetches the toolchain that go.mod names.
COPY . /src
WORKDIR /src
RUN --mount=type=secret,id=ca --mount=type=secret,id=go \
    --mount=type=cache,target=/root/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    set -eu; \
    [ ! -s /run/secrets/ca ] || export SSL_CERT_FILE=/run/secrets/ca; \
    [ ! -s /run/secrets/go ] || { set -a; . /run/secrets/go; set +a; }; \
    export GOTOOLCHAIN=auto CGO_ENABLED=0; \
    go run ./scripts/supervisor; \
    go build -trimpath -buildvcs=false -tags=disable_grpc_modules,grpcnotrace -ldflags=-s -o /notebox ./cmd/notebox

# A user whose id no sandbox has (--sandbox-users), and the folders that the service writes to.
RUN set -eu; \
    mkdir -p /image/etc /state; \
    mkdir -m 1777 /image/tmp; \
    echo notebox:x:65532:65532::/var/lib/notebox:/none >/image/etc/passwd; \
    echo notebox:x:65532: >/image/etc/group

FROM scratch
COPY --from=build /image /
COPY --from=build --chown=65532:65532 /state /var/lib/notebox
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /notebox /usr/local/bin/

# The Docker socket's group is given at run time: docker run --group-add.
USER 65532:65532
# All that the service keeps is below one folder, which belongs on a volume.
ENV NOTEBOX_LISTEN=0.0.0.0:8080 \
    NOTEBOX_API_KEYS_FILE=/var/lib/notebox/api-keys \
    NOTEBOX_FIRST_KEY=true \
    NOTEBOX_STATE_DIR=/var/lib/notebox/state \
    NOTEBOX_STORAGE=file:///var/lib/notebox/storage
VOLUME /var/lib/notebox
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=15s --start-period=60s CMD ["notebox", "healthcheck"]
ENTRYPOINT ["notebox"]
CMD ["serve"]

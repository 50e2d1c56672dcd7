package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"
)

// callTimeout bounds a call of the daemon's API that does no work.
const callTimeout = 20 * time.Second

// Secrets of a build, by the names that the Dockerfiles know.
const (
	SecretCA  = "ca"  // the certificates that this host trusts, PEM
	SecretPip = "pip" // pip.conf
	SecretNPM = "npm" // .npmrc
	SecretGo  = "go"  // GOPROXY and what belongs to it, as a shell would set them
)

// Options of a Builder.
type Options struct {
	// Secrets are there while a step of a build runs.
	Secrets map[string][]byte
	// Proxies are build arguments that BuildKit knows and leaves out of the image:
	// HTTPS_PROXY and its like.
	Proxies map[string]string
	// Progress gets a line for each step; nil: nobody.
	Progress io.Writer
	// NoCache makes each step anew.
	NoCache bool
}

// Builder builds images on the daemon that the environment names.
type Builder struct {
	api      *client.Client
	options  Options
	pullTime time.Duration
}

// New does not talk to the daemon yet.
func New(o Options) (*Builder, error) {
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("docker client: %w", err)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return &Builder{api: api, options: o, pullTime: pullTime}, nil
}

// Close lets the connections go.
func (b *Builder) Close() error { return b.api.Close() }

// Arch is the processor of the daemon's host, as Go names it.
func (b *Builder) Arch(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	about, err := b.api.ServerVersion(ctx)
	if err != nil {
		return "", unreached(err)
	}
	return about.Arch, nil
}

// Has reports whether the daemon has an image.
func (b *Builder) Has(ctx context.Context, ref string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := b.api.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, unreached(err)
}

// unreached says what to do if there is no daemon.
func unreached(err error) error {
	dial := (*net.OpError)(nil) // of the session of a build, whose error has no type of its own
	if err == nil || !client.IsErrConnectionFailed(err) && !errors.As(err, &dial) {
		return err
	}
	return fmt.Errorf("%w; notebox doctor says more", err)
}

func (b *Builder) say(format string, values ...any) {
	fmt.Fprintf(b.options.Progress, format+"\n", values...)
}

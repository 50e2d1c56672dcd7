package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/docker/docker/api/types/build"
	"github.com/moby/buildkit/identity"
	"github.com/moby/buildkit/session"
	"github.com/moby/buildkit/session/secrets/secretsprovider"
	"golang.org/x/sync/errgroup"
)

// Image is one to be built.
type Image struct {
	Ref        string // its name and tag
	Dockerfile string // its path in the context
	// Context writes the tar file. It is called once.
	Context func(w io.Writer) error
	Args    map[string]string // the Dockerfile's arguments
}

// fromUpload is where the daemon takes the context from: the body of another call.
const fromUpload = "upload-request"

// FailedError is a build that the daemon began and did not finish.
type FailedError struct {
	Ref, Why string
	Log      string // the last that the steps have said
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("build %s: %s\n%s", e.Ref, e.Why, e.Log)
}

// Build builds an image and tags it. A build that fails is a *FailedError.
func (b *Builder) Build(ctx context.Context, i Image) error {
	s, err := session.NewSession(ctx, "notebox")
	if err != nil {
		return fmt.Errorf("build %s: %w", i.Ref, err)
	}
	s.Allow(secretsprovider.FromMap(b.options.Secrets))
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		return s.Run(ctx, func(ctx context.Context, proto string, meta map[string][]string) (net.Conn, error) {
			return b.api.DialHijack(ctx, "/session", proto, meta)
		})
	})
	id := identity.NewID()
	all.Go(func() error { return b.upload(ctx, id, i) })
	all.Go(func() error {
		defer s.Close() // which ends Run
		return b.ask(ctx, s.ID(), id, i)
	})
	if err := all.Wait(); err != nil {
		return unreached(err)
	}
	return nil
}

// upload answers the daemon's wish for the context, by a call that lasts until it is read.
func (b *Builder) upload(ctx context.Context, id string, i Image) error {
	in, out := io.Pipe()
	var written errgroup.Group
	written.Go(func() error {
		err := i.Context(out)
		out.CloseWithError(err)
		return err
	})
	res, err := b.api.ImageBuild(ctx, in, build.ImageBuildOptions{Version: build.BuilderBuildKit, BuildID: fromUpload + ":" + id})
	in.CloseWithError(io.ErrClosedPipe)
	failed := written.Wait()
	if err != nil {
		return errors.Join(fmt.Errorf("build %s: send the context: %w", i.Ref, err), failed)
	}
	return res.Body.Close()
}

// ask asks for the build, and follows it.
func (b *Builder) ask(ctx context.Context, sessionID, id string, i Image) error {
	args := map[string]*string{}
	for _, given := range []map[string]string{b.options.Proxies, i.Args} {
		for name, value := range given {
			args[name] = &value
		}
	}
	res, err := b.api.ImageBuild(ctx, nil, build.ImageBuildOptions{
		Version: build.BuilderBuildKit, BuildID: id, SessionID: sessionID, RemoteContext: fromUpload,
		Tags: []string{i.Ref}, Dockerfile: i.Dockerfile, BuildArgs: args, NoCache: b.options.NoCache,
		// A company's proxy or name server may be reachable from the host alone.
		NetworkMode: "host",
		Remove:      true,
	})
	if err != nil {
		return fmt.Errorf("build %s: %w", i.Ref, err)
	}
	defer res.Body.Close()
	return follow(res.Body, i.Ref, b.say)
}

package dependencies

import (
	"context"
	"errors"
	"io"
	"time"

	"notebox/environments"
)

// Images keeps layers. All methods may be called at the same time. A name is of hexadecimal
// digits.
type Images interface {
	// List returns what this service has kept, in this process and in others before.
	List(ctx context.Context) ([]Image, error)
	// ID returns what a reference stands for now, or an error that is ErrNoImage.
	ID(ctx context.Context, ref string) (string, error)
	// Commit makes an image of base and an archive of what belongs below
	// /opt/dependencies, under name. Of l, Ref and Names are not looked at. If it
	// fails, what is left has that name, or none: Forget and Sweep remove it.
	Commit(ctx context.Context, base, name string, content io.Reader, l Image) (ref string, err error)
	// Alias gives an image another name, or the same one again, which is then used now.
	Alias(ctx context.Context, ref, name string) error
	// Forget takes a name away. The image goes with its last one.
	Forget(ctx context.Context, name string) error
	// Sweep removes what has no name, of commits that came to nothing.
	Sweep(ctx context.Context) error
	// Remove removes an image and all of its names of this service. The error is ErrInUse if a
	// container is made of it.
	Remove(ctx context.Context, image Image) error
}

// What Images says.
var (
	ErrNoImage = errors.New("there is no such image")
	ErrInUse   = errors.New("the image is in use")
)

// Image is one that was kept: a layer, or an environment's own image that has names of
// sets for which nothing is to be installed.
type Image struct {
	Ref         string   // to start from
	Names       []string // that it has, for this service
	Layer       string   // the name it was committed under; "" if nothing is installed
	Environment string   // of a layer: its name,
	Base        string   // and the ID of the image that it was made from; of others, its own
	Packages    []environments.Package
	Bytes       int64     // of contents, and some for each file
	Used        time.Time // last, as far as is known
	InUse       bool      // of List: a container is made of it
}

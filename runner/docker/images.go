package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"notebox/dependencies"
)

// The labels of an image with packages, beside those of the container that it was made of.
const (
	labelLayer    = "notebox.layer"    // its own name
	LabelBase     = "notebox.base"     // the ID of the image below
	labelPackages = "notebox.packages" // JSON
	labelBytes    = "notebox.bytes"    // of contents
)

const (
	// layers is the repository of all images with packages. A tag is the service's, by a
	// hash of its id, and a name.
	layers = "notebox/dependencies"
	// layerFolder is where packages are in an image.
	layerFolder = "/opt/dependencies"
)

// Images are an Engine's images with packages. It implements dependencies.Images.
type Images struct {
	engine *Engine
	prefix string // of the tags that are this service's
}

var _ dependencies.Images = (*Images)(nil)

// Images returns those of Options.Layers.
func (e *Engine) Images() *Images {
	sum := sha256.Sum256([]byte(cmp.Or(e.options.Layers, e.options.ServiceID)))
	return &Images{engine: e, prefix: layers + ":" + hex.EncodeToString(sum[:])[:16] + "-"}
}

// Reference is a pattern of all names of these images, as docker image ls --filter
// reference=… takes it.
func (i *Images) Reference() string { return i.prefix + "*" }

// List implements dependencies.Images.
func (i *Images) List(ctx context.Context) ([]dependencies.Image, error) {
	found, err := i.engine.api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", i.Reference()))})
	if err != nil {
		return nil, failedTo("list packages that are kept", fmt.Errorf("list images: %w", err))
	}
	users, err := i.engine.api.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, failedTo("list packages that are kept", fmt.Errorf("list containers: %w", err))
	}
	used := map[string]bool{}
	for _, user := range users {
		used[user.ImageID] = true
	}
	var all []dependencies.Image
	for _, summary := range found {
		about, err := i.engine.api.ImageInspect(ctx, summary.ID)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, failedTo("list packages that are kept", fmt.Errorf("inspect image: %w", err))
		}
		if one, ours := i.read(about); ours {
			one.InUse = used[about.ID]
			all = append(all, one)
		}
	}
	return all, nil
}

// read is an image as it was kept. It is not ours if it has none of our names.
func (i *Images) read(about image.InspectResponse) (one dependencies.Image, ours bool) {
	for _, tag := range about.RepoTags {
		if name, ok := strings.CutPrefix(tag, i.prefix); ok {
			one.Names = append(one.Names, name)
			one.Ref = tag
		}
	}
	one.Base, one.Used = about.ID, about.Metadata.LastTagTime
	if about.Config != nil && about.Config.Labels[labelLayer] != "" {
		l := about.Config.Labels
		one.Layer, one.Environment, one.Base = l[labelLayer], l[labelEnvironment], l[LabelBase]
		one.Ref = i.prefix + one.Layer
		one.Bytes, _ = strconv.ParseInt(l[labelBytes], 10, 64)
		_ = json.Unmarshal([]byte(l[labelPackages]), &one.Packages) // Commit has written it
	}
	return one, len(one.Names) > 0
}

// ID implements dependencies.Images.
func (i *Images) ID(ctx context.Context, ref string) (string, error) {
	about, err := i.engine.api.ImageInspect(ctx, ref)
	switch {
	case errdefs.IsNotFound(err):
		return "", fmt.Errorf("%w: %w", dependencies.ErrNoImage, err)
	case err != nil:
		return "", failedTo("look an image up", fmt.Errorf("inspect image: %w", err))
	}
	return about.ID, nil
}

// Commit implements dependencies.Images: by a container that is never started.
func (i *Images) Commit(ctx context.Context, base, name string, content io.Reader, l dependencies.Image) (string, error) {
	packages, err := json.Marshal(l.Packages)
	if err != nil {
		return "", err
	}
	id := strings.ToLower(rand.Text())
	made := namePrefix + "layer-" + id
	i.engine.look(made, ids{})
	var created error
	defer func() { i.engine.removeCreated(made, created) }()
	created = i.engine.create(ctx, made, &container.Config{Image: base, NetworkDisabled: true, Labels: map[string]string{
		LabelService:     i.engine.options.ServiceID,
		labelSandbox:     id,
		labelEnvironment: l.Environment,
		labelLayer:       name,
		LabelBase:        l.Base,
		labelPackages:    string(packages),
		labelBytes:       strconv.FormatInt(l.Bytes, 10),
	}}, &container.HostConfig{NetworkMode: "none"})
	if created != nil {
		return "", failedTo("keep packages", created)
	}
	if err := i.engine.api.CopyToContainer(ctx, made, layerFolder, content, container.CopyToContainerOptions{}); err != nil {
		return "", failedTo("keep packages", fmt.Errorf("copy to container: %w", err))
	}
	ref := i.prefix + name
	if _, err := i.engine.api.ContainerCommit(ctx, made, container.CommitOptions{Reference: ref}); err != nil {
		return "", failedTo("keep packages", fmt.Errorf("commit container: %w", err))
	}
	return ref, nil
}

// Alias implements dependencies.Images. The daemon remembers when an image was last tagged.
func (i *Images) Alias(ctx context.Context, ref, name string) error {
	if err := i.engine.api.ImageTag(ctx, ref, i.prefix+name); err != nil {
		return failedTo("name packages that are kept", fmt.Errorf("tag image: %w", err))
	}
	return nil
}

// Forget implements dependencies.Images.
func (i *Images) Forget(ctx context.Context, name string) error { return i.untag(ctx, i.prefix+name) }

// Sweep implements dependencies.Images. The daemon makes an image before it gives it its
// name. A layer that was committed under a name which another has by now is swept as well.
func (i *Images) Sweep(ctx context.Context) error {
	found, err := i.engine.api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(
		filters.Arg("dangling", "true"),
		filters.Arg("label", LabelService+"="+i.engine.options.ServiceID),
		filters.Arg("label", labelLayer),
	)})
	if err != nil {
		return failedTo("remove packages", fmt.Errorf("list images: %w", err))
	}
	var failed []error
	for _, summary := range found {
		failed = append(failed, i.untag(ctx, summary.ID))
	}
	return errors.Join(failed...)
}

func (i *Images) untag(ctx context.Context, tag string) error {
	_, err := i.engine.api.ImageRemove(ctx, tag, image.RemoveOptions{PruneChildren: true})
	switch {
	case errdefs.IsConflict(err):
		return fmt.Errorf("%w: %w", dependencies.ErrInUse, err)
	case err != nil && !errdefs.IsNotFound(err):
		return failedTo("remove packages", fmt.Errorf("remove image: %w", err))
	}
	return nil
}

// Remove implements dependencies.Images. The name it was committed under goes last: with
// that, it can be found again if something comes between. The daemon refuses to take
// the last name of an image that is in use, and no other: an image that stays gets those back.
func (i *Images) Remove(ctx context.Context, l dependencies.Image) error {
	about, err := i.engine.api.ImageInspect(ctx, l.Ref)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return failedTo("remove packages", fmt.Errorf("inspect image: %w", err))
	}
	users, err := i.engine.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("ancestor", about.ID))})
	if err != nil {
		return failedTo("remove packages", fmt.Errorf("list containers: %w", err))
	}
	if len(users) > 0 {
		return dependencies.ErrInUse
	}
	names := slices.DeleteFunc(about.RepoTags, func(tag string) bool { return !strings.HasPrefix(tag, i.prefix) || tag == l.Ref })
	for at, tag := range append(names, l.Ref) {
		if err := i.untag(ctx, tag); err != nil { // a container may have been made meanwhile
			return errors.Join(err, i.retag(ctx, l.Ref, names[:at]))
		}
	}
	return nil
}

// retag gives an image back its names.
func (i *Images) retag(ctx context.Context, ref string, names []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	var failed []error
	for _, name := range names {
		if err := i.engine.api.ImageTag(ctx, ref, name); err != nil {
			failed = append(failed, failedTo("name packages that are kept", fmt.Errorf("tag image: %w", err)))
		}
	}
	return errors.Join(failed...)
}

// failedTo is explain for what is done with images.
func failedTo(what string, err error) error {
	return explain(err, "the Docker daemon takes too long to "+what, "the Docker daemon failed to "+what)
}

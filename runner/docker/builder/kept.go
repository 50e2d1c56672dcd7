package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"notebox/runner/docker"
)

// State is what an image is to this program.
type State string

// The states of images.
const (
	Current State = "current" // code runs in it
	Missing State = "missing" // it is not built
	Old     State = "old"     // another version of notebox has built it
)

// Kept is an image of a language, or one that there should be.
type Kept struct {
	Name    string    `json:"name"` // of the environment
	Ref     string    `json:"image"`
	State   State     `json:"state"`
	Bytes   int64     `json:"bytes"`   // what it has in common with others included
	Created time.Time `json:"created"` // zero if it is missing
	InUse   bool      `json:"in_use"`  // a container is made from it, or the caller keeps it
	Serving bool      `json:"serving"` // a notebox of another version runs code in it
}

// hashed is a tag that is a hash of what an image is made of: no tag of anybody else's is.
var hashed = regexp.MustCompile(`^[0-9a-f]{16}$`)

// List returns the images of environments, given as names and references that this program
// has for them: first each of these, and then old ones, the newest first. An image of keep, by
// a name or an ID, counts as in use.
func (b *Builder) List(ctx context.Context, refs map[string]string, keep ...string) ([]Kept, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := b.api.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", unreached(err))
	}
	users, err := b.api.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", unreached(err))
	}
	names, known := map[string]string{}, map[string]bool{}
	for name, ref := range refs {
		repository, _, _ := strings.Cut(ref, ":")
		names[repository], known[ref] = name, true
	}
	current := map[string]bool{}
	for _, one := range found {
		current[one.ID] = slices.ContainsFunc(one.RepoTags, func(ref string) bool { return known[ref] })
	}
	used, serving := inUse(users, current)
	kept := map[string]bool{}
	for _, name := range keep {
		kept[name] = true
		about, err := b.api.ImageInspect(ctx, name)
		switch {
		case err == nil:
			used[about.ID] = true
		case !errdefs.IsNotFound(err): // what is not there needs nothing
			return nil, fmt.Errorf("look at the image %s: %w", name, unreached(err))
		}
	}
	var all []Kept
	for _, one := range found {
		for _, ref := range one.RepoTags {
			repository, tag, _ := strings.Cut(ref, ":")
			name, ours := names[repository]
			if !ours || !known[ref] && !hashed.MatchString(tag) {
				continue
			}
			k := Kept{Name: name, Ref: ref, State: Old, Bytes: one.Size, Created: time.Unix(one.Created, 0).UTC(), InUse: used[one.ID], Serving: serving[one.ID]}
			switch {
			case known[ref]:
				k.State = Current
				delete(known, ref)
			case current[one.ID]: // another name of it, which containers do not need
				k.InUse, k.Serving = kept[ref], false
			}
			all = append(all, k)
		}
	}
	for name, ref := range refs {
		if known[ref] {
			all = append(all, Kept{Name: name, Ref: ref, State: Missing})
		}
	}
	slices.SortFunc(all, func(a, b Kept) int {
		old := func(k Kept) int {
			if k.State == Old {
				return 1
			}
			return 0
		}
		return cmp.Or(old(a)-old(b), cmp.Compare(a.Name, b.Name), b.Created.Compare(a.Created), cmp.Compare(a.Ref, b.Ref))
	})
	return all, nil
}

// inUse tells which images containers are made from, and which of these are of a notebox that
// runs. The old images of one that also has current ones are of sessions that it has taken over.
func inUse(all []container.Summary, current map[string]bool) (used, serving map[string]bool) {
	used, serving = map[string]bool{}, map[string]bool{}
	// Of a container with packages the language's image is the one below.
	images := func(c container.Summary) []string { return []string{c.ImageID, c.Labels[docker.LabelBase]} }
	updated := map[string]bool{}
	for _, c := range all {
		service := c.Labels[docker.LabelService]
		updated[service] = updated[service] || slices.ContainsFunc(images(c), func(id string) bool { return current[id] })
	}
	for _, c := range all {
		service := c.Labels[docker.LabelService]
		for _, id := range images(c) {
			used[id] = true
			serving[id] = serving[id] || c.State == container.StateRunning && service != "" && !updated[service]
		}
	}
	return used, serving
}

// ErrInUse says that a container is made from an image, or another image.
var ErrInUse = errors.New("it is in use")

// Remove removes the name of an image, and its layers if it has no other name.
func (b *Builder) Remove(ctx context.Context, ref string) error {
	_, err := b.api.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
	switch {
	case errdefs.IsConflict(err):
		return fmt.Errorf("remove %s: %w", ref, ErrInUse)
	case errdefs.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("remove %s: %w", ref, unreached(err))
	}
	return nil
}

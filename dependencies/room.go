package dependencies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Stats is what is kept.
type Stats struct {
	Layers     int
	Bytes      int64 // of contents
	Installing int
}

// Stats returns what there is now.
func (l *Layers) Stats() (s Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Layers, s.Bytes = l.kept()
	s.Installing = len(l.under)
	return s
}

// kept is the number and the bytes of the layers. The lock is held.
func (l *Layers) kept() (count int, bytes int64) {
	for _, layer := range l.layers {
		if layer.Layer != "" {
			count++
			bytes += layer.Bytes
		}
	}
	return count, bytes
}

// load takes over what an earlier process has kept, and removes what nobody can ask for
// any more: layers of images that this program does not start from.
func (l *Layers) load(ctx context.Context, images []string) error {
	current, complete := map[string]bool{}, true
	for _, ref := range images {
		switch id, err := l.base(ctx, ref); {
		case err == nil:
			current[id] = true
		case !errors.Is(err, ErrNoImage): // one that is missing has no layers that could be used; others may have
			complete = false
			l.log.Warn("it is not known what an image is now: layers of others are left", "ref", ref, "error", err)
		}
	}
	kept, err := l.options.Images.List(ctx)
	if err != nil {
		return fmt.Errorf("dependencies: %w", err)
	}
	l.sweep(ctx)
	for _, image := range kept {
		if complete && !current[image.Base] && !l.options.Shared {
			l.removeOld(ctx, image)
			continue
		}
		it, own := &layer{Image: image, held: image.InUse}, image.Layer
		if own == "" {
			own = "base " + image.Base
		}
		l.layers[own] = it
		for _, key := range image.Names {
			if key != image.Layer {
				l.names[key] = &name{it, image.Used}
			}
		}
	}
	l.mu.Lock()
	layers, bytes := l.kept()
	l.mu.Unlock()
	if layers > 0 {
		l.log.Info("packages that were installed before", "layers", layers, "bytes", bytes)
	}
	if err := l.keeping.Acquire(ctx, 1); err != nil {
		return err
	}
	defer l.keeping.Release(1)
	if err := l.makeRoom(ctx, 0, 0); err != nil { // the bounds may be lower than they were
		l.log.Warn("more packages are kept than may be", "error", err)
	}
	return nil
}

// sweep removes what an earlier process was killed over.
func (l *Layers) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, imagesTime)
	defer cancel()
	if err := l.options.Images.Sweep(ctx); err != nil {
		l.log.Warn("layers that were not finished are left", "error", err)
	}
}

func (l *Layers) removeOld(ctx context.Context, image Image) {
	ctx, cancel := context.WithTimeout(ctx, imagesTime)
	defer cancel()
	var err error
	if image.Layer == "" { // the image is the operator's; only the names are ours
		for _, key := range image.Names {
			err = errors.Join(err, l.options.Images.Forget(ctx, key))
		}
	} else {
		err = l.options.Images.Remove(ctx, image)
	}
	if err != nil {
		l.log.Warn("a layer of an image that is not used any more is left", "ref", image.Ref, "error", err)
		return
	}
	l.log.Info("removed a layer of an image that is not used any more", "environment", image.Environment)
}

// makeRoom removes layers until there is room for `more` layers of `bytes` in all. keeping is
// held.
func (l *Layers) makeRoom(ctx context.Context, more int, bytes int64) error {
	for {
		l.mu.Lock()
		count, total := l.kept()
		if count+more <= l.options.MaxLayers && total+bytes <= l.options.MaxTotal {
			l.mu.Unlock()
			return nil
		}
		it := l.oldest()
		if it == nil {
			l.mu.Unlock()
			return noRoom()
		}
		it.leaving = make(chan struct{}) // from here on nobody is given it
		l.mu.Unlock()
		err := l.remove(ctx, it)
		l.mu.Lock()
		if err == nil {
			l.drop(it)
		} else {
			it.stays = time.Now()
		}
		close(it.leaving)
		it.leaving = nil
		l.mu.Unlock()
		if err != nil {
			l.log.Info("a layer stays, as it cannot be removed now", "ref", it.Ref, "error", err)
		}
	}
}

// oldest is the layer that was not used for the longest time, of those that nobody uses.
// The lock is held.
func (l *Layers) oldest() (found *layer) {
	for _, it := range l.layers {
		if it.Layer != "" && it.users == 0 && time.Since(it.stays) > staysTime && (found == nil || it.Used.Before(found.Used)) {
			found = it
		}
	}
	return found
}

// remove removes a layer, after its sandboxes that wait. Those take a moment to be gone,
// a shorter one if a session had the layer: that stays until it ends, and is noticed when
// it is tried the next time.
func (l *Layers) remove(ctx context.Context, it *layer) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), imagesTime)
	defer cancel()
	if l.options.Forget != nil {
		l.options.Forget(it.Ref)
	}
	err := l.options.Images.Remove(ctx, it.Image)
	patience := forgetTime
	if it.held {
		patience /= 5
	}
	for begun := time.Now(); errors.Is(err, ErrInUse) && time.Since(begun) < patience && ctx.Err() == nil; {
		time.Sleep(forgetTime / 20)
		err = l.options.Images.Remove(ctx, it.Image)
	}
	if err == nil {
		l.log.Info("removed packages to make room", "environment", it.Environment, "bytes", it.Bytes, "used", it.Used)
	}
	return err
}

// trim takes from a layer the names of sets that were not asked for in the longest time.
// keeping is held.
func (l *Layers) trim(ctx context.Context, it *layer) {
	l.mu.Lock()
	var keys []string
	for key, n := range l.names {
		if n.layer == it {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return l.names[b].used.Compare(l.names[a].used) })
	surplus := keys[min(len(keys), maxNames):]
	for _, key := range surplus {
		delete(l.names, key)
	}
	l.mu.Unlock()
	for _, key := range surplus {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), imagesTime)
		if err := l.options.Images.Forget(ctx, key); err != nil {
			l.log.Warn("a name of a layer is left", "ref", it.Ref, "error", err)
		}
		cancel()
	}
}

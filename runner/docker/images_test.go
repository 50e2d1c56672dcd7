package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/dependencies"
	"notebox/environments"
)

// archiveOf is an archive with a folder python and these files in it.
func archiveOf(t *testing.T, files map[string]string) *bytes.Reader {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "python/", Mode: 0o755}))
	for name, content := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "python/" + name, Mode: 0o644, Size: int64(len(content))}))
		_, err := w.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return bytes.NewReader(out.Bytes())
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// TestImages: what is kept is found again by another process of the service, and by no
// other service.
func TestImages(t *testing.T) {
	ctx, base := t.Context(), environment(t).Image
	service := "test-images-" + strings.ToLower(rand.Text())
	images := newEngine(t, service).Images()
	t.Cleanup(func() {
		all, err := images.List(context.Background())
		require.NoError(t, err)
		for _, i := range all {
			require.NoError(t, images.Remove(context.Background(), i))
		}
	})
	id, err := images.ID(ctx, base)
	require.NoError(t, err)
	_, err = images.ID(ctx, "notebox/none:1")
	require.ErrorIs(t, err, dependencies.ErrNoImage)

	packages := []environments.Package{{Name: "six", Version: "1.17.0"}}
	asked := dependencies.Image{Environment: "jupyter", Base: id, Packages: packages, Bytes: 5}
	ref, err := images.Commit(ctx, base, "abc", archiveOf(t, map[string]string{"six.py": "x = 5"}), asked)
	require.NoError(t, err)
	require.NoError(t, images.Alias(ctx, ref, "def"))
	require.NoError(t, images.Alias(ctx, ref, "123"))
	require.NoError(t, images.Alias(ctx, base, "456"))

	all, err := newEngine(t, service).Images().List(ctx)
	require.NoError(t, err)
	require.Len(t, all, 2)
	layer, plain := all[0], all[1]
	if layer.Layer == "" {
		layer, plain = plain, layer
	}
	require.ElementsMatch(t, []string{"abc", "def", "123"}, layer.Names)
	require.WithinDuration(t, time.Now(), layer.Used, time.Minute)
	require.Equal(t, dependencies.Image{
		Ref: ref, Names: layer.Names, Layer: "abc", Environment: "jupyter", Base: id, Packages: packages, Bytes: 5, Used: layer.Used,
	}, layer)
	require.Equal(t, []string{"456"}, plain.Names)
	require.Equal(t, id, plain.Base)
	other, err := newEngine(t, service+"-other").Images().List(ctx)
	require.NoError(t, err)
	require.Empty(t, other)

	about := docker(t, "image", "inspect", "--format", "{{.Config.Entrypoint}} {{.Config.User}} {{.Config.Env}}", ref)
	require.Equal(t, docker(t, "image", "inspect", "--format", "{{.Config.Entrypoint}} {{.Config.User}} {{.Config.Env}}", base), about)
	used := docker(t, "create", "--network", "none", "--entrypoint", "cat", ref, "/opt/dependencies/python/six.py")
	defer func() { _ = exec.Command("docker", "rm", used).Run() }()
	require.Equal(t, "x = 5", docker(t, "start", "-a", used))
	require.ErrorIs(t, images.Remove(ctx, layer), dependencies.ErrInUse)
	again, err := images.List(ctx)
	require.NoError(t, err)
	require.Len(t, again, 2, "nothing of it was taken away")
	require.Len(t, again[0].Names, len(all[0].Names))
	for _, i := range again {
		require.True(t, i.InUse || i.Layer == "")
	}
	docker(t, "rm", used)

	require.NoError(t, images.Forget(ctx, "def"))
	require.NoError(t, images.Forget(ctx, "def"))
	require.NoError(t, images.Forget(ctx, "456"))
	require.NoError(t, images.Remove(ctx, layer))
	require.NoError(t, images.Remove(ctx, layer))
	_, err = images.ID(ctx, ref)
	require.ErrorIs(t, err, dependencies.ErrNoImage)
	_, err = images.ID(ctx, base)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(left(t, service)) == 0 }, time.Minute, 100*time.Millisecond, "a container is left")
}

// TestImagesSweep removes a layer that has lost its name, and no other.
func TestImagesSweep(t *testing.T) {
	service := "test-images-" + strings.ToLower(rand.Text())
	images := newEngine(t, service).Images()
	other := newEngine(t, service+"-other").Images()
	var refs []string
	for _, i := range []*Images{images, other} {
		ref, err := i.Commit(t.Context(), environment(t).Image, "abc", archiveOf(t, map[string]string{"a": service}), dependencies.Image{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = i.Forget(context.Background(), "abc"); _ = i.Sweep(context.Background()) })
		refs = append(refs, ref)
	}
	lost, err := images.ID(t.Context(), refs[0])
	require.NoError(t, err)
	_, err = images.Commit(t.Context(), environment(t).Image, "abc", archiveOf(t, map[string]string{"b": service}), dependencies.Image{})
	require.NoError(t, err)
	require.NoError(t, other.Sweep(t.Context()))
	_, err = images.ID(t.Context(), lost)
	require.NoError(t, err, "it is another service's")
	require.NoError(t, images.Sweep(t.Context()))
	_, err = images.ID(t.Context(), lost)
	require.ErrorIs(t, err, dependencies.ErrNoImage)
	for _, ref := range refs {
		_, err = images.ID(t.Context(), ref)
		require.NoError(t, err)
	}
}

// TestImagesFailedCommit leaves nothing.
func TestImagesFailedCommit(t *testing.T) {
	service := "test-images-" + strings.ToLower(rand.Text())
	images := newEngine(t, service).Images()
	_, err := images.Commit(t.Context(), environment(t).Image, "abc", strings.NewReader("no archive, which is long enough to be read as one"), dependencies.Image{})
	require.Error(t, err)
	_, err = images.Commit(t.Context(), "notebox/none:1", "abc", archiveOf(t, nil), dependencies.Image{})
	require.ErrorContains(t, err, "image is missing")
	all, err := images.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
	require.Eventually(t, func() bool { return len(left(t, service)) == 0 }, time.Minute, 100*time.Millisecond)
}

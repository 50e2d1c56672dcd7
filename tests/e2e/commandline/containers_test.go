package commandline

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"notebox/environments"
)

// daemon is a client of Docker's.
func daemon(t *testing.T) *client.Client {
	t.Helper()
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	return docker
}

// newImage is another name for Python's image.
func newImage(t *testing.T) string {
	t.Helper()
	docker := daemon(t)
	all, err := environments.Load("")
	require.NoError(t, err)
	name := "notebox-test/run:" + strings.ToLower(rand.Text())
	require.NoError(t, docker.ImageTag(t.Context(), all[0].Image, name))
	t.Cleanup(func() {
		_, err := docker.ImageRemove(context.Background(), name, image.RemoveOptions{})
		require.NoError(t, err)
		require.NoError(t, docker.Close())
	})
	return name
}

// containersFrom are the names of containers of an image of that name.
func containersFrom(t *testing.T, image string) (names []string) {
	t.Helper()
	docker := daemon(t)
	defer docker.Close()
	all, err := docker.ContainerList(t.Context(), container.ListOptions{All: true})
	require.NoError(t, err)
	for _, c := range all {
		if c.Image == image {
			names = append(names, c.Names...)
		}
	}
	return names
}

// containersOf are the names of a service's containers.
func containersOf(t *testing.T, id string) (names []string) {
	t.Helper()
	docker := daemon(t)
	defer docker.Close()
	all, err := docker.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "notebox.service="+id))})
	require.NoError(t, err)
	for _, c := range all {
		names = append(names, c.Names...)
	}
	return names
}

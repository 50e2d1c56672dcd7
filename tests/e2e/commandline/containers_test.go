package commandline

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"
)

// containersOf are the names of a service's containers.
func containersOf(t *testing.T, id string) (names []string) {
	t.Helper()
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	defer docker.Close()
	all, err := docker.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "notebox.service="+id))})
	require.NoError(t, err)
	for _, c := range all {
		names = append(names, c.Names...)
	}
	return names
}

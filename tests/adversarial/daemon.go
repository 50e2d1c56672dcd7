package adversarial

import (
	"context"
	"fmt"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"notebox/tests/starter"
)

// Daemon is the Docker daemon that the services use, looked at from beside them.
type Daemon struct{ api *client.Client }

// OpenDaemon connects as the docker command does.
func OpenDaemon() (*Daemon, error) {
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("the Docker daemon: %w", err)
	}
	return &Daemon{api}, nil
}

// Close ends the connection.
func (d *Daemon) Close() error { return d.api.Close() }

// Containers returns the ids of what a service has, running or not: sandboxes, and workers with
// cells in them.
func (d *Daemon) Containers(ctx context.Context, service string) ([]string, error) {
	return d.containers(ctx, service, func(map[string]string) bool { return true })
}

// Sandboxes returns the ids of the containers that runs have, and the cells, as
// starter.SandboxOf names them.
func (d *Daemon) Sandboxes(ctx context.Context, service string) ([]string, error) {
	ids, err := d.containers(ctx, service, forRuns)
	return append(ids, starter.Cells(service)...), err
}

// forRuns tells a sandbox's labels from a worker's.
func forRuns(labels map[string]string) bool { return labels["notebox.users"] == "" }

func (d *Daemon) containers(ctx context.Context, service string, want func(labels map[string]string) bool) ([]string, error) {
	list, err := d.api.ContainerList(ctx, container.ListOptions{
		All:     true,
		Filters: filters.NewArgs(filters.Arg("label", "notebox.service="+service)),
	})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	ids := []string{}
	for _, c := range list {
		if want(c.Labels) {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// Follow notes the ids of all containers that runs of a service have and will have, until
// ctx ends.
func (d *Daemon) Follow(ctx context.Context, service string) (*Known, error) {
	k := &Known{service: service, ids: map[string]bool{}}
	messages, errs := d.api.Events(ctx, events.ListOptions{Filters: filters.NewArgs(
		filters.Arg("label", "notebox.service="+service), filters.Arg("event", "create"))})
	go func() {
		for {
			select {
			case m := <-messages:
				if forRuns(m.Actor.Attributes) {
					k.add(m.Actor.ID)
				}
			case <-errs:
				return
			}
		}
	}()
	there, err := d.Sandboxes(ctx, service) // after the events, so that none is missed
	k.add(there...)
	return k, err
}

// Known are the sandboxes that a service has had.
type Known struct {
	service string

	mu  sync.Mutex
	ids map[string]bool
}

func (k *Known) add(ids ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		k.ids[id] = true
	}
}

func (k *Known) has(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ids[id] || starter.IsCellOf(id, k.service)
}

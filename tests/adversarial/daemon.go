package adversarial

import (
	"context"
	"fmt"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
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

// Containers returns the ids of what a service has, running or not.
func (d *Daemon) Containers(ctx context.Context, service string) ([]string, error) {
	list, err := d.api.ContainerList(ctx, container.ListOptions{
		All:     true,
		Filters: filters.NewArgs(filters.Arg("label", "notebox.service="+service)),
	})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	ids := []string{}
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids, nil
}

// Follow notes the ids of all containers that a service has and will have, until
// ctx ends.
func (d *Daemon) Follow(ctx context.Context, service string) (*Known, error) {
	k := &Known{ids: map[string]bool{}}
	messages, errs := d.api.Events(ctx, events.ListOptions{Filters: filters.NewArgs(
		filters.Arg("label", "notebox.service="+service), filters.Arg("event", "create"))})
	go func() {
		for {
			select {
			case m := <-messages:
				k.add(m.Actor.ID)
			case <-errs:
				return
			}
		}
	}()
	there, err := d.Containers(ctx, service) // after the events, so that none is missed
	k.add(there...)
	return k, err
}

// Known are the containers that a service has had.
type Known struct {
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
	return k.ids[id]
}

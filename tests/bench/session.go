package main

import (
	"context"
	"errors"

	"notebox/client"
)

// openSessions opens one for each case on the warm service, so that no case finds
// what another has left in the kernel.
func (b *bench) openSessions(ctx context.Context) error {
	b.callers[wayStep] = map[string]*caller{}
	for _, c := range b.cases {
		opening, cancel := context.WithTimeout(ctx, requestTimeout)
		session, err := b.warm.client().OpenSession(opening, client.SessionOptions{})
		cancel()
		if err != nil {
			return err
		}
		b.sessions = append(b.sessions, session.ID)
		if b.callers[wayStep][c.name], err = newCaller(b.warm.URL, c, session.ID); err != nil {
			return err
		}
	}
	return nil
}

// closeSessions comes before the loads, which are for the sandboxes of single runs.
func (b *bench) closeSessions(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, id := range b.sessions {
		err = errors.Join(err, b.warm.client().CloseSession(ctx, id))
	}
	b.sessions = nil
	return err
}

func (s *service) client() *client.Client { return client.New(client.Options{BaseURL: s.URL}) }

package peers

import (
	"context"
	"errors"
	"strings"

	"notebox/runner"
)

// prefix is how ids of sessions begin.
const prefix = "ses_"

// Sessions are those of this service, with ids that name it. What another has is a
// *runner.ElsewhereError.
type Sessions struct {
	runner.Sessions
	Peers *Peers
}

// Open implements runner.Sessions. The id is not the one of spec.
func (s *Sessions) Open(ctx context.Context, spec runner.SessionSpec) (runner.Session, error) {
	id, err := s.Peers.Mint(prefix, spec.Owner)
	if err != nil {
		return nil, err
	}
	spec.ID = prefix + id
	return s.Sessions.Open(ctx, spec)
}

// Find implements runner.Sessions.
func (s *Sessions) Find(owner, id string) (runner.Session, error) {
	session, err := s.Sessions.Find(owner, id)
	if errors.Is(err, runner.ErrNoSession) {
		err = s.Peers.Find(prefix, owner, strings.TrimPrefix(id, prefix))
	}
	return session, err
}

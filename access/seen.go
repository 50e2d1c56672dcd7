package access

import "errors"

// errSamePlain is no fault: the same plain key on two lines means the same.
var errSamePlain = errors.New("an earlier line is the same plain key")

// seen finds entries that contradict each other. Two callers with one key would
// leave open who calls; two with one owner would see each other's things.
type seen struct {
	secrets map[Secret]bool // of a named entry
	names   map[string]bool
	owners  map[string]bool
}

func newSeen() *seen {
	return &seen{map[Secret]bool{}, map[string]bool{}, map[string]bool{}}
}

func (s *seen) add(e Entry) error {
	for _, secret := range e.Secrets {
		named, there := s.secrets[secret]
		switch {
		case there && !named && e.Name == "":
			return errSamePlain
		case there:
			return errSameKey
		}
	}
	switch {
	case e.Name != "" && s.names[e.Name]:
		return errSameName
	case s.owners[e.Owner]:
		return errSameOwner
	}
	for _, secret := range e.Secrets {
		s.secrets[secret] = e.Name != ""
	}
	s.names[e.Name], s.owners[e.Owner] = true, true
	return nil
}

package remote

import (
	"context"
	"fmt"
	"slices"
	"time"

	"notebox/agent/tool"
)

// About asks what a model is to be told of this notebox, and whether it offers sessions. The
// notebox must run the language, which comes first then. With "" the notebox's order stays.
func (n Notebox) About(ctx context.Context, language string) (about tool.About, sessions bool, err error) {
	all, err := n.Client.Environments(ctx)
	if err != nil {
		return about, false, err
	}
	for _, e := range all.Environments {
		if e.Available != nil && !*e.Available {
			continue
		}
		l := tool.Language{Name: e.Language, Aliases: e.Aliases, Title: e.DisplayName, Notes: e.Notes, Dependencies: e.Dependencies.Notation, Allowed: e.Dependencies.Allowed}
		for _, p := range e.Packages {
			l.Packages = append(l.Packages, p.Name)
		}
		if e.Language == language {
			about.Languages = slices.Insert(about.Languages, 0, l)
		} else {
			about.Languages = append(about.Languages, l)
		}
	}
	if language != "" && (len(about.Languages) == 0 || about.Languages[0].Name != language) {
		return tool.About{}, false, fmt.Errorf("notebox: it runs no %s, or not for this key", language)
	}
	about.Timeout, about.MaxTimeout = Seconds(all.Limits.TimeoutSeconds), Seconds(all.Limits.MaxTimeoutSeconds)
	about.Network = all.Limits.Network
	return about, all.Limits.Sessions == nil || *all.Limits.Sessions, nil
}

// Seconds makes a time of so many, as the API has times.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

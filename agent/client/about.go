package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"notebox/agent/tool"
)

// About asks what a model is to be told of this notebox, with the language first among
// those that it runs, and whether it offers sessions.
func (c *Client) About(ctx context.Context, language string) (about tool.About, sessions bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.o.BaseURL+"/v1/environments", nil)
	if err != nil {
		return about, false, fmt.Errorf("notebox: %w", err)
	}
	res, err := c.do(req)
	if err != nil {
		return about, false, err
	}
	defer res.Body.Close()
	var list struct {
		Environments []struct {
			Language    string                  `json:"language"`
			Aliases     []string                `json:"aliases"`
			Available   *bool                   `json:"available"`
			DisplayName string                  `json:"display_name"`
			Packages    []struct{ Name string } `json:"packages"`
			Notes       []string                `json:"notes"`

			Dependencies struct {
				Notation string
				Allowed  []string
			}
		} `json:"environments"`
		Limits struct {
			Timeout    float64 `json:"timeout_seconds"`
			MaxTimeout float64 `json:"max_timeout_seconds"`
			Network    bool    `json:"network"`
			Sessions   bool    `json:"sessions"`
		} `json:"limits"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&list); err != nil {
		return about, false, fmt.Errorf("notebox: what answers is none: %w", err)
	}
	found := false
	for _, e := range list.Environments {
		if e.Available != nil && !*e.Available { // a notebox of before has all
			continue
		}
		l := tool.Language{Name: e.Language, Aliases: e.Aliases, Title: e.DisplayName, Notes: e.Notes, Dependencies: e.Dependencies.Notation, Allowed: e.Dependencies.Allowed}
		for _, p := range e.Packages {
			l.Packages = append(l.Packages, p.Name)
		}
		if e.Language == language {
			found = true
			about.Languages = slices.Insert(about.Languages, 0, l)
		} else {
			about.Languages = append(about.Languages, l)
		}
	}
	if !found {
		return tool.About{}, false, fmt.Errorf("notebox: it runs no %s, or not for this key", language)
	}
	about.Timeout, about.MaxTimeout = seconds(list.Limits.Timeout), seconds(list.Limits.MaxTimeout)
	about.Network = list.Limits.Network
	return about, list.Limits.Sessions, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

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

// About asks what a model is to be told of this notebox, and whether it offers
// sessions.
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
			Language string                  `json:"language"`
			Packages []struct{ Name string } `json:"packages"`
			Notes    []string                `json:"notes"`
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
	for _, e := range list.Environments {
		if e.Language != language {
			continue
		}
		for _, p := range e.Packages {
			about.Packages = append(about.Packages, p.Name)
		}
		about.Notes = slices.Clone(e.Notes)
		about.Timeout, about.MaxTimeout = seconds(list.Limits.Timeout), seconds(list.Limits.MaxTimeout)
		about.Network = list.Limits.Network
		return about, list.Limits.Sessions, nil
	}
	return about, false, fmt.Errorf("notebox: it runs no %s, or not for this key", language)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

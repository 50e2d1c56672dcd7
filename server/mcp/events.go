package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Run implements Service.
func (a API) Run(ctx context.Context, e Execution, said func(string)) ([]byte, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("notebox: %w", err)
	}
	resp, err := a.send(ctx, "POST", "/v1/execute", "application/json", bytes.NewReader(raw), "text/event-stream")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(io.LimitReader(resp.Body, 2*maxReply)) // every output comes twice
	name := ""
	var data []byte
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, errors.Join(errReply, err)
		}
		line = bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) > 0 && string(field) == "event":
			name = string(value)
		case len(line) > 0 && string(field) == "data":
			data = append(data, value...)
		case len(line) == 0:
			if name == "done" {
				return data, nil
			}
			if err := event(name, data, said); err != nil {
				return nil, err
			}
			name, data = "", nil
		}
	}
}

// event reads one that is not the last.
func event(name string, data []byte, said func(string)) error {
	switch name {
	case "output", "install":
		var o struct{ Type, Text string }
		if json.Unmarshal(data, &o) == nil && (o.Type == "stream" || name == "install") {
			said(o.Text)
		}
	case "error":
		var p struct {
			Status int
			Detail string
		}
		if err := json.Unmarshal(data, &p); err != nil {
			return errors.Join(errReply, err)
		}
		return &Refusal{p.Status, p.Detail}
	}
	return nil
}

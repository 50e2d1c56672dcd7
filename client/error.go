package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is a request that notebox refused, or failed at.
type Error struct {
	Status     int           `json:"status"`
	Detail     string        `json:"detail"`
	Field      string        `json:"field"` // that is wrong; may be empty
	RetryAfter time.Duration `json:"-"`     // 0: it makes no sense to ask again soon
}

func (e *Error) Error() string {
	return fmt.Sprintf("notebox answered %d: %s", e.Status, e.Detail)
}

// NotThere reports whether what was asked for is not there, or not any more.
func (e *Error) NotThere() bool {
	return e.Status == http.StatusNotFound || e.Status == http.StatusGone
}

// dependenciesField is that of a run's packages.
const dependenciesField = "dependencies"

// OfDependencies reports whether the error is about nothing but Run.Dependencies: without
// them the code runs, also while their registry is away.
func (e *Error) OfDependencies() bool {
	return e.Field == dependenciesField || strings.HasPrefix(e.Field, dependenciesField+"[")
}

// ErrUnread is an answer that is not what a notebox answers, or not whole.
var ErrUnread = errors.New("notebox's answer cannot be read")

func unread(err error) error { return fmt.Errorf("%w: %w", ErrUnread, err) }

const (
	// maxProblem bounds what is read of a refusal, in bytes.
	maxProblem = 64 << 10
	// maxDetail bounds what is told of a refusal that is no problem+json, in bytes.
	maxDetail = 500
)

// problemOf reads a problem (RFC 9457), or whatever a proxy sends in its place.
func problemOf(res *http.Response) *Error {
	raw, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem)) // what there is
	e := &Error{}
	_ = json.Unmarshal(raw, e)
	e.Status = res.StatusCode
	said := strings.ToValidUTF8(string(raw[:min(len(raw), maxDetail)]), "")
	e.Detail = cmp.Or(e.Detail, strings.TrimSpace(res.Status+" "+said))
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		e.RetryAfter = time.Duration(max(seconds, 0)) * time.Second
	}
	return e
}

package storage

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"gocloud.dev/gcerrors"
)

// shown is err with a text that may be logged: queries of URLs, in which clients and
// clouds put signatures, are taken out, and so are the pages that Azure answers with.
func shown(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var azureAnswer *azcore.ResponseError
	if errors.As(err, &azureAnswer) {
		text = strings.Replace(text, azureAnswer.Error(), fmt.Sprintf("Azure answered %d %s", azureAnswer.StatusCode, azureAnswer.ErrorCode), 1)
	}
	text = secretQuery.ReplaceAllString(text, "$1?…")
	text = strings.Join(strings.Fields(text), " ")
	if text == err.Error() {
		return err
	}
	return &shownError{text, err}
}

// secretQuery is the query of a URL within a text.
var secretQuery = regexp.MustCompile(`(https?://[^\s"'?]*)\?[^\s"']*`)

type shownError struct {
	text string
	err  error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }

// known turns a store's error into this package's if there is one for it. In a folder
// "a/b" is not found either where "a" is an object. A container that is gone is no object
// that is not found: see [cloud].
func (s *Store) known(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return ErrNotFound
	case gcerrors.Code(err) == gcerrors.NotFound && (s.cloud == nil || !s.cloud.missing(err)):
		return ErrNotFound
	}
	return shown(err)
}

package share

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/server/page"
	"notebox/server/web"
	"notebox/storage"
)

// Prefix is where shared pages are.
const Prefix = "/r/"

// querySecret tells the shares of a run apart: one that was revoked is not the next one. The
// signature is over it.
const querySecret = "share"

// handler answers the calls.
type handler struct {
	*web.Kit
	page  *page.Page
	views views
}

// Routes are the calls.
func Routes(kit *web.Kit, of *page.Page) []web.Route {
	s := &handler{Kit: kit, page: of}
	const calls = "/v1/executions/:id/share"
	return []web.Route{
		web.On(http.MethodPost, calls, s.share),
		web.On(http.MethodDelete, calls, s.revoke),
		web.On(http.MethodGet, Prefix+":id", s.plainly(s.show)).WithoutKey(), // signed
		web.On(http.MethodGet, Prefix+":id/files/*", s.plainly(s.left(storage.KindFile, "/files/"))).WithoutKey(),
		web.On(http.MethodGet, Prefix+":id/images/*", s.plainly(s.left(storage.KindImage, "/images/"))).WithoutKey(),
	}
}

// Link is what the owner of a run is told of its page.
type Link struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// share answers POST /v1/executions/{id}/share.
func (s *handler) share(c echo.Context) error {
	id, err := runOf(c)
	if err != nil {
		return err
	}
	shared, err := s.Executor.Share(c.Request().Context(), web.Owner(c), id)
	if err != nil {
		return err
	}
	query, expires, err := s.Store.Sign(executor.SharedKey(id, shared.Secret))
	if err != nil {
		return err
	}
	query.Set(querySecret, shared.Secret)
	if shared.Ends != nil && shared.Ends.Before(expires) {
		expires = *shared.Ends
	}
	link := Link{id, s.Base(c.Request()) + Prefix + id + "?" + query.Encode(), expires}
	c.Response().Header().Set(echo.HeaderLocation, link.URL)
	return web.Fresh(c, http.StatusCreated, link)
}

// revoke answers DELETE /v1/executions/{id}/share.
func (s *handler) revoke(c echo.Context) error {
	id, err := runOf(c)
	if err != nil {
		return err
	}
	switch found, err := s.Executor.Unshare(c.Request().Context(), web.Owner(c), id); {
	case err != nil:
		return err
	case !found:
		return problem.NotFound()
	}
	return c.NoContent(http.StatusNoContent)
}

func runOf(c echo.Context) (string, error) {
	id := c.Param("id")
	if !executor.IsRunID(id) {
		return "", problem.NotFound()
	}
	web.NoteRun(c, id)
	return id, nil
}

// opened returns the share that a request's link is to. Its content must be closed. Who has no
// signature does not have the store asked.
func (s *handler) opened(c echo.Context) (*executor.Share, content, error) {
	id, err := runOf(c)
	if err != nil {
		return nil, nil, err
	}
	ctx, query := c.Request().Context(), c.QueryParams()
	secret := query.Get(querySecret)
	switch err := s.Store.Verify(executor.SharedKey(id, secret), query); {
	case errors.Is(err, storage.ErrExpired):
		return nil, nil, problem.Forbidden("this link has expired")
	case err != nil:
		return nil, nil, problem.Forbidden("this link is not valid: it was changed, or it is not of this service")
	}
	s.Known(ctx)
	shared, run, err := s.Executor.OpenShare(ctx, id)
	if err == nil && shared.Secret != secret { // of a share before this one
		err = errors.Join(problem.NotFound(), run.Close())
	}
	if err != nil {
		return nil, nil, err
	}
	return shared, run, nil
}

// left answers with a file or an image of a shared run.
func (s *handler) left(kind storage.Kind, below string) echo.HandlerFunc {
	return func(c echo.Context) error {
		shared, run, err := s.opened(c)
		if err != nil {
			return err
		}
		_ = run.Close()
		parts, ok := web.PathAfter(c.Request().URL, Prefix+shared.ID+below)
		if !ok {
			return problem.NotFound()
		}
		c.Response().Header().Set("X-Robots-Tag", robots)
		return s.SendStored(c, shared.Key(kind, strings.Join(parts, "/")), "no-store")
	}
}

// robots is told to those who search.
const robots = "noindex, nofollow, noarchive"

// own are the parts of a link's query that are its own: chats and mails add theirs.
func own(query url.Values) string {
	out := url.Values{}
	for _, name := range []string{querySecret, "expires", "signature"} {
		out.Set(name, query.Get(name))
	}
	return out.Encode()
}

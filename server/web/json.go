package web

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"notebox/executor"
)

// Fresh answers what may be another thing the next time.
func Fresh(c echo.Context, status int, v any) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return WriteJSON(c, status, echo.MIMEApplicationJSON, v)
}

// WriteJSON encodes before it sends, so that what cannot be encoded is an error
// and not half an answer.
func WriteJSON(c echo.Context, status int, mediaType string, v any) error {
	body, err := executor.EncodeJSON(v)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, mediaType)
	h.Set(echo.HeaderContentLength, fmt.Sprint(len(body)))
	return c.Blob(status, mediaType, body)
}

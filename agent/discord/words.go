package discord

import (
	"context"
	"errors"
	"net/http"

	"notebox/agent/provider"
	"notebox/agent/tool"
	"notebox/client"
)

// words are an error for those who asked. What is internal is logged, and not said.
func words(ctx context.Context, err error) string {
	var model *provider.Error
	var notebox *client.Error
	var code *tool.CallError
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return "This took longer than Discord waits for an answer. Please try something smaller."
	case ctx.Err() != nil:
		return "I have to stop now and could not answer. Please ask again in a minute."
	case errors.As(err, &code):
		return "I cannot run this: " + quoted(code.Error())
	case errors.As(err, &model) && model.Passes():
		return "I could not answer: " + model.Public() + ". Please ask again in a minute."
	case errors.As(err, &model):
		return "I could not answer: " + model.Public() + ". Who runs this bot has to look at it."
	case errors.As(err, &notebox) && notebox.RetryAfter > 0:
		return "All sandboxes are busy. Please ask again in a minute."
	case errors.As(err, &notebox) && notebox.Status == http.StatusRequestEntityTooLarge:
		return "The files are more than a sandbox takes."
	case errors.As(err, &notebox) && notebox.Status == http.StatusUnauthorized:
		return "The sandboxes do not let me in. Who runs this bot has to look at it."
	}
	return "Something went wrong, and it was not your question. It has been logged; please ask again."
}

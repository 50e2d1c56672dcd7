// A model that runs Python: notebox as the function tool of a chat, with OpenAI's
// official client. Any endpoint that speaks Chat Completions will do.
//
//	OPENAI_API_KEY=… go run . "What is the sum of the first 100 primes?"
//
// OPENAI_BASE_URL, OPENAI_MODEL, NOTEBOX_URL and NOTEBOX_API_KEY say where things are.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
)

const maxSteps = 10 // answers of the model to one question

func main() {
	answer, err := ask(context.Background(), strings.Join(os.Args[1:], " "))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
}

// ask has the model answer a question, and runs what it asks for.
func ask(ctx context.Context, question string) (string, error) {
	var listed struct {
		Tools map[string][]json.RawMessage
	}
	if err := notebox(ctx, http.MethodGet, "/v1/tools?notation=chat_completions", nil, &listed); err != nil {
		return "", err
	}
	params := openai.ChatCompletionNewParams{
		Model:    cmp.Or(os.Getenv("OPENAI_MODEL"), "gpt-5.2"),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
	}
	for _, tool := range listed.Tools["chat_completions"] {
		params.Tools = append(params.Tools, param.Override[openai.ChatCompletionToolUnionParam](tool))
	}
	client := openai.NewClient() // reads OPENAI_API_KEY and OPENAI_BASE_URL
	for range maxSteps {
		completion, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return "", err
		}
		if len(completion.Choices) == 0 {
			return "", errors.New("the model gave no answer")
		}
		message := completion.Choices[0].Message
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		params.Messages = append(params.Messages, message.ToParam())
		for _, call := range message.ToolCalls {
			var result struct{ Message json.RawMessage }
			if err := notebox(ctx, http.MethodPost, "/v1/tools/call", map[string]any{"call": json.RawMessage(call.RawJSON())}, &result); err != nil {
				return "", err
			}
			params.Messages = append(params.Messages, param.Override[openai.ChatCompletionMessageParamUnion](result.Message))
		}
	}
	return "", fmt.Errorf("no answer after %d steps", maxSteps)
}

// notebox calls its API.
func notebox(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, cmp.Or(os.Getenv("NOTEBOX_URL"), "http://127.0.0.1:8080")+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if key := os.Getenv("NOTEBOX_API_KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("notebox: %s: %s", resp.Status, raw)
	}
	return json.Unmarshal(raw, out)
}

package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"notebox/agent"
)

// API is a way of speaking to a model.
type API string

// The ways.
const (
	Chat      API = "chat"      // OpenAI's Chat Completions
	Responses API = "responses" // OpenAI's Responses
	Claude    API = "claude"    // Anthropic's Messages
)

// What is asked where only a key is set.
const (
	DefaultOpenAIModel     = "gpt-5.4-mini"
	DefaultClaudeModel     = "claude-sonnet-5-5"
	DefaultCloudflareModel = "@cf/openai/gpt-oss-120b"
)

// Off is the model of a service that has none, whatever variables are set.
const Off = "off"

const (
	openAIURL     = "https://api.openai.com/v1"
	claudeURL     = "https://api.anthropic.com"
	cloudflareURL = "https://api.cloudflare.com/client/v4/accounts/%s/ai/v1"
)

// DefaultMaxTokens bounds one answer of Claude, whose API wants a bound: a long
// program, and what was thought of it.
const DefaultMaxTokens = 16_384

// Settings say which model is asked, and how.
type Settings struct {
	API     API
	Model   string
	BaseURL string
	Key     string // "": the server wants none
	Effort  string // of reasoning: low, medium, high, and what else the model knows; "": its default
	// MaxTokens bounds one answer; 0 is DefaultMaxTokens for Claude, and the server's own
	// bound for others.
	MaxTokens int64
	// Whole asks for answers that come in one piece.
	Whole bool

	Client *http.Client // nil: one without a limit of time, as ctx has it
	Retry  RetryOptions
}

// ErrNone is that no model is configured. Its text says what to do.
var ErrNone = errors.New("no model is configured: set OPENAI_API_KEY, or OPENAI_BASE_URL for another server that speaks its API, or ANTHROPIC_API_KEY, or CLOUDFLARE_API_KEY with CLOUDFLARE_ACCOUNT_ID; NOTEBOX_MODEL names the model")

// FromEnvironment fills in what s leaves open. If several keys are set, the API, the
// base URL or the model's name tell which counts, or else the order of ErrNone.
func FromEnvironment(s Settings, getenv func(string) string) (Settings, error) {
	if s.Model == Off {
		return s, ErrNone
	}
	openAI := s.BaseURL != "" || getenv("OPENAI_API_KEY") != "" || getenv("OPENAI_BASE_URL") != ""
	anthropic := getenv("ANTHROPIC_API_KEY") != ""
	cloudflare := getenv("CLOUDFLARE_API_KEY") != "" && getenv("CLOUDFLARE_ACCOUNT_ID") != ""
	switch {
	case s.API == Claude:
		return s.claude(getenv), nil
	case s.API != "" && s.API != Chat && s.API != Responses:
		return s, fmt.Errorf("there is no API %q of models: it is chat, responses or claude", s.API)
	case cloudflare && s.BaseURL == "" && (strings.HasPrefix(s.Model, "@cf/") || !openAI && (!anthropic || s.API != "")):
		return s.cloudflare(getenv), nil
	case anthropic && s.API == "" && s.BaseURL == "" && (strings.HasPrefix(s.Model, "claude-") && getenv("OPENAI_BASE_URL") == "" || !openAI):
		return s.claude(getenv), nil
	case openAI:
		return s.openAI(getenv), nil
	}
	return s, ErrNone
}

func (s Settings) openAI(getenv func(string) string) Settings {
	s.Key = cmp.Or(s.Key, getenv("OPENAI_API_KEY"))
	s.BaseURL = cmp.Or(s.BaseURL, getenv("OPENAI_BASE_URL"))
	if s.BaseURL != "" {
		s.API = cmp.Or(s.API, Chat) // which all have
	}
	s.BaseURL = cmp.Or(s.BaseURL, openAIURL)
	s.API = cmp.Or(s.API, Responses)
	s.Model = cmp.Or(s.Model, DefaultOpenAIModel)
	return s
}

func (s Settings) claude(getenv func(string) string) Settings {
	s.API = Claude
	s.Key = cmp.Or(s.Key, getenv("ANTHROPIC_API_KEY"))
	s.BaseURL = cmp.Or(s.BaseURL, getenv("ANTHROPIC_BASE_URL"), claudeURL)
	s.Model = cmp.Or(s.Model, DefaultClaudeModel)
	return s
}

// cloudflare is Workers AI: gpt-oss speaks Responses there, whole; all others speak
// Chat Completions.
func (s Settings) cloudflare(getenv func(string) string) Settings {
	s.Key = cmp.Or(s.Key, getenv("CLOUDFLARE_API_KEY"))
	s.BaseURL = fmt.Sprintf(cloudflareURL, getenv("CLOUDFLARE_ACCOUNT_ID"))
	s.Model = cmp.Or(s.Model, DefaultCloudflareModel)
	if strings.HasPrefix(s.Model, "@cf/openai/") {
		s.API = cmp.Or(s.API, Responses)
	}
	s.API = cmp.Or(s.API, Chat)
	s.Whole = s.Whole || s.API == Responses
	return s
}

// Open returns the model of complete settings, with Retry around it.
func Open(s Settings) (agent.Provider, error) {
	switch {
	case s.Model == "":
		return nil, errors.New("the model has no name")
	case s.BaseURL == "":
		return nil, errors.New("the model has no address")
	}
	s.Client = cmp.Or(s.Client, &http.Client{})
	switch s.API {
	case Chat:
		return Retry(&chat{s, openai.NewChatCompletionService(openAIOptions(s)...)}, s.Retry), nil
	case Responses:
		return Retry(&responsesAPI{s, responses.NewResponseService(openAIOptions(s)...)}, s.Retry), nil
	case Claude:
		return Retry(newClaude(s), s.Retry), nil
	}
	return nil, fmt.Errorf("there is no API %q of models: it is chat, responses or claude", s.API)
}

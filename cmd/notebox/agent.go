package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"notebox/agent"
	"notebox/agent/provider"
	"notebox/server/ask"
)

// modelSettings are the flags about a model. Keys are no flags: they would be in the
// list of processes.
type modelSettings struct {
	name, api, baseURL, effort string
}

// register adds flags that begin with prefix, "model" or "file-model", about a model
// that does what.
func (m *modelSettings) register(f *flag.FlagSet, prefix, what string) {
	f.StringVar(&m.name, prefix, "", "Let the model of this `name` "+what+"; off is no model. (default: a model of the provider whose key is set: OPENAI_API_KEY, ANTHROPIC_API_KEY, or CLOUDFLARE_API_KEY with CLOUDFLARE_ACCOUNT_ID)")
	f.StringVar(&m.api, prefix+"-api", "", "Speak to the model by this `API`: chat, responses or claude. (default: the key and the address decide)")
	f.StringVar(&m.baseURL, prefix+"-base-url", "", "Find the model at this `URL` of a server that speaks OpenAI's API. (default: OPENAI_BASE_URL, or the provider's own)")
	f.StringVar(&m.effort, prefix+"-effort", "", "Let the model think with this `effort`: low, medium, high, or a word of its own. (default: the model's own)")
}

// open returns the model; provider.ErrNone if there is none.
func (m *modelSettings) open(getenv func(string) string) (agent.Provider, provider.Settings, error) {
	s, err := provider.FromEnvironment(provider.Settings{
		API: provider.API(m.api), Model: m.name, BaseURL: m.baseURL, Effort: m.effort,
	}, getenv)
	if err != nil {
		return nil, s, err
	}
	p, err := provider.Open(s)
	return p, s, err
}

// agentSettings are the flags about POST /run.
type agentSettings struct {
	model  modelSettings
	limits agent.Limits
	atOnce int
}

func (s *agentSettings) register(f *flag.FlagSet) {
	s.model.register(f, "model", "answer POST /run")
	s.limits = agent.DefaultLimits()
	registerLimits(f, &s.limits)
	f.IntVar(&s.atOnce, "agent-at-once", ask.DefaultAtOnce, "Answer at most this `number` of questions at one time.")
}

// registerLimits adds the flags of what a question may cost.
func registerLimits(f *flag.FlagSet, l *agent.Limits) {
	f.IntVar(&l.Steps, "agent-steps", l.Steps, "Let the model have this `number` of turns for one question.")
	f.Int64Var(&l.Tokens, "agent-tokens", l.Tokens, "Spend at most this `number` of tokens on one question, in and out.")
	f.DurationVar(&l.Time, "agent-time", l.Time, "Stop work on a question after this time.")
}

func (s *agentSettings) check() error {
	if s.limits.Steps < 1 || s.limits.Tokens < 1 || s.limits.Time <= 0 || s.atOnce < 1 {
		return errors.New("--agent-steps, --agent-tokens, --agent-time and --agent-at-once must be above 0")
	}
	return nil
}

// openAgent returns nil if no model is configured.
func (p *program) openAgent() (*ask.Config, error) {
	if p.settings.agent.model.name == provider.Off {
		return nil, nil
	}
	getenv, err := withFile(os.Getenv, dotenv)
	if err != nil {
		return nil, err
	}
	s := &p.settings.agent
	model, found, err := s.model.open(getenv)
	switch {
	case errors.Is(err, provider.ErrNone):
		if s.model.name != "" && s.model.name != provider.Off {
			p.log.Warn("there is no key or address for the model: POST /run answers 503", "model", s.model.name)
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("--model: %w", err)
	}
	p.log.Info("POST /run asks a model", "model", found.Model, "api", string(found.API))
	return &ask.Config{Provider: model, Limits: s.limits, AtOnce: s.atOnce}, nil
}

// withFile looks a variable up in the environment, and then in a file of variables,
// which need not be there.
func withFile(getenv func(string) string, name string) (func(string) string, error) {
	variables := map[string]string{}
	if err := readDotenv(name, func(name, value string) error { variables[name] = value; return nil }); err != nil {
		return nil, err
	}
	return func(name string) string {
		if value := getenv(name); value != "" {
			return value
		}
		return variables[name]
	}, nil
}

package discordtest

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"
)

const (
	// MaxContent bounds a message, in code points.
	MaxContent = 2000
	maxFiles   = 10
	// MaxUpload bounds the files of a message, in bytes.
	MaxUpload = 10 << 20
	retryTime = 0.2 // seconds
)

// Sent is a message of the bot.
type Sent struct {
	ID, ChannelID string
	Interaction   string // whose token it was sent with; "": none
	Content       string
	Flags         discordgo.MessageFlags
	Mentions      string // allowed_mentions, as they came
	Reply         string // the message that it refers to
	Files         []File
}

// File is one of a message.
type File struct {
	Name    string
	Content []byte
}

// Response is an interaction's first answer.
type Response struct {
	Interaction string
	Type        int
	Content     string
	Flags       discordgo.MessageFlags
	CustomID    string
}

func (s *Server) routes(mux *http.ServeMux) {
	api := func(method, path string, h http.HandlerFunc) {
		mux.HandleFunc(method+" /api/v9"+path, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bot "+Token {
				s.writeJSON(w, http.StatusUnauthorized, map[string]any{"message": "401: Unauthorized", "code": 0})
				return
			}
			h(w, r)
		})
	}
	gateway := func(w http.ResponseWriter, _ *http.Request) {
		s.writeJSON(w, http.StatusOK, map[string]any{
			"url": "ws" + strings.TrimPrefix(s.http.URL, "http") + "/gateway-socket", "shards": 1,
			"session_start_limit": map[string]any{"total": 1000, "remaining": 999, "reset_after": 1, "max_concurrency": 1},
		})
	}
	mux.HandleFunc("GET /api/v9/gateway", gateway)
	api("GET", "/gateway/bot", gateway)
	api("GET", "/users/@me", func(w http.ResponseWriter, _ *http.Request) { s.writeJSON(w, http.StatusOK, bot()) })
	api("GET", "/channels/{channel}", func(w http.ResponseWriter, r *http.Request) {
		s.writeJSON(w, http.StatusOK, map[string]any{"id": r.PathValue("channel"), "type": discordgo.ChannelTypeGuildText, "guild_id": Guild})
	})
	api("POST", "/applications/{application}/commands", s.command)
	api("POST", "/channels/{channel}/typing", s.typed)
	api("POST", "/channels/{channel}/messages", func(w http.ResponseWriter, r *http.Request) {
		s.message(w, r, Sent{ChannelID: r.PathValue("channel")})
	})
	api("POST", "/webhooks/{application}/{token}", func(w http.ResponseWriter, r *http.Request) {
		s.message(w, r, Sent{Interaction: strings.TrimPrefix(r.PathValue("token"), "token-")})
	})
	api("POST", "/interactions/{id}/{token}/callback", s.respond)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		s.fault("the bot asked for %s %s", r.Method, r.URL.Path)
		s.writeJSON(w, http.StatusNotFound, map[string]any{"message": "404: Not Found", "code": 0})
	})
}

func (s *Server) command(w http.ResponseWriter, r *http.Request) {
	var c discordgo.ApplicationCommand
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || r.PathValue("application") != Application {
		s.fault("a command for %s: %v", r.PathValue("application"), err)
	}
	s.mu.Lock()
	c.ID = s.id()
	s.commands = append(s.commands, c)
	s.mu.Unlock()
	s.writeJSON(w, http.StatusCreated, c)
}

func (s *Server) typed(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.typing[r.PathValue("channel")]++
	f := s.hiccup
	s.hiccup = nil
	s.mu.Unlock()
	if f != nil {
		f()
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) respond(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Type int `json:"type"`
		Data struct {
			Content  string                 `json:"content"`
			Flags    discordgo.MessageFlags `json:"flags"`
			CustomID string                 `json:"custom_id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		s.fault("a response: %v", err)
	}
	s.mu.Lock()
	s.responses = append(s.responses, Response{r.PathValue("id"), in.Type, in.Data.Content, in.Data.Flags, in.Data.CustomID})
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// Responses are those to an interaction.
func (s *Server) Responses(interaction string) (out []Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.responses {
		if r.Interaction == interaction {
			out = append(out, r)
		}
	}
	return out
}

// Sent are the messages that a channel got, or an interaction.
func (s *Server) Sent(where string) (out []Sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.sent {
		if m.ChannelID == where || m.Interaction == where {
			out = append(out, m)
		}
	}
	return out
}

func (s *Server) message(w http.ResponseWriter, r *http.Request, m Sent) {
	if err := m.read(r); err != nil {
		s.fault("a message: %v", err)
		s.writeJSON(w, http.StatusBadRequest, map[string]any{"message": err.Error(), "code": 50035})
		return
	}
	s.mu.Lock()
	status, answer := s.take(&m)
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("X-RateLimit-Reset-After", fmt.Sprint(retryTime))
		w.Header().Set("X-RateLimit-Remaining", "0")
	}
	s.mu.Unlock()
	s.writeJSON(w, status, answer)
}

// take keeps a message, or says why not. The caller holds mu.
func (s *Server) take(m *Sent) (int, any) {
	var sum int
	for _, f := range m.Files {
		sum += len(f.Content)
	}
	switch {
	case s.limited > 0:
		s.limited--
		s.counts.Limited++
		return http.StatusTooManyRequests, map[string]any{"message": "You are being rate limited.", "retry_after": retryTime, "global": false}
	case sum > MaxUpload || len(m.Files) > 0 && s.tooLarge > 0:
		s.tooLarge--
		return http.StatusRequestEntityTooLarge, map[string]any{"message": "Request entity too large", "code": 40005}
	}
	m.ID = s.id()
	s.sent = append(s.sent, *m)
	return http.StatusOK, map[string]any{"id": m.ID, "channel_id": m.ChannelID, "content": m.Content, "author": bot()}
}

// read checks a message as Discord does.
func (m *Sent) read(r *http.Request) error {
	var in struct {
		Content   string                      `json:"content"`
		Flags     discordgo.MessageFlags      `json:"flags"`
		Mentions  json.RawMessage             `json:"allowed_mentions"`
		Reference *discordgo.MessageReference `json:"message_reference"`
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if kind != "multipart/form-data" {
		err = json.NewDecoder(r.Body).Decode(&in)
	} else {
		parts := multipart.NewReader(r.Body, params["boundary"])
		for {
			p, partErr := parts.NextPart()
			if partErr == io.EOF {
				break
			}
			if partErr != nil {
				return partErr
			}
			content, readErr := io.ReadAll(p)
			if readErr != nil {
				return readErr
			}
			if p.FormName() == "payload_json" {
				err = json.Unmarshal(content, &in)
			} else {
				m.Files = append(m.Files, File{p.FileName(), content})
			}
		}
	}
	if in.Reference != nil {
		m.Reply = in.Reference.MessageID
	}
	m.Content, m.Flags, m.Mentions = in.Content, in.Flags, string(in.Mentions)
	switch {
	case err != nil:
		return err
	case utf8.RuneCountInString(in.Content) > MaxContent:
		return fmt.Errorf("content: must be %d or fewer in length, and is %d", MaxContent, utf8.RuneCountInString(in.Content))
	case strings.TrimSpace(in.Content) == "" && len(m.Files) == 0:
		return fmt.Errorf("cannot send an empty message")
	case len(m.Files) > maxFiles:
		return fmt.Errorf("%d files", len(m.Files))
	}
	return nil
}

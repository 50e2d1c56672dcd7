package discordtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"
)

// What the server knows of the bot.
const (
	Token       = "bot-token"
	BotID       = "1000"
	Application = "2000"
	Guild       = "3000"
)

// Heartbeat is the interval that the gateway asks for. It is short, so that a test
// sees some.
const Heartbeat = 250 * time.Millisecond

// Server is a Discord.
type Server struct {
	http *httptest.Server

	mu     sync.Mutex
	now    *connection // nil: no bot is connected
	counts Counts
	ids    int
	events []event // of the session
	faults []string

	sent      []Sent
	responses []Response
	typing    map[string]int
	commands  []discordgo.ApplicationCommand
	files     map[string][]byte
	limited   int
	tooLarge  int
	hiccup    func() // called once, before the next typing indicator is answered
}

// Counts are of what the bot did.
type Counts struct{ Identified, Resumed, Beats, Limited int }

type event struct {
	Op       int    `json:"op"`
	Data     any    `json:"d"`
	Sequence int    `json:"s,omitempty"`
	Type     string `json:"t,omitempty"`
}

// New starts a Discord that ends with the test, which fails if the bot did what
// Discord refuses.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{typing: map[string]int{}, files: map[string][]byte{}, ids: 10_000}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /gateway-socket/", s.gateway)
	mux.HandleFunc("GET /attachments/", s.attachment)
	s.routes(mux)
	s.http = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.Drop()
		s.http.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, f := range s.faults {
			t.Errorf("discord: %s", f)
		}
	})
	return s
}

// URL is the address of API and attachments.
func (s *Server) URL() string { return s.http.URL }

func (s *Server) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// id is a new snowflake. The caller holds mu.
func (s *Server) id() string {
	s.ids++
	return fmt.Sprint(s.ids)
}

// Counts are those so far.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Typing counts the typing indicators of a channel.
func (s *Server) Typing(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typing[channel]
}

// Commands are those that the bot registered.
func (s *Server) Commands() []discordgo.ApplicationCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]discordgo.ApplicationCommand(nil), s.commands...)
}

// RateLimit has the next n messages refused before they are taken.
func (s *Server) RateLimit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limited = n
}

// TooLarge has the next n messages with files refused.
func (s *Server) TooLarge(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tooLarge = n
}

// WhenTyping calls f once, when the bot says next that it is at work.
func (s *Server) WhenTyping(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hiccup = f
}

// Attach keeps a file, and is what a message with it says.
func (s *Server) Attach(name string, content []byte) *discordgo.MessageAttachment {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id()
	path := "/attachments/1/" + id + "/" + name
	s.files[path] = content
	return &discordgo.MessageAttachment{ID: id, Filename: name, Size: len(content), URL: s.http.URL + path + "?ex=1&is=2&hm=3"}
}

func (s *Server) attachment(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	content, ok := s.files[r.URL.Path]
	s.mu.Unlock()
	if r.Header.Get("Authorization") != "" {
		s.fault("the token went to the host of attachments")
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}

// connection is one to the gateway.
type connection struct {
	socket *websocket.Conn
	mu     sync.Mutex
}

func (c *connection) send(e event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket.WriteJSON(e)
}

func (c *connection) end(code int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
	_ = c.socket.Close()
}

func (s *Server) writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.fault("encode an answer: %v", err)
	}
}

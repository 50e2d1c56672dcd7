package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"notebox/executor/problem"
)

const (
	// SessionTimeout ends an MCP session of which no request has come for so long; a client
	// begins another by itself.
	SessionTimeout = 30 * time.Minute
	// MaxSessions bounds those of one owner: a person has a few clients, and a session
	// is some 100 kB.
	MaxSessions = 100
	// listTime bounds the look at what languages there are, which is in memory.
	listTime = 10 * time.Second
	// MaxBody bounds one message, in bytes: a file that is written, in base64.
	MaxBody = 16 << 20
	// MaxValues bounds the values and names of a message: those of the protocol are some 50,
	// and one of two bytes is hundreds in memory.
	MaxValues = 10_000
	// idHeader names an MCP session.
	idHeader = "Mcp-Session-Id"
	// baseHeader has what links start with, from a request to the call that it makes; no
	// client's comes through.
	baseHeader = "Notebox-Mcp-Base"
)

// Handler serves MCP over streamable HTTP.
type Handler struct {
	of     Callers
	idle   time.Duration // SessionTimeout, but for tests
	owners struct {
		sync.Mutex
		all map[string]*owned
	}
	streams context.Context // ends with the service: of streams on which nobody is answered
	end     context.CancelFunc
	secret  [32]byte                  // so that the ids of one owner's sessions tell nothing of others
	mint    func(owner string) string // begins an id: unguessable, without a hyphen
}

// owned is what serves one owner.
type owned struct {
	server  *sdk.Server
	handler *sdk.StreamableHTTPHandler
}

// Callers returns the Service of who sent these headers. base is what links start with. Its
// error is a *Refusal if the key is not known any more.
type Callers func(head http.Header, base string) (Service, error)

// NewHandler returns one whose calls go to the Services of their callers.
func NewHandler(of Callers) *Handler {
	h := &Handler{of: of, idle: SessionTimeout, mint: func(string) string { return rand.Text() }}
	h.owners.all = map[string]*owned{}
	h.streams, h.end = context.WithCancel(context.Background())
	_, _ = rand.Read(h.secret[:]) // it does not fail
	return h
}

// Serve answers a request of an owner, which has passed the guards of keys and browsers.
// base is what links start with. If it returns an error, it has answered nothing.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, owner, base string) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if r.Method == http.MethodGet {
		defer context.AfterFunc(h.streams, cancel)()
	}
	r = r.Clone(ctx)
	r.Header.Set(baseHeader, base)
	o, err := h.ownedBy(r, owner)
	if err != nil {
		return err
	}
	switch id := r.Header.Get(idHeader); {
	case id != "" && !h.owns(owner, id):
		http.Error(w, "session not found", http.StatusNotFound) // as the SDK says of its own
		return nil
	case id == "" && r.Method == http.MethodPost && o.sessions() >= MaxSessions:
		return &problem.Error{Status: problem.StatusTooMany, Text: "there are too many MCP sessions; close some", RetryAfter: retry}
	}
	o.handler.ServeHTTP(w, r)
	return nil
}

func (o *owned) sessions() (n int) {
	for range o.server.Sessions() {
		n++
	}
	return n
}

// ownedBy returns what serves an owner; it is made with the first request.
func (h *Handler) ownedBy(r *http.Request, owner string) (*owned, error) {
	h.owners.Lock()
	defer h.owners.Unlock()
	if o := h.owners.all[owner]; o != nil {
		return o, nil
	}
	of := func(head http.Header) (Service, error) { return h.of(head, head.Get(baseHeader)) }
	first, err := of(r.Header)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), listTime)
	defer cancel()
	server, err := NewServer(ctx, first, func(req *sdk.CallToolRequest) (Service, error) { return of(req.Extra.Header) },
		Options{Version: Version, sessionID: func() string { return h.newID(owner) }})
	if err != nil {
		return nil, err
	}
	o := &owned{server: server, handler: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{
			SessionTimeout: h.idle, MaxRequestBodyBytes: MaxBody,
			DisableLocalhostProtection:   true, // the service's own rules are stricter, and know its names
			PropagateRequestCancellation: true,
		})}
	h.owners.all[owner] = o
	return o, nil
}

// Version is what servers say that they are.
const Version = "1"

// newID is unguessable, and tells whose session it is to who has the secret.
func (h *Handler) newID(owner string) string {
	id := h.mint(owner)
	return id + "-" + h.mark(owner, id)
}

func (h *Handler) mark(owner, id string) string {
	sum := sha256.Sum256(append(h.secret[:], id+"\x00"+owner...))
	return hex.EncodeToString(sum[:8])
}

func (h *Handler) owns(owner, id string) bool {
	id, mark, _ := strings.Cut(id, "-")
	return subtle.ConstantTimeCompare([]byte(mark), []byte(h.mark(owner, id))) == 1
}

// Streams ends when EndStreams is called.
func (h *Handler) Streams() context.Context { return h.streams }

// EndStreams ends the streams by which clients hear of what they did not ask for; calls
// that go on are answered.
func (h *Handler) EndStreams() { h.end() }

// Close ends every MCP session.
func (h *Handler) Close() {
	h.end()
	h.owners.Lock()
	defer h.owners.Unlock()
	for _, o := range h.owners.all {
		for session := range o.server.Sessions() {
			_ = session.Close()
		}
	}
}

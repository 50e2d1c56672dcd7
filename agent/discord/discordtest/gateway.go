package discordtest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"
)

// The gateway's operations.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

const (
	closeToken = 4004
	sessionID  = "session-1"
)

func (s *Server) gateway(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("encoding") != "json" {
		s.fault("the gateway was asked for another encoding than JSON")
	}
	upgrader := websocket.Upgrader{}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		s.fault("upgrade: %v", err)
		return
	}
	defer socket.Close()
	c := &connection{socket: socket}
	if c.send(event{Op: opHello, Data: map[string]any{"heartbeat_interval": Heartbeat.Milliseconds()}}) != nil {
		return
	}
	for {
		var in struct {
			Op   int             `json:"op"`
			Data json.RawMessage `json:"d"`
		}
		if socket.ReadJSON(&in) != nil {
			return
		}
		switch in.Op {
		case opHeartbeat:
			s.mu.Lock()
			s.counts.Beats++
			s.mu.Unlock()
			if c.send(event{Op: opAck}) != nil {
				return
			}
		case opIdentify:
			if !s.identify(c, in.Data) {
				return
			}
		case opResume:
			if !s.resume(c, in.Data) {
				return
			}
		}
	}
}

func (s *Server) identify(c *connection, raw json.RawMessage) bool {
	var in struct {
		Token   string `json:"token"`
		Intents int    `json:"intents"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		s.fault("identify: %v", err)
	}
	if in.Token != "Bot "+Token {
		c.end(closeToken, "Authentication failed.")
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Identified++
	s.events, s.now = nil, c
	return s.dispatch("READY", map[string]any{
		"v": 9, "session_id": sessionID, "user": bot(), "application": map[string]any{"id": Application, "flags": 0},
		"guilds": []any{map[string]any{"id": Guild, "unavailable": true}},
		"shard":  []int{0, 1}, "private_channels": []any{},
	}) == nil
}

func bot() map[string]any {
	return map[string]any{"id": BotID, "username": "notebox", "discriminator": "0", "bot": true}
}

func (s *Server) resume(c *connection, raw json.RawMessage) bool {
	var in struct {
		Token     string `json:"token"`
		SessionID string `json:"session_id"`
		Sequence  int    `json:"seq"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		s.fault("resume: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Token != "Bot "+Token || in.SessionID != sessionID || in.Sequence > len(s.events) || len(s.events) == 0 {
		return c.send(event{Op: opInvalid, Data: false}) == nil
	}
	s.counts.Resumed++
	for _, e := range s.events[in.Sequence:] {
		if c.send(e) != nil {
			return false
		}
	}
	s.now = c
	return s.dispatch("RESUMED", map[string]any{}) == nil
}

// dispatch keeps an event and sends it, if a bot is there. The caller holds mu.
func (s *Server) dispatch(name string, data any) error {
	e := event{Op: opDispatch, Data: data, Sequence: len(s.events) + 1, Type: name}
	s.events = append(s.events, e)
	if s.now == nil {
		return nil
	}
	return s.now.send(e)
}

// Again sends the last event with that name once more, with its number, as happens
// around a break.
func (s *Server) Again(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.events) - 1; i >= 0; i-- {
		if s.events[i].Type == name && s.now != nil {
			_ = s.now.send(s.events[i])
			return
		}
	}
}

// Message dispatches one, and returns its id. What is left open is filled in: it is of
// user 500, in channel 700.
func (s *Server) Message(m discordgo.Message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.ID = s.id()
	if m.ChannelID == "" {
		m.ChannelID = "700"
	}
	if m.Author == nil {
		m.Author = &discordgo.User{ID: "500", Username: "anna"}
	}
	m.Timestamp = time.Now()
	_ = s.dispatch("MESSAGE_CREATE", m) // a connection that is gone resumes
	return m.ID
}

// Mention is a message that names the bot.
func Mention(text string) discordgo.Message {
	return discordgo.Message{GuildID: Guild, Content: "<@" + BotID + "> " + text, Mentions: []*discordgo.User{{ID: BotID, Username: "notebox"}}}
}

// Interact dispatches an interaction of user 500 in channel 700 of the guild, and
// returns its id. The kind is 2 for a command and 5 for a dialogue.
func (s *Server) Interact(kind int, guild string, data map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id()
	user := map[string]any{"id": "500", "username": "anna"}
	i := map[string]any{
		"id": id, "application_id": Application, "type": kind, "token": "token-" + id, "version": 1,
		"channel_id": "700", "data": data, "guild_id": guild, "app_permissions": "0",
	}
	if guild == "" {
		i["user"] = user
	} else {
		i["member"] = map[string]any{"user": user, "roles": []string{}, "permissions": "0"}
	}
	_ = s.dispatch("INTERACTION_CREATE", i)
	return id
}

// Thread dispatches that a thread was made.
func (s *Server) Thread(id, parent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.dispatch("THREAD_CREATE", map[string]any{"id": id, "parent_id": parent, "guild_id": Guild, "type": discordgo.ChannelTypeGuildPublicThread, "name": "thread"})
}

// Drop breaks the connection, as a network does. What is dispatched then is kept.
func (s *Server) Drop() {
	if c := s.leave(); c != nil {
		_ = c.socket.UnderlyingConn().Close()
	}
}

// Reconnect asks the bot to connect again, as Discord does when it moves.
func (s *Server) Reconnect() {
	if c := s.leave(); c != nil {
		_ = c.send(event{Op: opReconnect})
	}
}

// Forget breaks the connection and forgets the session, so that it cannot be resumed.
func (s *Server) Forget() {
	c := s.leave()
	s.mu.Lock()
	s.events = nil
	s.mu.Unlock()
	if c != nil {
		_ = c.socket.UnderlyingConn().Close()
	}
}

func (s *Server) leave() *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.now
	s.now = nil
	return c
}

// Connected reports whether a bot is.
func (s *Server) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now != nil
}

package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"notebox/agent"
)

// Config is what a Bot is made of. Token, Agent, Executor, and Guilds or Users must be
// set.
type Config struct {
	Token    string
	Agent    *agent.Agent
	Executor agent.Executor // of /run
	// Guilds and Users are the ids of those that are answered: in a guild it must be
	// among Guilds and, where Users are named, the user among them; a direct message
	// must be of one of Users.
	Guilds, Users []string
	// MessageContent asks for the content of all messages, so that the bot hears what
	// does not mention it, in threads. Discord gives it to bots for which that intent
	// was turned on.
	MessageContent bool
	UploadLimit    int64 // bytes that Discord takes in one message; 0 is DefaultUploadLimit
	Limits         Limits

	API   string       // "" is https://discord.com; or a proxy of it
	CDN   []string     // where attachments may come from; none: Discord's hosts
	Files *http.Client // fetches what notebox links to; nil: one that follows no redirects
	Log   *slog.Logger // nil: slog.Default()
}

// Bot answers on Discord.
type Bot struct {
	config  Config
	limits  Limits
	access  access
	log     *slog.Logger
	session *discordgo.Session
	rooms   *rooms
	heard   heard
	cdn     []*url.URL
	fetcher *http.Client // of attachments
	id      string       // of the bot's user, set before the gateway is opened
}

// New checks a Config. It connects to nothing.
func New(c Config) (*Bot, error) {
	if c.Token == "" || c.Agent == nil || c.Executor == nil {
		return nil, errors.New("discord: a token, an agent and an executor must be set")
	}
	allowed, err := newAccess(c.Guilds, c.Users)
	if err != nil {
		return nil, err
	}
	b := &Bot{config: c, limits: c.Limits.orDefault(), access: allowed, log: cmp.Or(c.Log, slog.Default()), heard: newHeard(remembered)}
	b.config.UploadLimit = cmp.Or(b.config.UploadLimit, DefaultUploadLimit)
	b.fetcher = &http.Client{Timeout: requestTime, CheckRedirect: stay}
	b.config.Files = cmp.Or(b.config.Files, b.fetcher)
	if b.cdn, err = hosts(c.CDN); err != nil {
		return nil, err
	}
	b.rooms = newRooms(b.limits, c.Agent)
	return b, b.prepare()
}

// stay follows no redirect: where it leads, nobody allowed.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// prepare makes the session, which reads the environment for nothing.
func (b *Bot) prepare() error {
	s, err := discordgo.New("Bot " + strings.TrimPrefix(b.config.Token, "Bot "))
	if err != nil {
		return fmt.Errorf("discord: %w", err)
	}
	s.Identify.Intents = discordgo.IntentsGuilds | discordgo.IntentsGuildMessages | discordgo.IntentsDirectMessages
	if b.config.MessageContent {
		s.Identify.Intents |= discordgo.IntentMessageContent
	}
	s.SyncEvents = true // messages are questions in the order in which they came
	s.ShouldReconnectVoiceOnSessionError = false
	s.State.TrackEmojis, s.State.TrackMembers, s.State.TrackRoles = false, false, false
	s.State.TrackVoice, s.State.TrackPresences, s.State.TrackThreadMembers = false, false, false
	s.Client = &http.Client{Timeout: requestTime}
	if b.config.API != "" {
		api, err := url.Parse(b.config.API)
		if err != nil || api.Host == "" || api.Scheme != "http" && api.Scheme != "https" {
			return fmt.Errorf("discord: %q is no address of an API", b.config.API)
		}
		s.Client.Transport = elsewhere{api}
	}
	b.session = s
	return nil
}

// elsewhere sends what is for discord.com to another host.
type elsewhere struct{ api *url.URL }

// RoundTrip implements http.RoundTripper.
func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = e.api.Scheme, e.api.Host, e.api.Host
	r.URL.Path = strings.TrimRight(e.api.Path, "/") + r.URL.Path
	r.URL.RawPath = ""
	return http.DefaultTransport.RoundTrip(r)
}

// Run answers until ctx ends, and returns nil then. An error means that the bot could
// not begin. It is called once.
func (b *Bot) Run(ctx context.Context) error {
	me, err := b.session.User("@me", discordgo.WithContext(ctx))
	if err != nil {
		return begin(ctx, err)
	}
	b.id = me.ID
	b.session.Dialer = &websocket.Dialer{
		Proxy:            http.ProxyFromEnvironment,
		HandshakeTimeout: requestTime,
		NetDialContext: func(dialing context.Context, network, address string) (net.Conn, error) {
			if ctx.Err() != nil { // discordgo would connect again for ever
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(dialing, network, address)
		},
	}
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	b.session.AddHandler(func(_ *discordgo.Session, m *discordgo.MessageCreate) { b.onMessage(working, m.Message) })
	b.session.AddHandler(func(_ *discordgo.Session, i *discordgo.InteractionCreate) { b.onInteraction(working, i.Interaction) })
	b.session.AddHandler(func(*discordgo.Session, *discordgo.Resumed) { b.log.Info("discord: the connection was resumed") })
	opened := make(chan error, 1)
	go func() { opened <- b.session.Open() }()
	select {
	case err = <-opened:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return begin(ctx, err)
	}
	b.register(ctx, me.ID)
	b.log.Info("discord: ready", "user", me.Username, "guilds", b.config.Guilds, "users", b.config.Users)
	<-ctx.Done()
	if err := b.session.Close(); err != nil {
		b.log.Warn("discord: close", "error", err)
	}
	b.rooms.end(stopTime)
	return nil
}

// begin is the error of a start, in words for the operator.
func begin(ctx context.Context, err error) error {
	var rest *discordgo.RESTError
	var gateway *websocket.CloseError
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &rest) && rest.Response.StatusCode == http.StatusUnauthorized,
		errors.As(err, &gateway) && gateway.Code == closedToken:
		return errors.New("discord: the token is not accepted: take it from the page of the bot, not of OAuth2")
	case errors.As(err, &gateway) && gateway.Code == closedIntents:
		return errors.New("discord: the intent for the content of messages is not turned on for the bot: turn it on where its token is, or do without it")
	}
	return fmt.Errorf("discord: %w", err)
}

// The codes with which the gateway ends for good.
const (
	closedToken   = 4004
	closedIntents = 4014
)

// heard are the ids of messages that came, the newest of them.
type heard struct {
	known map[string]bool
	order []string
	next  int
}

func newHeard(most int) heard { return heard{map[string]bool{}, make([]string, most), 0} }

// first reports whether an id is new. Events come one after the other.
func (h *heard) first(id string) bool {
	if h.known[id] {
		return false
	}
	delete(h.known, h.order[h.next])
	h.known[id], h.order[h.next] = true, id
	h.next = (h.next + 1) % len(h.order)
	return true
}

// withTime is a context that outlives the end of ctx by a little.
func withTime(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}

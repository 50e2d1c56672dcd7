package discord

import (
	"context"
	"sync"
	"time"

	"notebox/agent"
)

// rooms are the channels in which the bot was asked, with what waits in each.
type rooms struct {
	limits Limits
	agent  *agent.Agent
	places chan struct{} // one for each job that is worked on

	mu    sync.Mutex
	all   map[string]*room
	ended bool
	busy  sync.WaitGroup
}

// room is a channel. What is below used belongs to the job that is worked on.
type room struct {
	waiting []job
	working bool
	used    time.Time
	thread  bool
	bytes   int64 // of attachments that its conversation keeps, at most

	talk  *agent.Conversation // nil: none yet
	links links
}

// job is a question, or a program. It minds ctx, also when it has ended already.
type job func(ctx context.Context, r *room)

func newRooms(limits Limits, a *agent.Agent) *rooms {
	return &rooms{limits: limits, agent: a, places: make(chan struct{}, limits.AtOnce), all: map[string]*room{}}
}

// add queues a job. It reports false if too many wait.
func (s *rooms) add(ctx context.Context, id string, j job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return true // nobody is left to be told
	}
	r := s.all[id]
	if r == nil {
		r = &room{}
		s.all[id] = r
	}
	if len(r.waiting) > s.limits.Waiting {
		return false
	}
	r.waiting, r.used = append(r.waiting, j), time.Now()
	if !r.working {
		r.working = true
		s.busy.Add(1)
		go s.work(ctx, r)
	}
	return true
}

// work does the jobs of a room, one after the other.
func (s *rooms) work(ctx context.Context, r *room) {
	defer s.busy.Done()
	for {
		s.mu.Lock()
		if len(r.waiting) == 0 {
			r.working, r.used = false, time.Now()
			old := s.old()
			s.mu.Unlock()
			closeAll(old)
			return
		}
		j := r.waiting[0]
		s.mu.Unlock()
		select {
		case s.places <- struct{}{}:
			j(ctx, r)
			<-s.places
		case <-ctx.Done():
			j(ctx, r)
		}
		s.mu.Lock()
		r.waiting = r.waiting[1:]
		s.mu.Unlock()
	}
}

// old takes out the rooms that nobody used for longest, if there is too much.
func (s *rooms) old() (out []*room) {
	for {
		var bytes int64
		oldest := ""
		for id, r := range s.all {
			bytes += r.bytes
			if !r.working && (oldest == "" || r.used.Before(s.all[oldest].used)) {
				oldest = id
			}
		}
		if oldest == "" || len(s.all) <= s.limits.Channels && bytes <= s.limits.Files {
			return out
		}
		out = append(out, s.all[oldest])
		delete(s.all, oldest)
	}
}

// keep notes bytes of attachments that a room's conversation keeps from now on.
func (s *rooms) keep(r *room, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.bytes = min(r.bytes+bytes, s.agent.Limits().Files)
}

// conversation is a room's. Only its job may ask.
func (s *rooms) conversation(r *room) *agent.Conversation {
	if r.talk == nil {
		r.talk = s.agent.Converse()
	}
	return r.talk
}

// isThread notes that a room is one in which the bot takes part.
func (s *rooms) isThread(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.all[id]
	return r != nil && r.thread
}

func (s *rooms) setThread(r *room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.thread = true
}

// end waits for the jobs, which know that they should end, and closes conversations.
func (s *rooms) end(most time.Duration) {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.busy.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(most):
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*room, 0, len(s.all))
	for _, r := range s.all {
		all = append(all, r)
	}
	closeAll(all)
}

// closeAll ends conversations, whose sessions would end by themselves, too.
func closeAll(all []*room) {
	for _, r := range all {
		if r.talk != nil {
			_ = r.talk.Close()
		}
	}
}

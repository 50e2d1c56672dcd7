package console

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// frameTime is how long one frame of the spinner is shown.
const frameTime = 120 * time.Millisecond

var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// clearLine goes to the beginning of the line and clears it.
const clearLine = "\r\x1b[K"

// spinner is the last line of the terminal while something is under way. All else that
// is written meanwhile goes through print.
type spinner struct {
	w       io.Writer
	columns func() int
	off     bool

	mu    sync.Mutex
	what  string // "": nothing is under way
	tail  string
	since time.Time
	frame int
	stop  chan struct{}
	done  sync.WaitGroup
}

// begin shows that something is under way, until end.
func (s *spinner) begin() {
	if s.off {
		return
	}
	s.stop = make(chan struct{})
	s.done.Go(func() {
		tick := time.NewTicker(frameTime)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
				s.mu.Lock()
				s.frame++
				s.draw()
				s.mu.Unlock()
			}
		}
	})
}

func (s *spinner) end() {
	if s.off {
		return
	}
	close(s.stop)
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.what != "" {
		_, _ = io.WriteString(s.w, clearLine)
	}
	s.what = ""
}

// say says what is under way; tail is the newest of it.
func (s *spinner) say(what, tail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what != s.what {
		s.since = time.Now()
	}
	s.what, s.tail = what, tail
}

// print writes text above the spinner.
func (s *spinner) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.off && s.what != "" {
		text = clearLine + text
	}
	_, _ = io.WriteString(s.w, text)
}

func (s *spinner) draw() {
	if s.what == "" {
		return
	}
	line := fmt.Sprintf("%c %s", frames[s.frame%len(frames)], s.what)
	if seconds := int(time.Since(s.since).Seconds()); seconds > 0 {
		line += fmt.Sprintf(" %ds", seconds)
	}
	if s.tail != "" {
		line += "  " + s.tail
	}
	_, _ = fmt.Fprintf(s.w, "%s%s%s%s", clearLine, dim, ansi.Truncate(line, s.columns()-1, "…"), plain)
}

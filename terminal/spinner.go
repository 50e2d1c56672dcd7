package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// frameTime is how long one frame of the Spinner is shown.
const frameTime = 120 * time.Millisecond

var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// clearLine goes to the beginning of the line and clears it.
const clearLine = "\r\x1b[K"

// Spinner is the last line of the terminal while something is under way. All else that
// is written meanwhile goes through Print.
type Spinner struct {
	W       io.Writer
	Columns func() int // of the terminal
	Off     bool       // nothing is shown

	mu    sync.Mutex
	what  string // "": nothing is under way
	tail  string
	since time.Time
	frame int
	stop  chan struct{}
	done  sync.WaitGroup
}

// Begin shows that something is under way, until End.
func (s *Spinner) Begin() {
	if s.Off {
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

// End takes the line away.
func (s *Spinner) End() {
	if s.Off || s.stop == nil { // it has not begun
		return
	}
	close(s.stop)
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.what != "" {
		_, _ = io.WriteString(s.W, clearLine)
	}
	s.what = ""
}

// Say says what is under way; tail is the newest of it.
func (s *Spinner) Say(what, tail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what != s.what {
		s.since = time.Now()
	}
	s.what, s.tail = what, tail
}

// Print writes text above the Spinner.
func (s *Spinner) Print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Off && s.what != "" {
		text = clearLine + text
	}
	_, _ = io.WriteString(s.W, text)
}

func (s *Spinner) draw() {
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
	_, _ = fmt.Fprintf(s.W, "%s%s%s%s", clearLine, Dim, ansi.Truncate(line, s.Columns()-1, "…"), Plain)
}

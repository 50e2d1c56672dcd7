package dify

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Reply is the answer of run_code and execute_command. The wrapper's has output alone.
type Reply struct {
	// Output has stdout, stderr, results and traceback in order, then images and files as
	// lines with URLs. That a command failed, or variables are lost, is in it too.
	Output   string  `json:"output"`
	Images   []Image `json:"images"`
	Files    []File  `json:"files"`
	ExitCode *int    `json:"exit_code"` // of a command that ended by itself
	Error    *Error  `json:"error"`     // nil if all went well

	end   End
	limit time.Duration // after which it was interrupted, if that is not the protocol's
}

// told makes the answer of a. Its output says all that a model must know which reads nothing
// but that.
func told(a Reply, limit time.Duration) Reply {
	a.Images, a.Files = append([]Image{}, a.Images...), append([]File{}, a.Files...)
	ended := sentence(a.end, cmp.Or(a.limit, limit))
	switch {
	case ended != "":
		a.Error = &Error{Status: "timeout", Message: ended} // instead of what the interrupt raised
		a.Output = withLine(a.Output, ended)
	case a.Error != nil && (a.Error.Name == "" || a.Error.Status != statusError):
		// No traceback says what happened, or only what the code saw of it.
		a.Output = withLine(a.Output, a.Error.Hint)
	}
	return a
}

// End says how a run came to its end, as far as a sentence of this protocol is about it.
type End string

// The ends of a run.
const (
	EndSelf        End = ""            // by itself, or by a limit that Error.Message is about
	EndInterrupted End = "interrupted" // at program.Interrupt
	EndNotBegun    End = "not_begun"   // its turn did not come before program.Interrupt
	EndOpen        End = "open"        // at program.Answer it had not ended, interrupted as it was
)

// Error is why a run did not go well.
type Error struct {
	Status  string `json:"status"`  // error, timeout, out_of_memory, killed, output_limit, cancelled
	Name    string `json:"name"`    // of an exception; may be empty
	Message string `json:"message"` // of the exception
	Hint    string `json:"hint"`    // one sentence for a model: what to change; may be empty
}

// Image is a picture that a run displayed.
type Image struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	URL       string `json:"url"`
}

// File is one that a run created or changed.
type File struct {
	Path      string `json:"path"`
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	URL       string `json:"url"`
}

// statusError is the Error.Status of code that failed by itself.
const statusError = "error"

// sentence says to a model how a run ended that took too long, and what it can do.
func sentence(end End, limit time.Duration) string {
	seconds := limit.Seconds()
	switch end {
	case EndInterrupted:
		return fmt.Sprintf("The run was interrupted after %v seconds, which is the longest that one call may take; what it printed until then is above. The sandbox and its files are still there: do the work in several shorter calls.", seconds)
	case EndNotBegun:
		return fmt.Sprintf("This was not run: it waited %v seconds for its turn, which did not come, as other runs were before it. Send it again later.", seconds)
	case EndOpen:
		return fmt.Sprintf("The run was interrupted after %v seconds, which is the longest that one call may take, and is being ended; what is known of its output is above. The sandbox and its files are still there, its variables may be lost: do the work in several shorter calls.", seconds)
	}
	return ""
}

// withLine adds a line of the service's own, in brackets, which tell it from the program's.
func withLine(output, line string) string {
	if line == "" {
		return output
	}
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return output + "[" + line + "]\n"
}

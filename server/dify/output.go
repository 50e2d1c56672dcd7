package dify

import (
	"fmt"
	"strings"
	"time"
)

// runReply is the answer of run_code and execute_command. The wrapper's has output alone.
type runReply struct {
	Output   string  `json:"output"`
	Images   []Image `json:"images"`
	Files    []File  `json:"files"`
	ExitCode *int    `json:"exit_code"`
	Error    *Error  `json:"error"`
}

// told makes an answer, whose output says all that a model must know which reads nothing
// but that.
func told(r *Result, limit time.Duration) runReply {
	a := runReply{Output: r.Text, Images: r.Images, Files: r.Files, ExitCode: r.ExitCode, Error: r.Error}
	if a.Images == nil {
		a.Images = []Image{}
	}
	if a.Files == nil {
		a.Files = []File{}
	}
	if r.Limit > 0 {
		limit = r.Limit
	}
	ended := sentence(r.End, limit)
	switch {
	case ended != "":
		a.Error = &Error{Status: "timeout", Message: ended} // instead of what the interrupt raised
		a.Output = withLine(a.Output, ended)
	case r.Error != nil && (r.Error.Name == "" || r.Error.Status != statusError):
		// No traceback says what happened, or only what the code saw of it.
		a.Output = withLine(a.Output, r.Error.Hint)
	}
	return a
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

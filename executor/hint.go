package executor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/runner"
)

// hintNames is how many packages or files a hint names at most: enough for all
// that an environment has, so that a model need not ask for the list.
const hintNames = 40

// hint is one sentence that tells a model what to change; empty for a run that
// is well.
func hint(p *plan, out *runner.Outcome, r *notebook.Result) string {
	limits := p.spec.Limits
	switch out.Status {
	case runner.StatusOK:
		return ""
	case runner.StatusTimeout:
		return fmt.Sprintf("The run was stopped after its limit of %v seconds: do less work, split it up, or ask for more time with timeout.", limits.Timeout.Seconds())
	case runner.StatusOutOfMemory:
		return fmt.Sprintf("The run needed more than its %s of memory, in which the files in /mnt/data and /tmp count: work on a part of the data at a time, or use smaller types.", size(limits.Memory))
	case runner.StatusOutputLimit:
		return fmt.Sprintf("The run put out more than %s and was stopped: print a summary, or write the data to a file in /mnt/data, which is returned.", size(limits.Output))
	case runner.StatusKilled:
		return "The interpreter died, by a crash of native code or because the code ended or killed its process: leave out exit calls and signals, and check what is passed to native libraries."
	case runner.StatusCancelled:
		return "The run was cancelled before it ended: send it again if its result is still wanted."
	}
	if r.Error == nil {
		if code := out.ExitCode; code != nil {
			return fmt.Sprintf("The command ended with exit code %d: read what it wrote, correct it and send it again.", *code)
		}
		return "The code raised an exception: read the output, " + again(p)
	}
	return hintForError(p, r.Error)
}

// notInstalled are the messages of code that asks for a package that is not there, with its
// name: of Python, of Deno for a bare name and for npm's, and of R.
var notInstalled = regexp.MustCompile(`^(?:No module named '([A-Za-z0-9_.]{1,100})'` +
	`|Import "([^"./:][^":]{0,100})" not a dependency|(?:Module not found|Could not find package|npm package) "?(?:npm:)?([@a-z0-9][^"/:\s]{0,100}(?:/[^"/:\s]{1,100})?)"` +
	`|Cannot find (?:module|package) '(?:npm:)?([@a-z0-9][^'/:\s]{0,100}(?:/[^'/:\s]{1,100})?)'` +
	`|there is no package called ['‘]([A-Za-z0-9.]{1,100})['’])`)

// packageName is a package as a message has it, in quotes or not.
const packageName = "[\"'`]?([A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9])?)"

// wanted are the words by which libraries tell what to install, the plainest first.
var wanted = []*regexp.Regexp{
	regexp.MustCompile("Missing optional dependency " + packageName + "|`Import " + packageName + "` failed"),
	regexp.MustCompile(`\b(?:pip3?|conda|uv) (?:install|add) (?:-\S+ )*` + packageName),
	regexp.MustCompile(`\b[Ii]nstall (?:the )?` + packageName),
	regexp.MustCompile(`\b(?:requires|without) (?:the )?` + packageName + "[\"'`]? (?:package|library|module|to be installed|installed)"),
	regexp.MustCompile(packageName + "[\"'`]? (?:package |library |module )?(?:is required|is needed|is not installed|not installed|must be installed|needs to be installed|not found)"),
}

// noPackages are words that stand where a package would.
var noPackages = []string{"a", "an", "and", "any", "from", "it", "library", "module", "one", "or", "package", "pip", "that", "the", "them", "this", "via", "which", "with"}

// namedToInstall is the package that an ImportError names, or another exception that gives
// pip's command; "" if there is none.
func namedToInstall(e *notebook.Exception) string {
	if e.Name != "ImportError" && !strings.Contains(e.Message, "pip install") {
		return ""
	}
	for _, words := range wanted {
		for _, found := range words.FindAllStringSubmatch(e.Message, -1) {
			if name := strings.Join(found[1:], ""); !slices.Contains(noPackages, strings.ToLower(name)) {
				return name
			}
		}
	}
	return ""
}

// missing is what an error says is not installed; "" where it says no such thing.
func missing(e *notebook.Exception) string {
	found := notInstalled.FindStringSubmatch(e.Message)
	switch {
	case found == nil && e.Name == "ModuleNotFoundError":
		return "A module"
	case found == nil && namedToInstall(e) != "":
		return "The package " + namedToInstall(e)
	case found == nil:
		return ""
	case e.Name == "ModuleNotFoundError":
		return "The module " + found[1]
	}
	return "The package " + problem.OneLine(strings.Join(found[1:], ""))
}

// toInstall says how code gets what is not there, or does without.
func toInstall(p *plan, what string) string {
	use := "use what is there, such as " + packagesOf(p) + "."
	switch {
	case p.installs && p.session == nil:
		return what + " is not installed: name the package that has it in dependencies, as " + p.environment.Dependencies.Notation + " does, or " + use
	case p.installs:
		return what + " is not installed, and the packages of a session are chosen when it is opened: " + use
	case p.networked() && p.environment.Language == "python":
		return what + " is not installed: install it into a folder of its own, with pip install --target, or " + use
	case p.networked():
		return what + " is not installed: " + use
	}
	return what + " is not installed, and without a network nothing can be: " + use
}

// networked reports whether the run may reach hosts: a session's says so itself.
func (p *plan) networked() bool {
	return p.spec.Network != nil || p.session != nil && p.session.session != nil && p.session.session.Info().Network
}

// noSuchFile are messages of code that opens a file that is not there, and calls it by no
// name of an exception.
var noSuchFile = regexp.MustCompile(`^cannot open the connection$|^cannot open file '|No such file or directory \(os error 2\)`)

// needsNetwork are exceptions that the common libraries raise if there is no
// network.
var needsNetwork = []string{
	"gaierror", "URLError", "ConnectionError", "ConnectTimeout", "ConnectError", "NewConnectionError",
	"MaxRetryError", "NameResolutionError", "ClientConnectorError", "SSLError",
	"ProxyError",
}

// saysNoNetwork finds the same in the message of any other exception, such as
// an OSError or one that a library made of it.
var saysNoNetwork = regexp.MustCompile(`Network is unreachable|Name or service not known|Temporary failure in name resolution|Failed to establish a new connection|Tunnel connection failed|^fetch failed|error sending request for url|[Cc]ould not resolve host|cannot open the connection to 'https?:|cannot open URL '`)

// saysOwnHost finds in a message that a connection was to the sandbox itself: no other host
// refuses one.
var saysOwnHost = regexp.MustCompile(`(?i)connection refused|ECONNREFUSED|\b(?:localhost|127\.0\.0\.1)\b|\[::1\]`)

func hintForError(p *plan, e *notebook.Exception) string {
	network := slices.Contains(needsNetwork, e.Name) || saysNoNetwork.MatchString(e.Message)
	switch {
	case missing(e) != "":
		return toInstall(p, missing(e))
	case e.Name == "CommandFailed" && strings.Contains(e.Message, "127"):
		return toInstall(p, "A command")
	case e.Name == "ReferenceError" && strings.HasPrefix(e.Message, "require is not defined"):
		return "There is no require() here: use import, as in import fs from \"node:fs\"."
	case e.Name == "FileNotFoundError" && (strings.Contains(e.Traceback, "_execute_child") || strings.Contains(e.Traceback, "subprocess.py")):
		return "The program that the code starts, or the folder to start it in, is not there, and code cannot install programs: do the same with a package, such as " + packagesOf(p) + "."
	case e.Name == "FileNotFoundError" || e.Name == "NotFound" || noSuchFile.MatchString(e.Message):
		return whereFiles(p)
	case e.Name == "StdinNotImplementedError" || e.Name == "EOFError" && strings.Contains(e.Traceback, "input("):
		return "Nobody is there to answer input(): put the values into the code."
	case strings.Contains(e.Message, "nobody can answer"):
		return "Nobody is there to answer a question for input: put the values into the code."
	case e.Name == "SyntaxError" || e.Name == "IndentationError" || e.Name == "TabError":
		return fmt.Sprintf("The code is not valid%s: %s", place(p, e), again(p))
	case e.Name == "ConnectionRefusedError" || network && saysOwnHost.MatchString(e.Message):
		return "Nothing answered at that address of the sandbox: start the server in the same code first, in the background, and wait until it listens."
	case network:
		if p.networked() {
			return "Code reaches the network only through the proxy that HTTPS_PROXY names, and there only hosts that the service's operator allows: use such a host, or send the data in files, where a url is fetched before the run."
		}
		return "The sandbox has no network: send the data in files, where a url is fetched before the run."
	case strings.Contains(e.Message, "event loop is already running") || strings.Contains(e.Message, "cannot be called from a running event loop"):
		return "A cell has an event loop that runs already: write await main() at its top level, or asyncio.run(main()) outside of any async function."
	case e.Name == "SystemExit":
		return fmt.Sprintf("The code ended itself with an exit code other than 0%s: read what it wrote, %s", place(p, e), again(p))
	case e.Name == "KeyboardInterrupt" && p.session != nil:
		return "The code was interrupted; the variables and files of this session are kept."
	case e.Name == "KeyboardInterrupt":
		return "The code was interrupted: make it do less work, or ask for more time with timeout."
	case strings.Contains(e.Message, "No space left on device"):
		return fmt.Sprintf("The disk is full: /mnt/data holds %s and /tmp %s, so write less or delete what is not needed any more.", size(p.spec.Limits.DataSize), size(p.spec.Limits.TmpSize))
	case e.Name == "PermissionError":
		return "The sandbox does not permit this: the code is an ordinary user there, who can write to /mnt/data and /tmp only."
	case strings.Contains(e.Message, "Read-only file system"):
		return "Only /mnt/data and /tmp can be written to: write results to /mnt/data, from where they are returned."
	}
	return fmt.Sprintf("The code raised %s%s: %s", className(e.Name), place(p, e), again(p))
}

// again says what to send after an exception.
func again(p *plan) string {
	if p.session != nil {
		return "correct it and send it again; the variables and files of this session are kept."
	}
	return "correct it and send all of it again, since nothing is kept between runs."
}

// whereFiles says which files there are.
func whereFiles(p *plan) string {
	if p.session != nil {
		return "Only files that were sent to this session or written in it are there, below /mnt/data; " + sent(p) + "."
	}
	return "Files are there only if they are sent with the request, below /mnt/data; " + sent(p) + "."
}

// place names the line of an exception as far as it is known.
func place(p *plan, e *notebook.Exception) string {
	line := p.lineOf(e)
	switch {
	case p.entrypoint != "" && line == 0:
		return " in " + problem.OneLine(p.entrypoint)
	case p.entrypoint != "":
		return fmt.Sprintf(" in line %d of %s", line, problem.OneLine(p.entrypoint))
	case line == 0:
		return fmt.Sprintf(" in cell %d", e.Cell)
	}
	return fmt.Sprintf(" in line %d of cell %d", line, e.Cell)
}

// className is an exception's class as a sentence can hold it; user code may
// call one anything.
func className(name string) string {
	name = problem.OneLine(name)
	if name == "" || len(name) > problem.MaxQuoted {
		return "an exception"
	}
	return name
}

func packagesOf(p *plan) string {
	names := p.environment.PackageNames()
	if len(names) == 0 {
		return "the standard library"
	}
	return list(names)
}

func sent(p *plan) string {
	var names []string
	for _, in := range p.spec.Inputs {
		names = append(names, in.Path)
	}
	if len(names) == 0 {
		return "this request had none"
	}
	return "this request had " + list(names)
}

func list(names []string) string {
	if len(names) > hintNames {
		return strings.Join(names[:hintNames], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// size writes bytes for people.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<30 && bytes%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", bytes>>30)
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

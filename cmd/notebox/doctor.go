package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/doctor"
	"notebox/environments"
	"notebox/executor"
	"notebox/runner/cells"
	"notebox/runner/docker"
	"notebox/runner/posture"
	"notebox/server"
	"notebox/storage"
)

const doctorHelp = `Looks at all that notebox needs here: the Docker daemon, its clock, control groups and
runtime, images, storage, folders, the port, API keys; then starts a real sandbox, looks
at its walls, and runs print(42) in it. Each line is ok, a warning, wrong or skipped,
and says how to mend it.

It takes the flags, variables and files of notebox serve, and disturbs no service that
runs. An invalid value in a variable or a file is one of the lines. The exit status
is 0 if a run works, and 1 if not.`

// doctorID is the service id of doctor's sandboxes. It is no service's, and always the same:
// each id leaves a folder of control groups on the host.
const doctorID = "notebox-doctor"

// longestDoctor is longer than any doctor takes: what is older was left by one that was killed.
const longestDoctor = 15 * time.Minute

func doctorCommand() *ffcli.Command {
	var s settings
	flags := flag.NewFlagSet("notebox doctor", flag.ContinueOnError)
	s.register(flags)
	asJSON := flags.Bool("json", false, "Print a JSON object.")
	return &ffcli.Command{
		Name:       "doctor",
		ShortUsage: "notebox doctor [--json] [flags of serve]",
		ShortHelp:  "say whether code can run here, and what to mend",
		LongHelp:   doctorHelp,
		UsageFunc:  withoutFlags,
		FlagSet:    flags,
		Exec: func(ctx context.Context, args []string) error {
			if err := flagsAlone(flags, args); err != nil {
				return err
			}
			_, bad := readEach(flags, &s)
			var doubts warnings
			warnOfVariables(slog.New(&doubts), flags, os.Environ(), dotenv)
			return s.diagnose(ctx, os.Stdout, *asJSON, bad, doubts.lines)
		},
	}
}

// diagnose prints what it finds, and returns an error if no run works. bad is why the settings
// cannot all be in force, doubts are what serve would log of them.
func (s *settings) diagnose(ctx context.Context, out io.Writer, asJSON bool, bad []error, doubts []string) (err error) {
	checks, closeAll := s.checks(bad, doubts)
	defer func() { err = errors.Join(err, closeAll()) }()
	tell := func(line doctor.Line) { writeLine(out, line) }
	if asJSON {
		tell = nil
	}
	report := doctor.Run(ctx, checks, tell)
	if ctx.Err() != nil { // it was told to end, and has not seen all
		return context.Cause(ctx)
	}
	if asJSON {
		err = writeJSON(out, report)
	} else {
		err = writeSummary(out, report)
	}
	if err == nil && !report.Works {
		err = exitError{1, errors.New("no run works here")}
	}
	return err
}

// checks are all, in an order in which the first that is wrong is the one to mend first.
func (s *settings) checks(bad []error, doubts []string) (all []doctor.Check, closeAll func() error) {
	for _, err := range []error{s.check(), posture.Check(s.limits)} {
		if err != nil {
			bad = append(bad, err)
		}
	}
	languages, first, err := s.languages()
	if err != nil { // of the operator's own; the program's are there
		bad = append(bad, fmt.Errorf("--environments-dir: %w", err))
		s.environmentsDir = ""
		if languages, first, err = s.languages(); err != nil {
			panic(err) // they are part of the program
		}
	}
	sandboxes := doctor.Sandboxes{
		Required: s.isolation == isolationCell, Language: languages[0], Kernel: executor.KernelOf(&first), Start: s.startTimeout,
	}
	daemon, closeAll := s.engines(&sandboxes, first.Kernel.WarmUp)
	store, storeClock := doctor.Storage(storage.Options{URL: s.storageURL, ServeFiles: s.serveFiles, TTL: s.urlTTL})
	clocks := []doctor.OtherClock{doctor.DaemonClock(daemon)}
	if storeClock != nil {
		clocks = append(clocks, *storeClock)
	}
	if s.publicURL != "" {
		clocks = append(clocks, doctor.WebClock("that of --public-url", s.publicURL))
	}
	made, _ := time.Parse(time.RFC3339, readBuild().Time) // zero if nobody knows

	all = append(all, doctor.Settings(bad, doubts))
	all = append(all, doctor.Engine(daemon, languages[0].Limits)...)
	all = append(all, doctor.Images(daemon, languages)...)
	all = append(all,
		store,
		doctor.Clock(made, clocks...),
		doctor.State(s.stateDir),
		doctor.Disk(daemon,
			doctor.Place{Of: "files", Folder: doctor.FolderOf(s.storageURL)},
			doctor.Place{Of: "state and uploads", Folder: s.stateDir},
		),
		doctor.Port(s.listen, server.CheckListen(s.listen, s.apiKeysFile != "", s.noAuth)),
		doctor.Keys(s.apiKeysFile, s.noAuth, s.firstKey),
		doctor.Kernel(hostWarnings("/proc")),
	)
	return append(all, sandboxes.Checks()...), closeAll
}

// engines are those that serve would have, which warm up these modules.
func (s *settings) engines(to *doctor.Sandboxes, modules []string) (daemon doctor.Daemon, closeAll func() error) {
	quiet := slog.New(slog.DiscardHandler)
	engine, err := docker.New(docker.Options{ServiceID: doctorID, Fleeting: true, Runtime: s.runtime, Users: docker.Users(s.users), Log: quiet})
	if err != nil {
		return doctor.NoDaemon{Why: err}, func() error { return nil }
	}
	to.Containers = engine
	closeAll = func() error {
		_ = inCloseTime(func(ctx context.Context) error { // without a daemon there is nothing to remove
			_, err := engine.ReapOlder(ctx, longestDoctor)
			return err
		})
		return inCloseTime(engine.Close)
	}
	if s.isolation != isolationContainer {
		inCells := cells.New(engine, cells.Options{Modules: func(string) []string { return modules }, Log: quiet})
		to.Cells = inCells
		host := closeAll
		closeAll = func() error { return errors.Join(inCells.Close(), host()) }
	}
	return engine, closeAll
}

// languages are those of serve, the default one first.
func (s *settings) languages() (all []doctor.Language, first environments.Environment, err error) {
	found, err := environments.Load(s.environmentsDir)
	if err != nil {
		return nil, first, err
	}
	s.useImage(found)
	for _, e := range found {
		all = append(all, doctor.Language{
			Environment: executor.EnvironmentOf(e), Limits: executor.LimitsOf(e, s.limits), Shown: e.DisplayName,
			Given: s.image != "" && e.Image == s.image,
		})
	}
	return all, found[0], nil
}

// writeLine prints one finding, and below it what to do.
func writeLine(w io.Writer, line doctor.Line) {
	fmt.Fprintf(w, "%-8s %-16s %s\n", line.Level, line.Check, line.Message)
	if line.Mend != "" {
		fmt.Fprintf(w, "%-25s -> %s\n", "", line.Mend)
	}
}

func writeSummary(w io.Writer, r doctor.Report) error {
	verdict := "A run works here"
	if !r.Works {
		verdict = "No run works here"
	}
	_, err := fmt.Fprintf(w, "\n%s: %d ok, %d to consider, %d wrong, %d skipped.\n", verdict,
		r.Count(doctor.OK), r.Count(doctor.Warning), r.Count(doctor.Wrong), r.Count(doctor.Skipped))
	return err
}

// warnings is a slog.Handler that keeps lines for people.
type warnings struct{ lines []string }

func (*warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler     { return w }
func (w *warnings) WithGroup(string) slog.Handler          { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(", %s %s", a.Key, a.Value)
		return true
	})
	w.lines = append(w.lines, line)
	return nil
}

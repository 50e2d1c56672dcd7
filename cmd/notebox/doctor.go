package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/doctor"
	"notebox/environments"
	"notebox/executor"
	"notebox/runner/cells"
	"notebox/runner/docker"
	"notebox/server"
	"notebox/storage"
)

const doctorHelp = `Looks at all that notebox needs here: the Docker daemon, its clock, control groups and
runtime, images, storage, folders, the port, API keys; then starts a real sandbox, looks
at its walls, and runs print(42) in it. Each line is ok, a warning, wrong or skipped,
and says how to mend it.

It takes the flags, variables and files of notebox serve, and disturbs no service that
runs. The exit status is 0 if a run works, and 1 if not.`

// doctorID is the service id of doctor's sandboxes. It is no service's, and always the same:
// each id leaves a folder of control groups on the host.
const doctorID = "notebox-doctor"

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
		Options:    variableOptions(),
		Exec: func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			if err := readConfig(flags, s.config); err != nil {
				return err
			}
			var doubts warnings
			warnOfVariables(slog.New(&doubts), flags, os.Environ(), ".env")
			return s.diagnose(ctx, os.Stdout, *asJSON, doubts.lines)
		},
	}
}

// diagnose prints what it finds, and returns an error if no run works.
func (s *settings) diagnose(ctx context.Context, out io.Writer, asJSON bool, doubts []string) (err error) {
	checks, closeAll, err := s.checks(doubts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	tell := func(line doctor.Line) { writeLine(out, line) }
	if asJSON {
		tell = nil
	}
	report := doctor.Run(ctx, checks, tell)
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
func (s *settings) checks(doubts []string) (all []doctor.Check, closeAll func() error, err error) {
	bad := errors.Join(s.check(), docker.Check(s.limits))
	languages, first, err := s.languages()
	if err != nil {
		return nil, nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	engine, err := docker.New(docker.Options{ServiceID: doctorID, Runtime: s.runtime, Users: docker.Users(s.users), Log: quiet})
	if err != nil {
		return nil, nil, err
	}
	sandboxes := doctor.Sandboxes{
		Containers: engine, Required: s.isolation == isolationCell,
		Language: languages[0], Kernel: executor.KernelOf(&first), Start: s.startTimeout,
	}
	closeAll = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		return engine.Close(ctx)
	}
	if s.isolation != isolationContainer {
		modules := func(string) []string { return first.Kernel.WarmUp }
		inCells := cells.New(engine, cells.Options{Modules: modules, Log: quiet})
		sandboxes.Cells = inCells
		host := closeAll
		closeAll = func() error { return errors.Join(inCells.Close(), host()) }
	}
	all = append(all, doctor.Settings(bad, doubts))
	all = append(all, doctor.Engine(engine, languages[0].Limits)...)
	all = append(all, doctor.Images(engine, languages)...)
	all = append(all,
		doctor.Storage(storage.Options{URL: s.storageURL, ServeFiles: s.serveFiles, TTL: s.urlTTL}),
		doctor.State(s.stateDir),
		doctor.Disk(engine,
			doctor.Place{Of: "storage", Folder: doctor.FolderOf(s.storageURL)},
			doctor.Place{Of: "state", Folder: s.stateDir},
		),
		doctor.Port(s.listen, server.CheckListen(s.listen, s.apiKeysFile != "", s.noAuth)),
		doctor.Keys(s.apiKeysFile, s.noAuth),
		doctor.Kernel(hostWarnings("/proc")),
	)
	return append(all, sandboxes.Checks()...), closeAll, nil
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

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"notebox/environments"
	"notebox/observe/metrics"
	"notebox/observe/tracing"
	"notebox/runner/admission"
	"notebox/server"
)

// minProbeEvery keeps a slip of the unit from burning a core: a probe costs about
// half a second of CPU time, most of it for the sandbox that follows.
const minProbeEvery = time.Second

// observeSettings are the flags about watching the service.
type observeSettings struct {
	logFormat  string
	logLevel   slog.Level
	probeEvery time.Duration
}

func (s *observeSettings) register(f *flag.FlagSet) {
	f.StringVar(&s.logFormat, "log-format", "text", "Write the log to standard error in this `format`: text, or json with one object a line.")
	f.TextVar(&s.logLevel, "log-level", slog.LevelInfo, "Log what has this `level` or a higher one: debug, info, warn or error.")
	f.DurationVar(&s.probeEvery, "probe-every", server.DefaultProbeEvery, "Let /readyz run 1+1 after this time without a good run; with 0 it only asks the Docker daemon.")
}

func (s *observeSettings) check() error {
	if s.logFormat != "text" && s.logFormat != "json" {
		return fmt.Errorf("--log-format is %q: it must be text or json", s.logFormat)
	}
	if s.probeEvery != 0 && s.probeEvery < minProbeEvery {
		return fmt.Errorf("--probe-every must be 0, or at least %s", minProbeEvery)
	}
	return nil
}

// logger writes to w as the settings say, with the ids of traces.
func (s *observeSettings) logger(w io.Writer) *slog.Logger {
	if s.logFormat == "json" {
		o := &slog.HandlerOptions{Level: s.logLevel, ReplaceAttr: inSeconds}
		return slog.New(tracing.LogHandler(slog.NewJSONHandler(w, o)))
	}
	return slog.New(tracing.LogHandler(slog.NewTextHandler(w, &slog.HandlerOptions{Level: s.logLevel})))
}

// inSeconds makes durations numbers that can be compared with the metrics; slog's
// own are nanoseconds.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// logExports has what goes wrong with sending traces logged like all else. The
// exporter reports it to one place in a process.
func logExports(log *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are not sent", "error", err) }))
}

// openTracing returns nil if no collector is named.
func (p *program) openTracing(ctx context.Context) (trace.Tracer, error) {
	tracer, end, err := tracing.Open(ctx)
	if err != nil || tracer == nil {
		return nil, err
	}
	p.onCloseInTime(func(ctx context.Context) error {
		if err := end(ctx); err != nil { // a collector that is gone is no failure of ours
			p.log.Warn("the last traces are not sent", "error", err)
		}
		return nil
	})
	return tracer, nil
}

// observe puts metrics, and traces if there is a tracer, around the runner and
// the store of a server.
func (p *program) observe(cfg *server.Config, admission *admission.Admission, all []environments.Environment, tracer trace.Tracer) {
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	sources := metrics.Sources{
		Pool:         p.pool.Stats,
		Runs:         func() (int, int) { return admission.Running(), admission.Waiting() },
		Environments: names,
		Isolation:    p.isolation,
		Limits:       p.keys.Sharing,
	}
	if p.cells != nil {
		sources.Cells = p.cells.Stats
	}
	if p.packages != nil {
		sources.Packages = p.packages.Stats
	}
	if p.sessions != nil {
		sources.Sessions = p.sessions.Stats
	}
	p.metrics = metrics.New(sources)
	p.metrics.Reaped(p.reaped)
	cfg.Runner, cfg.Store = p.metrics.Runner(cfg.Runner), p.metrics.Store(cfg.Store)
	if cfg.Sessions != nil {
		cfg.Sessions = p.metrics.Sessions(cfg.Sessions)
	}
	cfg.Metrics, cfg.Observer = p.metrics.Handler(), p.metrics
	if tracer != nil {
		cfg.Tracer = tracer
		cfg.Runner, cfg.Store = tracing.Runner(cfg.Runner, tracer), tracing.Store(cfg.Store, tracer)
		if cfg.Sessions != nil {
			cfg.Sessions = tracing.Sessions(cfg.Sessions, tracer)
		}
	}
	if every := p.settings.observe.probeEvery; every > 0 {
		cfg.Prober, cfg.ProbeEvery = p.pool, every
	}
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/docker/go-units"

	"notebox/executor"
	"notebox/runner"
	"notebox/server"
	"notebox/storage"
)

// settings are the flags of notebox serve. Each is also an environment
// variable: --max-body is NOTEBOX_MAX_BODY.
type settings struct {
	listen, publicURL string
	storageURL        string
	urlTTL            time.Duration
	files             storageSettings
	linkKeys          string
	resultTTL         time.Duration
	retention         time.Duration
	stateDir          string
	serviceID         string
	apiKeysFile       string
	noAuth            bool
	allowOrigins      list
	fetchAllow        list
	runtime           string
	users             userRange
	image             string
	environmentsDir   string
	limits            runner.Limits
	maxTimeout        time.Duration
	maxBody           int64
	maxUpload         int64
	maxConnections    int
	poolSize          poolSize
	poolMax           int
	poolByUse         int
	maxSandboxes      int
	startTimeout      time.Duration
	admission         runner.AdmissionLimits
	drain             time.Duration
	now               func() time.Time // of the keys' limits; nil: time.Now
	difyRunTime       time.Duration    // of a Dify agent's runs; 0: dify.RunTime
	observe           observeSettings
	network           networkSettings
	sessions          sessionSettings
	agent             agentSettings
	dependencies      dependencySettings

	getenv func(string) string // of the store's credentials and the model's; nil is os.Getenv
}

// runsPerCore is how many runs share a core by default: they wait for input,
// files and libraries much of the time.
const runsPerCore = 2

func (s *settings) register(f *flag.FlagSet) {
	s.limits = runner.DefaultLimits()
	s.maxBody, s.maxUpload = server.DefaultMaxBody, executor.DefaultMaxUpload
	running := runsPerCore * runtime.NumCPU()
	data := filepath.Join(xdg.DataHome, "notebox")

	f.StringVar(&s.listen, "listen", "127.0.0.1:8080", "address to serve")
	f.StringVar(&s.publicURL, "public-url", "", "what links start with (default: as the request came)")
	f.StringVar(&s.storageURL, "storage", "file://"+filepath.ToSlash(filepath.Join(data, "files")), "where files and images are kept: file:///folder, azblob://container, s3://bucket?region=…, gs://bucket?project=… or mem://")
	s.files.register(f)
	f.DurationVar(&s.urlTTL, "url-ttl", storage.DefaultTTL, "how long a link to a file works")
	f.DurationVar(&s.resultTTL, "result-ttl", server.DefaultResultTTL, "how long the reply of an asynchronous or idempotent run is kept")
	f.DurationVar(&s.retention, "retention", server.DefaultRetention, "how long runs' files and kept inputs stay in the store, at least --url-ttl; 0: the service removes none of them")
	f.StringVar(&s.linkKeys, "link-keys", "", "file with the secret that signs links, made where it is missing; services on one store share it (default: in the state folder)")
	f.StringVar(&s.stateDir, "state-dir", filepath.Join(xdg.StateHome, "notebox"), "folder of this service alone: its id, the secret of its links, uploads under way")
	f.StringVar(&s.serviceID, "service-id", "", "whose sandboxes these are on the Docker daemon (default: made once, kept in the state folder)")
	f.StringVar(&s.apiKeysFile, "api-keys-file", "", "file with one API key a line, or NAME sha256:HEX and limits, see notebox key; followed while it changes")
	f.BoolVar(&s.noAuth, "no-auth", false, "allow an address other than loopback without API keys")
	f.Var(&s.allowOrigins, "allow-origin", "origins of web pages that may call, with commas between")
	f.Var(&s.fetchAllow, "fetch-allow", "private hosts that files[].url may name, with commas between")
	s.network.register(f)
	s.dependencies.register(f)
	f.StringVar(&s.runtime, "sandbox-runtime", "", "OCI runtime of the sandboxes, as the Docker daemon names it: runsc, kata, crun (default: the daemon's own)")
	f.Var(&s.users, "sandbox-users", "user ids of the sandboxes, FIRST-LAST: two for each, which no other sandbox of the Docker daemon has (default: 65536-99999; 10000-59999 if the daemon remaps users)")
	f.StringVar(&s.image, "image", "", "sandbox image (default: the one that belongs to this program, see notebox image)")
	f.StringVar(&s.environmentsDir, "environments-dir", "", "folder with environments of your own, one folder each; see docs/environments.md")

	f.Var((*size)(&s.limits.Memory), "memory", "memory of one sandbox, /mnt/data and /tmp included")
	f.Float64Var(&s.limits.CPUs, "cpus", s.limits.CPUs, "cores of one sandbox")
	f.Int64Var(&s.limits.Pids, "pids", s.limits.Pids, "processes and threads of one sandbox")
	f.Var((*size)(&s.limits.DataSize), "data-size", "size of /mnt/data")
	f.Var((*size)(&s.limits.TmpSize), "tmp-size", "size of /tmp")
	f.DurationVar(&s.limits.Timeout, "timeout", s.limits.Timeout, "time limit of a run that asks for none")
	f.DurationVar(&s.maxTimeout, "max-timeout", executor.DefaultMaxTimeout, "highest time limit that a run may ask for")
	f.Var((*size)(&s.limits.Output), "max-output", "output of one run")
	f.Var((*size)(&s.maxBody), "max-body", "size of a request in JSON or text")
	f.Var((*size)(&s.maxUpload), "max-upload", "size of a multipart request")
	f.IntVar(&s.maxConnections, "max-connections", 0, "connections of clients at one time (default: 4096, or half of the files that the process may have open less a reserve)")
	f.IntVar(&s.limits.Files, "max-files", s.limits.Files, "files returned from one run")
	f.Var((*size)(&s.limits.FileSize), "max-files-size", "size of all files returned from one run")

	f.Var(&s.poolSize, "pool-size", "sandboxes that wait for runs, warm: a number, or one for each language, python=4,r=1; 0 starts one for each run (default: one for each core that memory has room for)")
	f.IntVar(&s.poolMax, "pool-max", 0, "how many may wait when runs come faster than that (default: twice the pool's size)")
	f.IntVar(&s.poolByUse, "pool-by-use", -1, "how many may wait in all of languages, and of sets of dependencies, that --pool-size does not name and that were asked for in the last ten minutes; -1 is as many as of the default language")
	f.IntVar(&s.maxSandboxes, "max-sandboxes", 0, "sandboxes that exist at one time: starting, warm, running, being removed (default: --max-running, the pool and --max-sessions)")
	f.DurationVar(&s.startTimeout, "start-timeout", runner.DefaultStartTimeout, "how long a sandbox may take to be ready")
	f.IntVar(&s.admission.MaxRunning, "max-running", running, "runs at one time")
	f.IntVar(&s.admission.MaxWaiting, "max-waiting", 10*running, "runs that wait for a place; with several API keys, one waits in at most as many as are left free")
	f.DurationVar(&s.admission.MaxWait, "max-wait", time.Minute, "how long a run waits for a place")
	s.sessions.register(f)
	s.observe.register(f)
	s.agent.register(f)
	f.DurationVar(&s.drain, "drain", 20*time.Second, "how long runs may go on after a signal to end")
}

// check finds what cannot be meant, and names the flag.
func (s *settings) check() error {
	for _, p := range []struct {
		flag string
		ok   bool
	}{
		{"--cpus", s.limits.CPUs > 0 && !math.IsInf(s.limits.CPUs, 1)},
		{"--pids", s.limits.Pids > 0},
		{"--timeout", s.limits.Timeout > 0},
		{"--max-timeout (at least --timeout)", s.maxTimeout >= s.limits.Timeout},
		{"--max-connections", s.maxConnections >= 0},
		{"--max-files", s.limits.Files >= 0},
		{"--pool-max", s.poolMax >= 0},
		{"--pool-by-use", s.poolByUse >= -1},
		{"--max-sandboxes", s.maxSandboxes >= 0},
		{"--max-running", s.admission.MaxRunning > 0},
		{"--max-waiting", s.admission.MaxWaiting >= 0},
		{"--max-wait", s.admission.MaxWait > 0},
		{"--url-ttl", s.urlTTL > 0},
		{"--result-ttl", s.resultTTL > 0},
		{"--retention (0, or at least --url-ttl)", s.retention == 0 || s.retention >= s.urlTTL},
		{"--drain", s.drain >= 0},
		{"--start-timeout", s.startTimeout > 0},
	} {
		if !p.ok {
			return fmt.Errorf("%s is out of range", p.flag)
		}
	}
	return errors.Join(s.observe.check(), s.files.check(), s.sessions.check(), s.agent.check(), s.dependencies.check())
}

// size is a flag in bytes that is written with a unit: 512MiB, 2g, 1000.
type size int64

func (s *size) String() string { return units.BytesSize(float64(*s)) }

func (s *size) Set(text string) error {
	n, err := units.RAMInBytes(strings.ReplaceAll(text, " ", ""))
	if err == nil && n <= 0 {
		err = fmt.Errorf("not above zero")
	}
	*s = size(n)
	return err
}

// list is a flag of several values, with commas between or given repeatedly.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*l = append(*l, part)
		}
	}
	return nil
}

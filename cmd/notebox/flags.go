package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/docker/go-units"

	"notebox/executor"
	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/server"
	"notebox/storage"
)

// settings are the flags of notebox serve. Each is also an environment
// variable: --max-body is NOTEBOX_MAX_BODY.
type settings struct {
	config            string
	listen, publicURL string
	storageURL        string
	urlTTL            time.Duration
	serveFiles        string
	linkKeys          string
	resultTTL         time.Duration
	retention         time.Duration
	stateDir          string
	serviceID         string
	fleeting          bool   // sandboxes end with this process
	layers            string // whose packages are used; "": the service's own
	apiKeysFile       string
	keyLimits         string // where services count together; "": each alone
	firstKey          bool
	noAuth            bool
	allowOrigins      list
	fetchAllow        list
	engine            string
	workers           string
	kubernetes        kubernetesSettings
	isolation         string
	languagesAhead    bool
	workerPerKey      bool
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
	admission         admission.Limits
	drain             time.Duration
	observe           observeSettings
	network           networkSettings
	sessions          sessionSettings
	peers             peerSettings
	agent             agentSettings
	dependencies      dependencySettings
}

// runsPerCore is how many runs share a core by default: they wait for input,
// files and libraries much of the time.
const runsPerCore = 2

// waitingPerCore is how many runs wait by default, and cellsFaster how many times that in cells,
// which are at least as many times faster.
const waitingPerCore, cellsFaster = 20, 5

// notSet is a number that nobody has set.
const notSet = math.MinInt

// register defines all flags in f. A default that depends on the machine is set after
// its flag: the help describes that default instead of printing it.
func (s *settings) register(f *flag.FlagSet) groups {
	var g groups
	g.add("What most people set", s.registerFirst)
	g.add("Callers and requests", s.registerRequests)
	g.add("Limits of one run", s.registerRunLimits)
	g.add("Stored files and replies", s.registerFiles)
	g.add("Network of runs", s.network.register)
	g.add("Packages that requests ask for", s.dependencies.register)
	g.add("Sessions", s.sessions.register)
	g.add("Several services behind one address", s.peers.register)
	g.add("Questions to a model", s.agent.register)
	g.add("Log and health", s.observe.register)
	g.add("Sandboxes on the Docker daemon", s.registerSandboxes)
	g.add("Sandboxes without a Docker daemon", s.registerEngine)
	g.add("Pool and queue", s.registerQueue)
	return g.into(f)
}

func (s *settings) registerFirst(f *flag.FlagSet) {
	f.StringVar(&s.config, "config", "", "Read flags from this `file`, a line each, as max-body = 10MiB; flags and variables that are set come before it.")
	f.StringVar(&s.listen, "listen", "127.0.0.1:8080", "Listen on this `address`.")
	f.StringVar(&s.publicURL, "public-url", "", "Begin links with this `URL`. (default: the address to which the request was sent)")
	f.StringVar(&s.apiKeysFile, "api-keys-file", "", "Let in callers whose API keys are in this `file`; notebox key writes its lines, and the service follows changes.")
	f.StringVar(&s.storageURL, "storage", "", "Keep files and images at this `URL`: file:///folder, azblob://container, s3://bucket?region=…, gs://bucket?project=… or mem://. (default: the folder $XDG_DATA_HOME/notebox/files)")
	s.storageURL = "file://" + filepath.ToSlash(filepath.Join(xdg.DataHome, "notebox", "files"))
	f.StringVar(&s.stateDir, "state-dir", "", "Keep the service's id, the secret of its links and uploads under way in this `folder`, which no other service may use. (default: $XDG_STATE_HOME/notebox)")
	s.stateDir = filepath.Join(xdg.StateHome, "notebox")
	f.StringVar(&s.environmentsDir, "environments-dir", "", "Offer the languages in this `folder` too, one folder each.")
}

func (s *settings) registerRequests(f *flag.FlagSet) {
	s.maxBody, s.maxUpload = server.DefaultMaxBody, executor.DefaultMaxUpload
	f.BoolVar(&s.firstKey, "first-key", false, "Start also if the file of --api-keys-file is missing or empty, and let nobody in until notebox key has put the first key there.")
	f.StringVar(&s.keyLimits, "limits", "", "Hold the limits of API keys over all services that have this `URL` of a Redis or Valkey: redis://user:password@host:6379/0?prefix=notebox, or rediss:// with TLS; prefix is the deployment's own. (default: each service holds them alone)")
	f.BoolVar(&s.noAuth, "no-auth", false, "Serve everybody without API keys, even on an address other than loopback.")
	f.Var(&s.allowOrigins, "allow-origin", "Let web pages of these `origins` call, with commas between them.")
	f.Var(&s.fetchAllow, "fetch-allow", "Let files[].url name these private `hosts`, with commas between them.")
	f.Var((*size)(&s.maxBody), "max-body", "Refuse a request in JSON or text above this `size`.")
	f.Var((*size)(&s.maxUpload), "max-upload", "Refuse a multipart request above this `size`.")
	f.IntVar(&s.maxConnections, "max-connections", 0, "Keep at most this `number` of clients' connections open. (default: 4096, or half of the files that the process may open, less a reserve)")
}

func (s *settings) registerRunLimits(f *flag.FlagSet) {
	s.limits = runner.DefaultLimits()
	f.DurationVar(&s.limits.Timeout, "timeout", s.limits.Timeout, "End a run after this time if the run asks for no other limit.")
	f.DurationVar(&s.maxTimeout, "max-timeout", executor.DefaultMaxTimeout, "Let no run ask for a longer time limit.")
	f.Var((*size)(&s.limits.Memory), "memory", "Give a sandbox this `size` of memory, /mnt/data and /tmp included.")
	f.Float64Var(&s.limits.CPUs, "cpus", s.limits.CPUs, "Give a sandbox this `number` of cores.")
	f.Int64Var(&s.limits.Pids, "pids", s.limits.Pids, "Let a sandbox have this `number` of processes and threads.")
	f.Var((*size)(&s.limits.DataSize), "data-size", "Give /mnt/data this `size`.")
	f.Var((*size)(&s.limits.TmpSize), "tmp-size", "Give /tmp this `size`.")
	f.Var((*size)(&s.limits.Output), "max-output", "Cut the output of a run at this `size`.")
	f.IntVar(&s.limits.Files, "max-files", s.limits.Files, "Return at most this `number` of files from a run.")
	f.Var((*size)(&s.limits.FileSize), "max-files-size", "Return files of at most this `size`, all together, from a run.")
}

func (s *settings) registerFiles(f *flag.FlagSet) {
	f.DurationVar(&s.urlTTL, "url-ttl", storage.DefaultTTL, "Let a link to a file work for this time.")
	f.DurationVar(&s.retention, "retention", server.DefaultRetention, "Remove runs' files and kept inputs after this time, which is at least --url-ttl; with 0 the service removes none.")
	f.DurationVar(&s.resultTTL, "result-ttl", executor.DefaultResultTTL, "Keep the reply of an asynchronous or idempotent run for this time.")
	f.StringVar(&s.serveFiles, "serve-files", storage.ServeAuto, "Say `who` serves files: auto is the cloud if it can sign links, and otherwise this service; proxy is always this service.")
	f.StringVar(&s.linkKeys, "link-keys", "", "Sign links with the secrets in this `file`, which services on one store share and the first one makes. (default: link-keys in the state folder)")
}

func (s *settings) registerSandboxes(f *flag.FlagSet) {
	f.StringVar(&s.image, "image", "", "Run Python in this `image`. (default: the image that notebox image prints)")
	f.StringVar(&s.isolation, "isolation", isolationAuto, "Run code in sandboxes of this `kind`: cell, which is one of many in a container, or container; auto is cell if a probe finds all walls of cells on this host.")
	f.BoolVar(&s.workerPerKey, "worker-per-key", false, "Let no two API keys have cells in one container.")
	f.BoolVar(&s.languagesAhead, "languages-ahead", true, "Start a container with cells for each language that has an image soon after the service, some 45 MB each: the first run of a language then waits only for its kernel.")
	f.StringVar(&s.runtime, "sandbox-runtime", "", "Start sandboxes with this OCI `runtime` of the Docker daemon: runsc, kata, crun. (default: the daemon's own)")
	f.Var(&s.users, "sandbox-users", "Give sandboxes user ids from this range, `FIRST-LAST`: each sandbox that is a container takes two, each container with cells 512. (default: 65536-99999, or 10000-59999 if the daemon remaps users)")
	f.StringVar(&s.serviceID, "service-id", "", "Mark this service's sandboxes on the Docker daemon with this `id`. (default: a random id in the state folder)")
	f.DurationVar(&s.startTimeout, "start-timeout", pool.DefaultStartTimeout, "Give up on a sandbox that is not ready after this time.")
}

func (s *settings) registerQueue(f *flag.FlagSet) {
	f.Var(&s.poolSize, "pool-size", "Keep this `number` of warm sandboxes waiting for runs, or one number for each language: python=4,r=1; with 0 each run starts its own. (default: one for each core, as memory allows)")
	f.IntVar(&s.poolMax, "pool-max", 0, "Keep up to this `number` waiting while runs come faster than sandboxes start. (default: twice --pool-size)")
	f.IntVar(&s.poolByUse, "pool-by-use", -1, "Keep up to this `number` waiting for languages and sets of packages that --pool-size does not name and somebody used in the last ten minutes; -1 is the highest number in --pool-size.")
	f.IntVar(&s.maxSandboxes, "max-sandboxes", 0, "Let at most this `number` of sandboxes exist, in whatever state. (default: --max-running, the pool and --max-sessions together)")
	f.IntVar(&s.admission.MaxRunning, "max-running", 0, "Run at most this `number` of runs at one time. (default: two for each core)")
	s.admission.MaxRunning = runsPerCore * runtime.NumCPU()
	f.IntVar(&s.admission.MaxWaiting, "max-waiting", 0, "Let at most this `number` of runs wait for a place; with several API keys, one key may take as many places as it leaves free. (default: twenty for each core, a hundred if runs have cells)")
	s.admission.MaxWaiting = notSet
	f.DurationVar(&s.admission.MaxWait, "max-wait", time.Minute, "Refuse a run that has waited for a place for this time.")
	f.DurationVar(&s.drain, "drain", 20*time.Second, "Let runs go on for this time after a signal to end.")
}

// serviceID is what ids of services are: each is a folder of control groups, and part of a bind.
var serviceID = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

// maxWaiting is how many runs may wait, in containers or in cells.
func (s *settings) maxWaiting(inCells bool) int {
	switch most := s.admission.MaxWaiting; {
	case most != notSet:
		return most
	case inCells:
		return cellsFaster * waitingPerCore * runtime.NumCPU()
	}
	return waitingPerCore * runtime.NumCPU()
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
		{"--max-waiting", s.admission.MaxWaiting >= 0 || s.admission.MaxWaiting == notSet},
		{"--max-wait", s.admission.MaxWait > 0},
		{"--url-ttl", s.urlTTL > 0},
		{"--result-ttl", s.resultTTL > 0},
		{"--retention (0, or at least --url-ttl)", s.retention == 0 || s.retention >= s.urlTTL},
		{"--engine (docker, sidecar or kubernetes)", slices.Contains([]string{"", engineDocker, engineSidecar, engineKubernetes}, s.engine)},
		{"--isolation (auto, cell or container)", isIsolation(s.isolation)},
		{"--service-id (letters, digits, _, - and ., which is not the first)", s.serviceID == "" || serviceID.MatchString(s.serviceID)},
		{"--drain", s.drain >= 0},
		{"--first-key (with --api-keys-file)", !s.firstKey || s.apiKeysFile != ""},
		{"--start-timeout", s.startTimeout > 0},
	} {
		if !p.ok {
			return fmt.Errorf("%s is out of range", p.flag)
		}
	}
	if s.serveFiles != storage.ServeAuto && s.serveFiles != storage.ServeProxy {
		return fmt.Errorf("--serve-files is %s or %s", storage.ServeAuto, storage.ServeProxy)
	}
	return errors.Join(s.checkEngine(), s.observe.check(), s.sessions.check(), s.peers.check(), s.agent.check(), s.dependencies.check())
}

// size is a flag in bytes that is written with a unit: 512MiB, 2g, 1000.
type size int64

func (s *size) String() string { return units.BytesSize(float64(*s)) }

func (s *size) Set(text string) error {
	n, err := units.RAMInBytes(strings.ReplaceAll(text, " ", ""))
	if err == nil && n <= 0 {
		err = fmt.Errorf("not above zero")
	}
	if err == nil {
		*s = size(n)
	}
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

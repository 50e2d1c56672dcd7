package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"notebox/dependencies"
	"notebox/egress"
	"notebox/environments"
	"notebox/notebook"
	"notebox/runner"
	"notebox/runner/admission"
	"notebox/server"
)

// dependencySettings are the flags about packages that requests ask for.
type dependencySettings struct {
	mode      string
	allow     list
	builds    bool
	maxSize   int64
	timeout   time.Duration
	maxLayers int
	maxTotal  int64
	installs  int
	pipConf   string
	npmrc     string
	sources   string
	ca        string
	hosts     list

	etc string // where settings for everybody are; "" is /etc. For tests.
}

func (s *dependencySettings) register(f *flag.FlagSet) {
	s.maxSize, s.maxTotal = dependencies.DefaultMaxSize, dependencies.DefaultMaxTotal
	f.StringVar(&s.mode, "dependencies", "on", "Let requests name packages to install (on or off), which come prebuilt from the registry alone.")
	f.Var(&s.allow, "dependencies-allow", "Let requests ask for packages with these `names` alone, with commas between them. (default: all)")
	f.BoolVar(&s.builds, "dependencies-builds", false, "Install packages that are not prebuilt too: their code runs while they are installed, and can read what is in the registry.")
	f.Var((*size)(&s.maxSize), "dependencies-max-size", "Refuse a set of packages above this `size`, counted with what they need.")
	f.DurationVar(&s.timeout, "dependencies-timeout", dependencies.DefaultTimeout, "Give up on installing a set after this time.")
	f.IntVar(&s.maxLayers, "dependencies-max-layers", dependencies.DefaultMaxLayers, "Keep this `number` of sets; the set that nobody has used for the longest time goes first.")
	f.Var((*size)(&s.maxTotal), "dependencies-max-total-size", "Keep sets of at most this `size`, all together.")
	f.IntVar(&s.installs, "dependencies-installs", dependencies.DefaultInstalls, "Install at most this `number` of sets at one time.")
	f.StringVar(&s.pipConf, "dependencies-pip-conf", "", "Read the registry's settings from this pip.conf `file`; off is none. (default: this host's)")
	f.StringVar(&s.npmrc, "dependencies-npmrc", "", "Read the registry's settings from this .npmrc `file`; off is none. (default: this host's)")
	f.StringVar(&s.sources, "dependencies-sources", "", "Let apt use this sources.list `file`. (default: that of the sandboxes' image)")
	f.StringVar(&s.ca, "dependencies-ca", "", "Trust a registry by the certificates in this PEM `file`, beside the image's own; off is none. (default: what this host trusts)")
	f.Var(&s.hosts, "dependencies-hosts", "Let packages come from these `hosts` too, HOST:PORT with commas between them, beside those in the settings of pip, npm and apt.")
}

func (s *dependencySettings) check() error {
	for _, p := range []struct {
		flag string
		ok   bool
	}{
		{"--dependencies (on or off)", s.mode == "on" || s.mode == "off"},
		{"--dependencies-timeout", s.timeout > 0},
		{"--dependencies-max-layers", s.maxLayers > 0},
		{"--dependencies-max-total-size (at least --dependencies-max-size)", s.maxTotal >= s.maxSize},
		{"--dependencies-installs", s.installs > 0},
	} {
		if !p.ok {
			return fmt.Errorf("%s is out of range", p.flag)
		}
	}
	if _, err := s.registry(nil, nil, nil, nil, nil); err != nil { // here, and not with the first request
		return fmt.Errorf("--dependencies-hosts: %w", err)
	}
	return nil
}

// off is the value of a flag that names a file for none, not even this host's.
const off = "off"

// openDependencies makes what installs packages, where requests may have them.
func (p *program) openDependencies(ctx context.Context, cfg *server.Config, places *admission.Admission, all []environments.Environment) error {
	s := &p.settings.dependencies
	var images []string
	possible := false
	for _, e := range all {
		images = append(images, e.Image)
		possible = possible || e.Dependencies != nil
	}
	if s.mode != "on" || !possible {
		return p.withoutDependencies(ctx)
	}
	policy := dependencies.Policy{Allow: s.allow, Builds: s.builds}
	if err := policy.Check(all); err != nil {
		return fmt.Errorf("--dependencies-allow: %w", err)
	}
	files, err := s.files()
	if err != nil {
		return err
	}
	settings, credentials, err := dependencies.Separate(files)
	if err != nil {
		return fmt.Errorf("the registry's settings: %w", err)
	}
	ca, err := s.trusted()
	if err != nil {
		return err
	}
	_, memory, err := p.docker.Capacity(ctx)
	if err != nil {
		return err
	}
	few := admission.New(nil, admission.Limits{
		MaxRunning: s.installs, MaxWaiting: p.settings.maxWaiting(false), MaxWait: s.timeout,
	})
	own := p.ownAddresses()
	p.packages, err = dependencies.New(ctx, dependencies.Options{
		Runner:   places,
		Installs: few,
		Images:   p.docker.Images(),
		Network: func(hosts []string) (dependencies.Network, error) {
			return s.registry(hosts, credentials, ca, own, p.log)
		},
		Notebook: func(code string) ([]byte, error) {
			return notebook.New([]string{code}, notebook.Kernel{Name: runner.PythonKernel, DisplayName: "Python 3", Language: "python"})
		},
		Settings:  settings,
		Policy:    policy,
		Limits:    s.limits(p.settings.limits, memory),
		Timeout:   s.timeout,
		MaxSize:   s.maxSize,
		MaxLayers: s.maxLayers,
		MaxTotal:  s.maxTotal,
		// Those that wait for a place of few, and those that have one.
		MaxWaiting: p.settings.maxWaiting(false) + s.installs,
		Forget:     p.pool.ForgetImage,
		Shared:     p.settings.layers != "",
		HostsFile:  p.state.path("registries.json"),
		TempDir:    p.state.path("layers"),
		Observe:    func(result string) { p.metrics.Installed(result) },
		Log:        p.log,
	}, images)
	if err != nil {
		return err
	}
	p.shareBetweenKeys(places, few, p.packages)
	cfg.Dependencies = p.packages
	p.onCloseInTime(p.packages.Wait)
	return nil
}

// withoutDependencies removes what an earlier process was killed over, and says what else
// it has left: layers are kept for when requests may have packages again.
func (p *program) withoutDependencies(ctx context.Context) error {
	if err := os.RemoveAll(p.state.path("layers")); err != nil {
		return fmt.Errorf("archives of packages: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reapTimeout)
	defer cancel()
	if p.docker == nil {
		return nil
	}
	images := p.docker.Images()
	kept, err := images.List(ctx)
	if err = errors.Join(err, images.Sweep(ctx)); err != nil {
		p.log.Warn("packages that were installed before may be left", "error", err)
	}
	layers, bytes := 0, int64(0)
	for _, image := range kept {
		if image.Layer != "" {
			layers++
			bytes += image.Bytes
		}
	}
	if layers > 0 {
		p.log.Info("packages that were installed before are kept, though no request may have any", "layers", layers, "bytes", bytes,
			"remove", "docker image ls --format '{{.Repository}}:{{.Tag}}' --filter 'reference="+images.Reference()+"' | xargs docker image rm")
	}
	return nil
}

const (
	// installRoom is how often a set is in an installer's /mnt/data, which is memory: as
	// archives of the registry's, unpacked, and as a layer.
	installRoom = 3
	// installMemory is for the installer's processes, beside its files.
	installMemory = 1 << 30
	// installShare of the host's memory, in parts of 4, is the most that all installers of
	// one time may have.
	installShare = 3
)

// limits are those of an installer's sandbox: a run's, and what an installer needs more, on a host with so much memory.
func (s *dependencySettings) limits(l runner.Limits, memory int64) runner.Limits {
	l.Memory = max(l.Memory, min(installRoom*s.maxSize+l.TmpSize+installMemory, memory/4*installShare/int64(s.installs)))
	l.DataSize = max(l.DataSize, l.Memory-l.TmpSize-installMemory/2)
	l.Inodes = 1 << 19 // a large set of npm's has 50,000 files, here twice
	return l
}

// registry is what an installer reaches.
type registry struct {
	runner.Network
	dialer *egress.Dialer
	hosts  []string
}

// registry is that of hosts that the operator's settings, or the client's own, name. They
// may be at any address but the service's own: a company's mirror is at a private one.
func (s *dependencySettings) registry(hosts []string, credentials []dependencies.Credential, ca []byte, own []string, log *slog.Logger) (dependencies.Network, error) {
	hosts = slices.Concat(hosts, s.hosts)
	allowed, err := egress.ParseHosts(hosts)
	if err != nil {
		return nil, err
	}
	var signed []egress.Credential
	for _, c := range credentials {
		signed = append(signed, egress.Credential(c))
	}
	proxy, err := egress.New(egress.Options{
		Hosts: allowed, Exceptions: hosts, Own: own, Credentials: signed, CA: ca, MaxBytes: registryShare * s.maxSize,
		Log: log,
	})
	if err != nil {
		return nil, err
	}
	guard, err := egress.NewGuard(hosts)
	return &registry{proxy, &egress.Dialer{Guard: guard}, hosts}, err
}

const (
	// registryShare is how much more than its layer an installation may move, indexes and
	// files that are not chosen included.
	registryShare = 4
	// reachTime bounds the look whether a registry is there.
	reachTime = 2 * time.Second
)

// Reach implements dependencies.Network: one of the hosts has to answer. One that does not,
// such as a mirror, is the client's affair.
func (r *registry) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	var some errgroup.Group
	var reached atomic.Bool
	for _, host := range r.hosts {
		some.Go(func() error {
			conn, err := r.dialer.DialContext(ctx, "tcp", host)
			if err == nil {
				reached.Store(true)
				cancel()
				err = conn.Close()
			}
			return err
		})
	}
	err := some.Wait()
	if reached.Load() {
		return nil
	}
	return err
}

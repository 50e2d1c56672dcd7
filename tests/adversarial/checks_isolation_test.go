package adversarial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"notebox/environments"
)

var isolationChecks = map[string]Check{
	"daemon_gone_at_the_reply": daemonGone,
	"broken_image":             brokenImage,
}

const exiting = 0x4 // PF_EXITING of include/linux/sched.h

// daemonGone looks for C6's daemon as soon as the reply is there: no thread of it
// may be able to run any more.
func daemonGone(ctx context.Context, t *Trial) []Failure {
	out := t.Send(ctx)
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		raw, _ := os.ReadFile(name)
		program, rest, ok := strings.Cut(string(raw), ") ")
		fields := strings.Fields(rest)
		if !ok || !strings.HasSuffix(program, "(n0tebox-daemon") || len(fields) < 7 {
			continue
		}
		flags, _ := strconv.Atoi(fields[6])
		if fields[0] != "Z" && flags&exiting == 0 {
			out = append(out, Failure{Text: "the daemon is alive: " + string(raw)})
		}
	}
	return out
}

// brokenImage starts a service with an image that is the real one, but for what its
// containers run, and sends it the requests.
func brokenImage(ctx context.Context, t *Trial) (out []Failure) {
	for _, entrypoint := range [][]string{{"/bin/false"}, {"/bin/sh", "-c", "echo no frame; exec sleep 600"}, {"/bin/sleep", "600"}} {
		for _, text := range t.withEntrypoint(ctx, entrypoint) {
			out = append(out, Failure{Text: fmt.Sprintf("%v: %s", entrypoint, text)})
		}
	}
	return out
}

func (t *Trial) withEntrypoint(ctx context.Context, entrypoint []string) (out []string) {
	fail := func(err error) []string { return append(out, err.Error()) }
	id := t.Service.ID + "-" + filepath.Base(entrypoint[0])
	ref, err := t.Daemon.derive(ctx, id, entrypoint)
	if err != nil {
		return fail(err)
	}
	defer t.Daemon.api.ImageRemove(context.WithoutCancel(ctx), ref, image.RemoveOptions{})
	flags := map[string]string{"isolation": "container", "image": ref, // a worker starts another program
		"pool-size": "0", "pool-max": "0", "start-timeout": "10s"}
	s, err := StartService(planted.program, filepath.Join(planted.folder, id), id, flags, planted.env)
	if err != nil {
		return fail(err)
	}
	client := Client{URL: s.URL, Seen: t.Client.Seen}
	for _, r := range t.Attempt.Requests {
		begun := time.Now()
		answers, err := client.Send(ctx, &r, nil)
		if err != nil {
			return fail(err)
		}
		for _, f := range r.Expect.Failures(answers[0], 1) {
			out = append(out, fmt.Sprintf("after %v: %s", time.Since(begun), f.Text))
		}
	}
	if err := s.Stop(ctx); err != nil {
		return fail(err)
	}
	if left, err := t.Daemon.Containers(ctx, id); err != nil || len(left) > 0 {
		out = append(out, fmt.Sprintf("left behind: %v %v", left, err))
	}
	return out
}

// derive makes an image that starts something else.
func (d *Daemon) derive(ctx context.Context, name string, entrypoint []string) (string, error) {
	all, err := environments.Load("")
	if err != nil {
		return "", err
	}
	made, err := d.api.ContainerCreate(ctx, &container.Config{Image: all[0].Image}, nil, nil, nil, name)
	if err != nil {
		return "", err
	}
	defer d.api.ContainerRemove(context.WithoutCancel(ctx), made.ID, container.RemoveOptions{Force: true})
	ref := "notebox-test/" + name + ":broken"
	_, err = d.api.ContainerCommit(ctx, made.ID, container.CommitOptions{
		Reference: ref, Config: &container.Config{Entrypoint: entrypoint},
	})
	return ref, err
}

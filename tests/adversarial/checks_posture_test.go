package adversarial

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

var postureChecks = map[string]Check{
	"posture_is_golden":  postureIsGolden,
	"with_the_host_file": withTheHostFile,
}

// golden is where runner/docker keeps the posture of a sandbox. Its own tests hold
// an engine's sandboxes against it, this one those of the whole service.
const golden = "../../runner/docker/testdata/"

// postureIsGolden holds the containers of the service, and what a cell sees, against
// the golden files.
func postureIsGolden(ctx context.Context, t *Trial) (out []Failure) {
	script, err := os.ReadFile(golden + "inside.py")
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	t.Attempt.Requests = []Request{{Code: string(script), Expect: Expect{Run: list[string]{"ok"}}}}
	answers, out := t.SendAll(ctx)
	if len(out) > 0 {
		return out
	}
	out = append(out, differences("inside.json", []byte(answers[0].Reply.Text))...)

	ids, err := t.Daemon.Containers(ctx, t.Service.ID)
	if err != nil || len(ids) == 0 {
		return append(out, Failure{Text: fmt.Sprintf("no container to look at: %v", err)})
	}
	for _, id := range ids {
		c, err := t.Daemon.api.ContainerInspect(ctx, id)
		if err != nil {
			continue // it has ended; others are warm
		}
		c.Config.Image = "the environment's"
		c.Config.Labels = map[string]string{"notebox.environment": c.Config.Labels["notebox.environment"]}
		for i, option := range c.HostConfig.SecurityOpt {
			if profile, ok := strings.CutPrefix(option, "seccomp="); ok {
				out = append(out, sameProfile(profile)...)
				c.HostConfig.SecurityOpt[i] = "seccomp=seccomp.json"
			}
		}
		// Of the processors, by how many there are; see masked in runner/docker.
		c.HostConfig.MaskedPaths = slices.DeleteFunc(c.HostConfig.MaskedPaths, func(path string) bool {
			return strings.HasSuffix(path, "/thermal_throttle")
		})
		// As in runner/docker: daemons differ in these, and hold them all the same.
		c.HostConfig.MemorySwappiness, c.HostConfig.OomKillDisable = nil, nil
		c.HostConfig.Runtime = "the daemon's default"
		// Each has a user of its own.
		c.HostConfig.Tmpfs["/mnt/data"] = ownUser.ReplaceAllString(c.HostConfig.Tmpfs["/mnt/data"], "uid=USER,gid=USER")
		have, err := json.Marshal(map[string]any{"Config": c.Config, "HostConfig": c.HostConfig})
		if err != nil {
			return append(out, Failure{Text: err.Error()})
		}
		out = append(out, differences("posture.json", have)...)
		if len(c.Mounts) != 1 || c.Mounts[0].Destination != "/dev/pts" {
			out = append(out, Failure{Text: fmt.Sprintf("mounts: %v", c.Mounts)})
		}
	}
	return out
}

var ownUser = regexp.MustCompile(`uid=\d{5},gid=\d{5}$`)

func sameProfile(have string) []Failure {
	want, err := os.ReadFile("../../runner/posture/seccomp.json")
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	var a, b any
	if json.Unmarshal(want, &a) != nil || json.Unmarshal([]byte(have), &b) != nil || !reflect.DeepEqual(a, b) {
		return []Failure{{Text: "the seccomp profile is another"}}
	}
	return nil
}

// differences names the fields in which have is not what a golden file says.
func differences(file string, have []byte) (out []Failure) {
	raw, err := os.ReadFile(golden + file)
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	var a, b any
	if err := json.Unmarshal(raw, &a); err != nil {
		return []Failure{{Text: err.Error()}}
	}
	if err := json.Unmarshal(have, &b); err != nil {
		return []Failure{{Text: fmt.Sprintf("%s: %v: %s", file, err, shown(string(have)))}}
	}
	compare(file, a, b, func(text string) { out = append(out, Failure{Text: text}) })
	return out
}

func compare(at string, want, have any, tell func(string)) {
	a, okA := want.(map[string]any)
	b, okB := have.(map[string]any)
	if !okA || !okB {
		if !reflect.DeepEqual(want, have) {
			tell(fmt.Sprintf("%s is %v, not %v", at, have, want))
		}
		return
	}
	for name := range a {
		compare(at+"."+name, a[name], b[name], tell)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			tell(fmt.Sprintf("%s.%s is new: %v", at, name, b[name]))
		}
	}
}

// withTheHostFile tells the code where the host's secret is.
func withTheHostFile(ctx context.Context, t *Trial) []Failure {
	t.Attempt.Requests = slices.Clone(t.Attempt.Requests)
	for i := range t.Attempt.Requests {
		r := &t.Attempt.Requests[i]
		r.Code = strings.ReplaceAll(r.Code, "{host_file}", hostFile)
	}
	return t.Send(ctx)
}

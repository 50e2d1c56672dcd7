package languages

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// TestImageHoldsNothingOfTheHost looks for the build's secrets in every layer.
func TestImageHoldsNothingOfTheHost(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("../../../scripts/image-check.sh", service.SandboxImage(t)).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestLibraries imports every distribution that /v1/environments names, with
// the version that it names.
func TestLibraries(t *testing.T) {
	t.Parallel()
	status, raw := service.Get(t, shared.URL+"/v1/environments")
	require.Equal(t, http.StatusOK, status)
	var answer struct {
		Environments []struct {
			Packages json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(raw, &answer), "%s", raw)
	require.NotEmpty(t, answer.Environments)
	list := answer.Environments[0].Packages
	require.Contains(t, string(list), `"pandas"`)
	r := shared.Execute(t, map[string]any{"timeout": 120, "code": `
import importlib, importlib.metadata as metadata, json
modules = metadata.packages_distributions()
for package in json.loads(r'''` + string(list) + `'''):
    name, version = package["name"], package["version"]
    assert metadata.version(name) == version, (name, metadata.version(name))
    tops = [m for m, owners in modules.items() if name in [o.lower().replace("_", "-") for o in owners]]
    tops = [m for m in tops if not m.startswith("_") and "__" not in m and m.isidentifier()]
    assert tops, name
    for top in tops:
        importlib.import_module(top)
print("all there")
`})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Contains(t, r.Text, "all there")
}

// TestTools uses what is not Python.
func TestTools(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{"timeout": 120, "code": `
import subprocess
def sh(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()

assert sh("echo '{\"a\": [1, 2]}' | jq .a[1]") == "2"
open("hello.c", "w").write('#include <stdio.h>\nint main(void) { puts("compiled"); }')
assert sh("gcc -O2 -o hello hello.c && ./hello") == "compiled"
sh("git init -q repo && cd repo && git -c user.name=a -c user.email=b commit -q --allow-empty -m c && git log --oneline")
sh("zip -q hello.zip hello.c && unzip -p hello.zip hello.c")
sh("curl --version")
sh("ffmpeg -loglevel error -f lavfi -i testsrc=duration=1:size=64x48:rate=5 out.mp4")
assert "nb_read_frames=5" in sh("ffprobe -v error -count_frames -show_entries stream=nb_read_frames out.mp4")
`})
	require.Equal(t, "ok", r.Status, r.Text)
}

// TestDisplay opens a window on the virtual display, and draws what a font must
// be there for.
func TestDisplay(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{"timeout": 60, "cells": []string{
		`import os
running = lambda: any(b"Xvfb" in open(f"/proc/{p}/cmdline", "rb").read() for p in os.listdir("/proc") if p.isdigit())
assert not running(), "it starts when a program connects"
import tkinter
window = tkinter.Tk()
tkinter.Label(window, text="hello").pack()
window.update()
assert running() and window.winfo_screenwidth() == 1280
window.destroy()`,
		`import warnings, matplotlib.pyplot as plt
warnings.simplefilter("error")
plt.title("日本語 中文 한국어 😀")
plt.savefig("text.png")`,
	}})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Len(t, r.Files, 1)
}

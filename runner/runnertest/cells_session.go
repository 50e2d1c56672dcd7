package runnertest

import (
	"strconv"
)

// The cells of the suite of sessions, in Python, and its commands.
const (
	CellSet   = `number = 41`
	CellGet   = `print(number + 1)`
	CellCount = `count = globals().get("count", 0) + 1
print(count)`
	CellRead     = `print(open("in.txt").read())`
	CellDieLater = `import os, subprocess
subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -9 {os.getpid()}; touch died"])`

	CommandBoth = `echo out; echo err >&2; exit 3`
	CommandEnv  = `echo "$NOTEBOX_TEST"`
	CommandLong = `echo started; sleep 600`
)

// sessionCells are the same, in Go.
var sessionCells = map[string]Cell{
	CellSet: func(k *Kernel) { k.Vars["number"] = "41" },
	CellGet: func(k *Kernel) {
		if k.Vars["number"] == "" {
			k.Raise("NameError", "name 'number' is not defined")
			return
		}
		k.Print("42\n")
	},
	CellCount: func(k *Kernel) {
		n, _ := strconv.Atoi(k.Vars["count"])
		k.Vars["count"] = strconv.Itoa(n + 1)
		k.Print(k.Vars["count"] + "\n")
	},
	CellRead: func(k *Kernel) {
		content, ok := k.Files["in.txt"]
		if !ok {
			k.Raise("FileNotFoundError", "in.txt")
			return
		}
		k.Print(content + "\n")
	},
	CellDieLater: func(k *Kernel) {
		k.DieLater()
		k.Files["died"] = ""
	},
	CommandBoth: func(k *Kernel) {
		k.Print("out\n")
		k.Complain("err\n")
		k.Exit(3)
	},
	CommandEnv: func(k *Kernel) { k.Print(lines(k.Env["NOTEBOX_TEST"])) },
	CommandLong: func(k *Kernel) {
		k.Print("started\n")
		k.Wait(false)
	},
}

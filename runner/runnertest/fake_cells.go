package runnertest

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"notebox/runner"
)

// suiteCells are the cells of the suite, in Go.
var suiteCells = map[string]Cell{
	CellHello: func(k *Kernel) { k.Print("hello\n") },
	CellDisplay: func(k *Kernel) {
		k.Output(html("<b>1</b>"))
		k.Update(html("<b>2</b>"))
		k.Clear()
		k.Print("end\n")
	},
	CellRaise:       func(k *Kernel) { k.Raise("ValueError", "boom") },
	CellInput:       func(k *Kernel) { k.Raise("StdinNotImplementedError", "") },
	CellMemoryError: func(k *Kernel) { k.Raise("MemoryError", "") },
	CellSleep: func(k *Kernel) {
		k.Print("started\n")
		k.Wait(false)
	},
	CellStubborn: func(k *Kernel) {
		k.Print("started\n")
		k.Wait(true)
	},
	CellKill:     func(k *Kernel) { k.Die(runner.StatusKilled) },
	CellAllocate: func(k *Kernel) { k.Die(runner.StatusOutOfMemory) },
	CellFlood: func(k *Kernel) {
		for k.Print(strings.Repeat("x", 999) + "\n") {
			continue
		}
	},
	CellEnv: func(k *Kernel) { k.Print(lines(k.Env["NOTEBOX_TEST"])) },
	CellFiles: func(k *Kernel) {
		k.Print(lines(k.Files["in.csv"] + k.Files["folder/deep.txt"]))
		k.Files["changed.txt"] += "new"
		k.Files["created.txt"] = "created"
		k.Files["odd \"name\"\n.txt"] = "odd"
	},
	CellBigFiles: func(k *Kernel) {
		big := k.Files["big"]
		k.Print(fmt.Sprintf("%d %x\n", len(big), sha256.Sum256([]byte(big))))
		k.Files["bigger"] = big + big
	},
	CellThreeFiles: func(k *Kernel) {
		for _, name := range []string{"a", "b", "c"} {
			k.Files[name] = "0123456789"
		}
	},
	CellSpecialFiles: func(k *Kernel) {
		k.Special("link", "symbolic link")
		k.Special("fifo", "not a regular file")
		k.Files["kept"] = "kept"
	},
	CellHide: func(k *Kernel) {
		k.Print("started\n")
		k.Wait(false)
	},
	CellSeek: func(k *Kernel) { k.Print("found []\n") },
}

package main

import (
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
)

// TestFilterIsItsProfile compares the program with the profile, for each call there is and
// arguments that rules are about.
func TestFilterIsItsProfile(t *testing.T) {
	raw, err := os.ReadFile("../../runner/posture/seccomp.json")
	require.NoError(t, err)
	both, err := compile(raw)
	require.NoError(t, err)
	require.Less(t, len(both.own), len(both.common)/4, "each cell has the kernel compile it")
	program := programs{load(t, both.common), load(t, both.own)}
	machine, err := arch.GetInfo(runtime.GOARCH)
	require.NoError(t, err)
	var p profile
	require.NoError(t, json.Unmarshal(raw, &p))
	rules, err := p.rules(machine)
	require.NoError(t, err)
	values := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 41, 1 << 32, 0x7e020000, 0x10000000, 0xffffffff}
	for _, those := range rules {
		for _, r := range those {
			for _, a := range r.arguments {
				values = append(values, a.Value, a.ValueTwo, a.Value+1<<32)
			}
		}
	}
	for number := range uint32(500) {
		for range 40 {
			var arguments [6]uint64
			for i := range arguments {
				arguments[i] = values[rand.IntN(len(values))]
			}
			require.Equal(t, decide(rules[number], arguments), ask(t, program, uint32(machine.ID), number, arguments),
				"%s%x", machine.SyscallNumbers[int(number)], arguments)
		}
	}
	var none [6]uint64
	require.EqualValues(t, retKill, ask(t, program, 1, 0, none), "another architecture's call")
	require.EqualValues(t, retErrno|1, ask(t, program, uint32(machine.ID), x32Bit, none), "a call of x32's")
	control := func(cmd uint64) uint32 {
		return ask(t, program, uint32(machine.ID), uint32(machine.SyscallNames["fcntl"]), [6]uint64{3, cmd, 1})
	}
	require.EqualValues(t, retAllow, control(4), "F_SETFL")
	for _, notify := range []uint64{fNotify, fNotify | 1<<32} { // the kernel reads an int
		require.EqualValues(t, retErrno|1, control(notify), "dnotify")
	}
	watch := func(mask uint64) uint32 {
		return ask(t, program, uint32(machine.ID), uint32(machine.SyscallNames["inotify_add_watch"]), [6]uint64{3, 1 << 40, mask})
	}
	require.EqualValues(t, retAllow, watch(0x02|0x100|1<<31), "what is written to a file, and made in a folder, once")
	for _, mask := range []uint64{0x01, 0x10, 0x20, 0xfff} {
		require.EqualValues(t, retErrno|1, watch(mask), "%x: who reads a file", mask)
	}
	for _, name := range []string{"mount", "unshare", "setns", "pivot_root", "umount2", "ptrace", "bpf", "keyctl"} {
		require.EqualValues(t, retErrno|1, ask(t, program, uint32(machine.ID), uint32(machine.SyscallNames[name]), none), name)
	}
}

func TestFilterRefusesWhatItDoesNotKnow(t *testing.T) {
	for desc, raw := range map[string]string{
		"another default":    `{"defaultAction": "SCMP_ACT_ALLOW"}`,
		"another action":     `{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["read"], "action": "SCMP_ACT_TRACE"}]}`,
		"another comparison": `{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"op": "SCMP_CMP_GT"}]}]}`,
		"no rule":            `{"defaultAction": "SCMP_ACT_ERRNO"}`,
	} {
		_, err := compile([]byte(raw))
		require.Error(t, err, desc)
	}
}

// decide is what the rules say, the plain way.
func decide(rules []rule, arguments [6]uint64) uint32 {
	for _, r := range rules {
		holds := true
		for _, a := range r.arguments {
			value := arguments[a.Index]
			switch a.Op {
			case "SCMP_CMP_EQ":
				holds = holds && value == a.Value
			case "SCMP_CMP_NE":
				holds = holds && value != a.Value
			case "SCMP_CMP_MASKED_EQ":
				holds = holds && value&a.Value == a.ValueTwo
			}
		}
		if holds {
			return r.result
		}
	}
	return retErrno | 1
}

func load(t *testing.T, code []byte) *bpf.VM {
	require.Less(t, len(code)/8, 4096, "the kernel takes no more")
	var program []bpf.Instruction
	for ; len(code) > 0; code = code[8:] {
		raw := bpf.RawInstruction{Op: binary.NativeEndian.Uint16(code), Jt: code[2], Jf: code[3], K: binary.NativeEndian.Uint32(code[4:])}
		program = append(program, raw.Disassemble())
	}
	vm, err := bpf.NewVM(program)
	require.NoError(t, err)
	return vm
}

// programs are those that a process has. The kernel does what the strictest of them says.
type programs []*bpf.VM

// ask runs the programs on a call. The machine here reads words in network order.
func ask(t *testing.T, all programs, architecture, number uint32, arguments [6]uint64) uint32 {
	call := make([]byte, 64)
	binary.BigEndian.PutUint32(call, number)
	binary.BigEndian.PutUint32(call[offsetArch:], architecture)
	for i, a := range arguments {
		binary.BigEndian.PutUint32(call[offsetArguments+8*i:], uint32(a))
		binary.BigEndian.PutUint32(call[offsetArguments+8*i+4:], uint32(a>>32))
	}
	for _, vm := range all {
		result, err := vm.Run(call)
		require.NoError(t, err)
		if uint32(result) != retAllow {
			return uint32(result)
		}
	}
	return retAllow
}

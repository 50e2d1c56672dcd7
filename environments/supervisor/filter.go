package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

// What a filter returns, and where it finds what (linux/seccomp.h).
const (
	retKill, retAllow, retErrno = 0x80000000, 0x7fff0000, 0x00050000

	offsetNumber, offsetArch, offsetArguments = 0, 4, 16
	x32Bit                                    = 0x40000000 // of the number of a call that x32 makes

	// tellsOthers are what inotify tells of a file that was only read: IN_ACCESS, IN_OPEN and
	// IN_CLOSE_NOWRITE of linux/inotify.h.
	tellsOthers = 0x01 | 0x20 | 0x10
	fNotify     = 1026 // F_NOTIFY of linux/fcntl.h
)

// profile is a seccomp profile in the form of Docker's, as far as ours go.
type profile struct {
	DefaultAction   string `json:"defaultAction"`
	DefaultErrnoRet uint32 `json:"defaultErrnoRet"`
	Syscalls        []struct {
		Names              []string
		Action             string
		ErrnoRet           uint32
		Args               []argument
		Includes, Excludes *struct{ Arches, Caps []string }
	}
}

type argument struct {
	Index           uint32
	Value, ValueTwo uint64
	Op              string
}

// rule is what becomes of a call whose arguments are such.
type rule struct {
	arguments []argument
	result    uint32
}

// filters are a profile in two programs, as the kernel takes them: what both of them allow is
// allowed. All of a process's forks have its filter, and a program of hundreds of instructions
// takes the kernel a third of a millisecond. So the long one is the zygote's.
type filters struct {
	common []byte // all of it, but the calls that walls are built with are allowed
	own    []byte // what each cell adds: it decides about these calls, and allows every other
}

// compile makes the programs of a profile for this machine.
func compile(raw []byte) (filters, error) {
	machine, err := arch.GetInfo(runtime.GOARCH)
	if err != nil {
		return filters{}, err
	}
	var p profile
	if err := json.Unmarshal(raw, &p); err != nil {
		return filters{}, err
	}
	if p.DefaultAction != "SCMP_ACT_ERRNO" {
		return filters{}, fmt.Errorf("the default is %s", p.DefaultAction)
	}
	all, err := p.rules(machine)
	if err != nil {
		return filters{}, err
	}
	other, own := retErrno|p.DefaultErrnoRet, map[uint32][]rule{}
	for _, name := range wire.WallCalls {
		if number, known := machine.SyscallNames[name]; known {
			own[uint32(number)] = append(all[uint32(number)], rule{result: other})
			all[uint32(number)] = []rule{{result: retAllow}}
		}
	}
	var both filters
	if both.common, err = assemble(machine, all, other); err == nil {
		both.own, err = assemble(machine, own, retAllow)
	}
	return both, err
}

// take has this process, and all that come from it, obey a program. What Docker has a worker's
// container obey, no cluster can be told without a file on its nodes.
func take(program []byte) error {
	const size = 8 // of an instruction
	if len(program) < size {
		return errors.New("an empty filter")
	}
	filters := unix.SockFprog{Len: uint16(len(program) / size), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filters)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("seccomp: thread %d has another filter", thread)
	}
	return nil
}

// assemble is the program of such rules, with what becomes of other calls. It finds the number of a call
// by halving, so that no call costs more than some ten comparisons.
func assemble(machine *arch.Info, rules map[uint32][]rule, other uint32) ([]byte, error) {
	instructions := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.ID), SkipTrue: 1},
		bpf.RetConstant{Val: retKill},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}
	instructions = append(instructions, search(slices.Sorted(maps.Keys(rules)), rules, other)...)
	encoded, err := bpf.Assemble(instructions)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, i := range encoded {
		if err := binary.Write(&out, binary.NativeEndian, i); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// rules are those of each call of this machine, by its number, for a cell.
func (p *profile) rules(machine *arch.Info) (map[uint32][]rule, error) {
	all := map[uint32][]rule{}
	for _, s := range p.Syscalls {
		if i := s.Includes; i != nil && (len(i.Caps) > 0 || len(i.Arches) > 0 && !slices.Contains(i.Arches, runtime.GOARCH)) {
			continue
		}
		// Code in a cell has no capability, so what capabilities exclude holds.
		if e := s.Excludes; e != nil && slices.Contains(e.Arches, runtime.GOARCH) {
			continue
		}
		var result uint32
		switch s.Action {
		case "SCMP_ACT_ALLOW":
			result = retAllow
		case "SCMP_ACT_ERRNO":
			result = retErrno | s.ErrnoRet
		default:
			return nil, fmt.Errorf("the action %s", s.Action)
		}
		for _, a := range s.Args {
			if !slices.Contains([]string{"SCMP_CMP_EQ", "SCMP_CMP_NE", "SCMP_CMP_MASKED_EQ"}, a.Op) {
				return nil, fmt.Errorf("the comparison %s", a.Op)
			}
		}
		for _, name := range s.Names {
			if number, known := machine.SyscallNames[name]; known && number&x32Bit == 0 {
				all[uint32(number)] = append(all[uint32(number)], rule{s.Args, result})
			}
		}
	}
	for number, those := range all {
		// One that holds always is the last.
		slices.SortStableFunc(those, func(a, b rule) int { return min(len(b.arguments), 1) - min(len(a.arguments), 1) })
		all[number] = those
	}
	if len(all) == 0 {
		return nil, errors.New("no rule is for this machine")
	}
	// The image's files are those of all cells of a worker: none is told what others open, neither
	// by inotify nor by dnotify.
	const cmd = 1 // fcntl's argument, an int
	if control := uint32(machine.SyscallNames["fcntl"]); all[control] != nil {
		notify := argument{Index: cmd, Value: math.MaxUint32, ValueTwo: fNotify, Op: "SCMP_CMP_MASKED_EQ"}
		all[control] = append([]rule{{[]argument{notify}, retErrno | uint32(unix.EPERM)}}, all[control]...)
	}
	if watch := uint32(machine.SyscallNames["inotify_add_watch"]); all[watch] != nil {
		all[watch] = []rule{{[]argument{{Index: 2, Value: tellsOthers, Op: "SCMP_CMP_MASKED_EQ"}}, retAllow}}
	}
	return all, nil
}

// search is a program that has the number loaded and ends: with what becomes of one of these
// numbers, or with other for any other.
func search(numbers []uint32, rules map[uint32][]rule, other uint32) []bpf.Instruction {
	if len(numbers) == 0 {
		return []bpf.Instruction{bpf.RetConstant{Val: other}}
	}
	if first := rules[numbers[0]]; plain(first) && together(numbers, rules) {
		last := numbers[len(numbers)-1]
		return []bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: numbers[0], SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: last, SkipTrue: 1},
			bpf.RetConstant{Val: first[0].result},
			bpf.RetConstant{Val: other},
		}
	}
	if len(numbers) == 1 {
		body := check(rules[numbers[0]], other)
		return append([]bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: numbers[0], SkipTrue: 1},
			bpf.RetConstant{Val: other},
		}, body...)
	}
	half := len(numbers) / 2
	low, high := search(numbers[:half], rules, other), search(numbers[half:], rules, other)
	return slices.Concat([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: numbers[half], SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(low))},
	}, low, high)
}

// plain reports whether what becomes of a call does not depend on its arguments.
func plain(rules []rule) bool { return len(rules[0].arguments) == 0 }

// together reports whether numbers follow each other, and the same becomes of all.
func together(numbers []uint32, rules map[uint32][]rule) bool {
	for i, number := range numbers {
		if number != numbers[0]+uint32(i) || !plain(rules[number]) || rules[number][0].result != rules[numbers[0]][0].result {
			return false
		}
	}
	return true
}

// check is a program that ends with the result of the first rule that holds, or with other.
func check(rules []rule, other uint32) []bpf.Instruction {
	var program []bpf.Instruction
	for _, r := range rules {
		program = append(program, test(r)...)
	}
	return append(program, bpf.RetConstant{Val: other})
}

// test is a program that ends with the rule's result if it holds, and else goes on.
func test(r rule) []bpf.Instruction {
	program := []bpf.Instruction{bpf.RetConstant{Val: r.result}}
	for _, a := range slices.Backward(r.arguments) {
		program = append(compare(a, len(program)), program...)
	}
	return program
}

// compare is a program that skips so many instructions after it unless the argument is such.
// An argument is 64 bits, and what is compared 32: the lower half comes first in memory.
func compare(a argument, skip int) []bpf.Instruction {
	mask, value := ^uint64(0), a.Value
	if a.Op == "SCMP_CMP_MASKED_EQ" {
		mask, value = a.Value, a.ValueTwo
	}
	half := func(shift uint32, skipTrue, skipFalse int) []bpf.Instruction {
		return []bpf.Instruction{
			bpf.LoadAbsolute{Off: offsetArguments + 8*a.Index + shift/8, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: uint32(mask >> shift)},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(value >> shift), SkipTrue: uint8(skipTrue), SkipFalse: uint8(skipFalse)},
		}
	}
	const size = 3 // of a half
	if a.Op == "SCMP_CMP_NE" {
		return append(half(32, 0, size), half(0, skip, 0)...)
	}
	return append(half(32, 0, size+skip), half(0, 0, skip)...)
}

package posture

import (
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

func TestCheck(t *testing.T) {
	require.NoError(t, Check(runner.DefaultLimits()))
	l := runner.DefaultLimits()
	l.Memory = l.DataSize + l.TmpSize + ShmSize + processMemory
	require.NoError(t, Check(l))
	l.Memory--
	require.ErrorContains(t, Check(l), "256MiB for processes")
}

func TestCellMounts(t *testing.T) {
	l := runner.Limits{DataSize: 1 << 20, TmpSize: 2 << 20, Inodes: 9}
	require.Equal(t, map[string]string{
		"/mnt/data":    "size=1048576,nr_inodes=9,mode=0755,uid=7,gid=7",
		"/tmp":         "size=2097152,nr_inodes=9,mode=1777",
		"/dev/shm":     "size=67108864,mode=1777",
		"/run/notebox": "size=4194304,nr_inodes=1024,mode=0755",
	}, CellMounts(l, 7))
}

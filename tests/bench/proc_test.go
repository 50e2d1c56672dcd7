package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseCPU(t *testing.T) {
	for _, c := range []struct {
		desc, stat string
		want       cpuTime
		wrong      bool
	}{
		{
			desc: "idle, waiting and guests are not busy",
			stat: "cpu  100 20 30 90000 5000 4 6 700 50 60\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
			want: cpuTime{busy: 1.6, stolen: 7},
		},
		{desc: "no guests", stat: "cpu 1 0 0 0 0 0 0 0\n", want: cpuTime{busy: 0.01}},
		{desc: "an old kernel without steal", stat: "cpu 1 2 3 4 5 6 7\n", wrong: true},
		{desc: "another line first", stat: "intr 1 2 3 4 5 6 7 8\n", wrong: true},
		{desc: "no number", stat: "cpu 1 2 x 4 5 6 7 8\n", wrong: true},
		{desc: "nothing", stat: "", wrong: true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			got, err := parseCPU(c.stat)
			require.Equal(t, c.wrong, err != nil, "%v", err)
			require.InDelta(t, c.want.busy, got.busy, 1e-9)
			require.InDelta(t, c.want.stolen, got.stolen, 1e-9)
		})
	}
}

func TestParseSmaps(t *testing.T) {
	const rollup = `00400000-7ffd1c9f5000 ---p 00000000 00:00 0                              [rollup]
Rss:               81920 kB
Pss:               40960 kB
Pss_Dirty:         30000 kB
Shared_Clean:      20000 kB
Swap:                  0 kB
`
	resident, proportional, err := parseSmaps(rollup)
	require.NoError(t, err)
	require.EqualValues(t, 80<<20, resident)
	require.EqualValues(t, 40<<20, proportional)

	for desc, text := range map[string]string{
		"a zombie's is empty": "",
		"no Pss":              "Rss: 1 kB\n",
		"no number":           "Rss: x kB\n",
	} {
		_, _, err := parseSmaps(text)
		require.Error(t, err, desc)
	}
}

func TestMemoryFile(t *testing.T) {
	for _, c := range []struct{ desc, cgroup, want string }{
		{"version 2", "0::/system.slice/docker-1f.scope\n", "/sys/fs/cgroup/system.slice/docker-1f.scope/memory.current"},
		{"version 1", "5:cpu,cpuacct:/docker/1f\n4:memory:/docker/1f\n0::/\n", "/sys/fs/cgroup/memory/docker/1f/memory.usage_in_bytes"},
		{"both, memory in version 1", "0::/docker/1f\n4:memory:/docker/1f\n", "/sys/fs/cgroup/memory/docker/1f/memory.usage_in_bytes"},
		{"neither", "5:cpu:/docker/1f\n", ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			got, err := memoryFile(c.cgroup)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want == "", err != nil)
		})
	}
}

func TestCPUModel(t *testing.T) {
	require.Equal(t, "Intel(R) Xeon(R) Processor", cpuModel("processor\t: 0\nmodel\t\t: 207\nmodel name\t: Intel(R) Xeon(R) Processor\n"))
	require.Equal(t, "Raspberry Pi 5 Model B", cpuModel("processor\t: 0\n\nModel\t\t: Raspberry Pi 5 Model B\n"))
	require.Equal(t, "unknown", cpuModel(""))
}

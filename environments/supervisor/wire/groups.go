package wire

// GroupsFolder is where a worker finds its service's part of the host's control groups: on
// version 1 a folder for each of Controllers.
const GroupsFolder = "/run/groups"

// Freezer is the controller of cgroup v1 by which cells stand still.
const Freezer = "freezer"

// Controllers of cgroup v1 that cells have groups of.
var Controllers = []string{"memory", "cpu", "cpuacct", "pids", Freezer}

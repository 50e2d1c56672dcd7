package executor

import (
	"context"
	"net"

	"notebox/environments"
)

var (
	pythonEnv = environments.Environment{
		Name: "jupyter", Language: "python", DisplayName: "Python 3", Kernel: environments.Kernel{Name: "python3"}, Image: "jupyter:1",
		Packages: []environments.Package{{Name: "numpy", Version: "2.0"}, {Name: "pandas", Version: "3.0"}},
	}
	rEnv    = environments.Environment{Name: "r", Language: "r", DisplayName: "R", Kernel: environments.Kernel{Name: "ir"}, Image: "r:1"}
	bashEnv = environments.Environment{Name: "bash", Language: "bash", DisplayName: "Bash", Kernel: environments.Kernel{Name: "bash"}, Image: "bash:1"}
)

// unreached is a runner.Network that answers nothing.
type unreached struct{}

func (unreached) Serve(context.Context, string, net.Listener) {}
func (unreached) CA() []byte                                  { return nil }

package protocols

import (
	"context"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"notebox/tests/starter"
)

// TestMCPOverStdio has the official client speak to the subcommand, and that to the
// real service.
func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	program, err := starter.Notebox()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, program, "mcp", "-url", shared.URL)
	cmd.Stderr = os.Stderr
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, nil)
	require.NoError(t, err)
	r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "run_python", Arguments: map[string]any{
		"code": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nopen('/mnt/data/a.txt', 'w').write('a')\nprint(6 * 7)",
	}})
	require.NoError(t, err)
	require.False(t, r.IsError)
	require.Len(t, r.Content, 4, "text, image, two links")
	require.Contains(t, r.Content[0].(*sdk.TextContent).Text, "42")
	require.Equal(t, "image/png", r.Content[1].(*sdk.ImageContent).MIMEType)

	r, err = session.CallTool(ctx, &sdk.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "1/0"}})
	require.NoError(t, err)
	require.True(t, r.IsError)
	require.Contains(t, r.Content[0].(*sdk.TextContent).Text, "ZeroDivisionError")

	call := func(name string, arguments map[string]any) *sdk.CallToolResult {
		r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
		require.NoError(t, err)
		require.False(t, r.IsError, "%s: %v", name, r.Content)
		return r
	}
	id := call("create_session", nil).StructuredContent.(map[string]any)["id"]
	call("write_file", map[string]any{"session": id, "path": "in.txt", "content": "41"})
	call("run_python", map[string]any{"session": id, "code": "x = int(open('/mnt/data/in.txt').read())"})
	call("run_python", map[string]any{"session": id, "code": "open('out.txt', 'w').write(str(x + 1))"})
	r = call("read_file", map[string]any{"session": id, "path": "/mnt/data/out.txt"})
	require.Equal(t, "42", r.Content[0].(*sdk.TextContent).Text)
	require.Contains(t, call("list_files", map[string]any{"session": id}).Content[0].(*sdk.TextContent).Text, "/mnt/data/in.txt")
	call("close_session", map[string]any{"session": id})

	require.NoError(t, session.Close(), "it ends with its input")
	require.True(t, cmd.ProcessState.Success())
}

func TestMCPOverStdioSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + free.Addr().String()
	require.NoError(t, free.Close())
	program, err := starter.Notebox()
	require.NoError(t, err)
	said, err := exec.Command(program, "mcp", "-url", address).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "not reached at "+address)
	require.Contains(t, string(said), "is it running")
	said, err = exec.Command(program, "mcp", "-url", "ftp://x").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "-url")
}

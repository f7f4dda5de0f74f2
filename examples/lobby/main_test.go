// The service of the tutorial: its rooms in the simulator, and real processes that are restarted one by one.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/sim"
)

// TestMain runs the program itself when the test started it as a child.
func TestMain(m *testing.M) {
	if os.Getenv("LOBBY_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// tutorial:begin
// Four players find a seat, and keep it while their room goes to another node.
func TestRoomMoves(t *testing.T) {
	c := sim.New(t, 3, 1)
	c.Register(rooms)
	c.AwaitUp()
	for i, player := range []string{"ann", "bob", "cid", "ann", "dee"} {
		_, err := join.Ask(c.Node(i%3), "chess", &Join{player})
		require.NoError(t, err)
	}
	_, err := join.Ask(c.Node(0), "chess", &Join{"eve"})
	require.ErrorIs(t, err, errFull) // as the room returned it, on whichever node

	left := c.Owner("room", "chess")
	c.Leave(left)
	require.True(t, c.Until(time.Minute, func() bool { return !c.Running(left) }))
	seen, err := look.Ask(c.Node((left+1)%3), "chess", &Look{})
	require.NoError(t, err)
	require.Equal(t, []string{"ann", "bob", "cid", "dee"}, seen.Players)
}

// tutorial:end

// process is the program as it runs.
type process struct {
	cmd  *exec.Cmd
	door string
	said chan string
}

// run starts the program with an address of its own, and waits until it serves.
func run(t *testing.T, listen string, seeds ...string) *process {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, append([]string{"--listen=" + listen, "--http=127.0.0.1:0"}, seeds...)...)
	cmd.Env = append(os.Environ(), "LOBBY_CHILD=1")
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p := &process{cmd: cmd, said: make(chan string, 1)}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		if _, rest, found := strings.Cut(lines.Text(), "rooms on "); found {
			p.door, _, _ = strings.Cut(rest, ",")
			go func() {
				rest, _ := io.ReadAll(pipe)
				p.said <- string(rest)
			}()
			return p
		}
	}
	require.Fail(t, "the program ended before it served")
	return nil
}

// leave ends it as a supervisor does.
func (p *process) leave(t *testing.T) {
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	rest := <-p.said
	_ = p.cmd.Wait()
	require.Zero(t, p.cmd.ProcessState.ExitCode(), rest)
}

// ask asks a process as a client does.
func ask(t *testing.T, method, url string) (status int, seen Seen) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, url, nil)
	require.NoError(t, err)
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	if a.StatusCode == http.StatusOK {
		require.NoError(t, json.Unmarshal(body, &seen))
	}
	return a.StatusCode, seen
}

// Three processes are restarted one after the other, as in a deploy, and no player loses a seat; a full room says so.
func TestRollingRestart(t *testing.T) {
	var at []string
	for range 3 {
		at = append(at, port.Keep(t))
	}
	seeds := func(i int) []string { return append(append([]string{}, at[:i]...), at[i+1:]...) }
	all := []*process{run(t, at[0])}
	for i := 1; i < 3; i++ {
		all = append(all, run(t, at[i], seeds(i)...))
	}
	for r := range 30 {
		status, _ := ask(t, http.MethodPost, fmt.Sprintf("%s/rooms/r%d/p%d", all[r%3].door, r, r))
		require.Equal(t, http.StatusOK, status)
	}
	for i := range all {
		all[i].leave(t)
		all[i] = run(t, at[i], seeds(i)...)
	}
	for r := range 30 {
		status, seen := ask(t, http.MethodGet, fmt.Sprintf("%s/rooms/r%d", all[(r+1)%3].door, r))
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, []string{fmt.Sprint("p", r)}, seen.Players)
	}
	for i := range seats {
		_, _ = ask(t, http.MethodPost, fmt.Sprintf("%s/rooms/r0/q%d", all[i%3].door, i))
	}
	status, _ := ask(t, http.MethodPost, all[0].door+"/rooms/r0/late")
	require.Equal(t, http.StatusConflict, status)
	all[0].leave(t)
	all[1].leave(t)
	require.NoError(t, all[2].cmd.Process.Signal(syscall.SIGTERM))
	require.Contains(t, <-all[2].said, "states of entities are lost: 30", "nobody is left who could have them")
	_ = all[2].cmd.Wait()
	require.Equal(t, kith.ExitStatesLost, all[2].cmd.ProcessState.ExitCode())
}

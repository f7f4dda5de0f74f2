// Tests of an electorate that is founded anew by a person's word: node processes with tenures, and the verbs.

package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli/env"
)

// tenant is a node process with a tenure.
type tenant struct {
	cmd      *exec.Cmd
	log      *bufio.Scanner
	addr, at string
}

// answers reports whether it gets an answer from each of so many entities.
func (n *tenant) answers(t *testing.T, entities int, token string) bool {
	for i := range entities {
		code, _, _ := program(t, "ask", "counter", fmt.Sprint(i), token, "--admin="+n.at, "--timeout=3s")
		if code != env.ExitOK {
			return false
		}
	}
	return true
}

// holders returns the addresses of the members that hold seats.
func (n *tenant) holders(t *testing.T) (addrs []string) {
	_, out, _ := program(t, "members", "--json", "--admin="+n.at)
	var m struct {
		Tenure struct{ Seats []struct{ Holder string } }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &m))
	for _, s := range m.Tenure.Seats {
		if addr, _, held := strings.Cut(s.Holder, "#"); held {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// TestRefoundByHand: five node processes without a resolver lose two of three seats for good (kill -9). What they say
// leads a person from status by down to refound, and then all entities answer again, and nothing is to be said any more
// (MEM-10, OPS-1).
func TestRefoundByHand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	token := "--token-file=" + file
	var nodes []*tenant
	for range 5 {
		args := []string{"--admin-token-file=" + file, "--demo", "--resolver=off", "--tenure", "--tenure-grant=5s",
			"--takeover-time=20s"}
		if nodes != nil {
			args = append(args, "--seeds="+nodes[0].addr)
		}
		n := &tenant{}
		n.cmd, n.log, n.addr, n.at = live(t, args...)
		nodes = append(nodes, n)
	}
	all := func(say string, cond func(*tenant) bool) {
		for _, n := range nodes {
			require.Eventually(t, func() bool { return cond(n) }, 2*time.Minute, 10*tick, "%s: %s", n.addr, say)
		}
	}
	refound := func(n *tenant, code int, want string, more ...string) {
		got, out, errs := program(t, append([]string{"refound", "--admin=" + n.at}, more...)...)
		require.Equal(t, code, got, out+errs)
		require.Contains(t, out+errs, want)
	}
	all("all seats are held", func(n *tenant) bool { return len(n.holders(t)) == 3 })
	all("it answers", func(n *tenant) bool { return n.answers(t, 3, token) })
	refound(nodes[0], env.ExitFailed, "the token is missing")
	refound(nodes[0], env.ExitFailed, "members that are not Down hold 3 of 3 seats", token)
	refound(&tenant{at: "127.0.0.1:1"}, env.ExitFailed, "no answer of the admin interface", token)

	var lost []string
	for _, addr := range nodes[0].holders(t)[1:] {
		for i, n := range nodes {
			if n.addr == addr {
				require.NoError(t, n.cmd.Process.Kill())
				_ = n.cmd.Wait()
				nodes, lost = append(nodes[:i:i], nodes[i+1:]...), append(lost, addr)
				break
			}
		}
	}
	require.Len(t, lost, 2)
	all("it handles nothing, and says what it waits for", func(n *tenant) bool {
		code, out, _ := program(t, "status", "--admin="+n.at)
		said := "half of the seats or more are held by members that do not answer"
		return code == env.ExitFailed && strings.Count(out, said) == 2 && strings.Contains(out, "refound")
	})
	refound(nodes[1], env.ExitFailed, "do not answer: down those that are dead before", token)
	for _, addr := range lost {
		code, _, errs := program(t, "down", addr, token, "--admin="+nodes[1].at)
		require.Equal(t, env.ExitOK, code, errs)
	}
	refound(nodes[1], env.ExitOK, "the seats of the lost go to other members", token)
	all("it answers again", func(n *tenant) bool { return n.answers(t, 3, token) })
	all("nothing is out of order", func(n *tenant) bool {
		code, out, _ := program(t, "status", "--admin="+n.at)
		return code == env.ExitOK && !strings.Contains(out, "is lost since") && len(n.holders(t)) == 3
	})
	refound(nodes[2], env.ExitFailed, "members that are not Down hold 3 of 3 seats", token)
}

// TestRefoundWithoutTenures: a node without a tenure says so, and the help says what comes before the word (OPS-1).
func TestRefoundWithoutTenures(t *testing.T) {
	_, ask := asked(t)
	code, _, errs := ask("refound TOKEN")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "nodes have no tenures")
	code, out, _ := program(t, "refound", "--help")
	require.Equal(t, env.ExitOK, code)
	require.Contains(t, strings.Join(strings.Fields(out), " "), "kith down for each of them first")
}

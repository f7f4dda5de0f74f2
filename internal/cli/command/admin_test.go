// Tests of the commands that ask a running node.

package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// asked starts a node with demo entities and its admin interface, and returns how to ask it.
func asked(t *testing.T) (n *kith.Node, ask func(args string) (code int, stdout, stderr string)) {
	t.Helper()
	n, err := kith.Start(t.Context(), kith.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	r, err := n.Register(demo(newLedger(), 10))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, n.Ready(ctx))
	require.NoError(t, r.Tell("a", make([]byte, 16)))
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600))
	s, err := admin.Start(n, admin.Config{Listen: "127.0.0.1:0", Token: "0123456789abcdef"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return n, func(args string) (int, string, string) {
		args = strings.ReplaceAll(args, "TOKEN", "--token-file="+file)
		return program(t, append(strings.Fields(args), "--admin="+s.Addr().String())...)
	}
}

// Each command asks the node and prints what it says; what is refused says why, with exit code 1.
func TestAskARunningNode(t *testing.T) {
	n, ask := asked(t)
	self := n.Addr().String()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"status", 0, "ready since"},
		{"status --json", 0, `"state":"ready"`},
		{"members", 0, self + "  up"},
		{"members --json", 0, `"self":"` + n.ID().String()},
		{"shards", 0, "counter  10"},
		{"shards", 0, "  entities  worker"},
		{"shards counter", 0, "1 of 10 shards live somewhere"},
		{"shards counter --json", 0, `"coordinator":"` + n.ID().String()},
		{"shards none", 1, "not registered on this node"},
		{"data", 1, "no store of values is open on this node"},
		{"data carts", 1, "no store of values \"carts\" is open on this node; it has none"},
		{"data carts key", 1, "no store of values"},
		{"explain", 0, "all members have seen one state"},
		{"explain --json", 0, `"decisions":[]`},
		{"explain --json", 0, `"members":{"self":"` + n.ID().String()},
		{"top --rounds=1 --every=100ms", 1, "Not Found"},
		{"down " + self + " --dry-run", 0, "nobody holds it unreachable"},
		{"join 10.0.0.1:1 TOKEN", 1, "no way to go over"},
		{"join 10.0.0.1:1", 1, "the token is missing"},
		{"down 10.0.0.1:1 --dry-run", 1, "no member at"},
		{"down 10.0.0.1:1 TOKEN", 1, "no member at"},
		{"down 10.0.0.1:1", 1, "the token is missing"},
		{"rebalancing pause TOKEN", 0, "nothing moves for balance"},
		{"rebalancing", 0, "paused at " + n.ID().String()},
		{"explain", 0, "paused at " + n.ID().String()},
		{"status", 0, "paused at " + n.ID().String()},
		{"rebalancing resume TOKEN", 0, "again"},
		{"rebalancing", 0, "shards move for balance"},
		{"rebalancing stop", 2, "must be one of"},
		{"move counter 99 " + self + " TOKEN", 1, "a number below 10"},
		{"move counter 1 10.0.0.1:1 TOKEN", 1, "no member at"},
		{"drain", 1, "the token is missing"},
		{"drain --wait --timeout=1ns TOKEN", 1, "no answer of the admin interface"},
		{"drain --wait TOKEN", 1, "no other member could take the shards"},
		{"shards", 0, "counter  10      1"},
		{"drain --undo TOKEN", 0, "may be given shards again"},
		{"leave", 1, "the token is missing"},
		{"leave TOKEN", 0, "leaving " + n.ID().String()},
	} {
		code, stdout, stderr := ask(c.args)
		require.Equal(t, c.code, code, "%s: %s", c.args, stderr)
		require.Contains(t, stdout+stderr, c.want, c.args)
	}
	<-n.Done()
	code, _, stderr := ask("status")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "this node is ended")
	code, stdout, _ := ask("explain") // what it decided is reported still
	require.Equal(t, 0, code)
	require.Contains(t, stdout, "this node is ended: ")
	require.NotContains(t, stdout, "convergence")
	code, stdout, _ = ask("events") // of a node that has ended: one last look
	require.Equal(t, 0, code)
	require.Contains(t, stdout, "snapshot")
	code, _, stderr = program(t, "status", "--admin=127.0.0.1:1")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no answer of the admin interface")
}

// A flight record goes from a running node to a file, and its replay says what the node did; with another file in the
// way, or one that is none, it says so.
func TestFlightRecordAndReplay(t *testing.T) {
	n, ask := asked(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "record.kith")
	code, _, stderr := ask("flight-record " + file)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "token")
	code, stdout, stderr := ask("flight-record TOKEN " + file)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "record.kith: ")
	code, _, stderr = ask("flight-record TOKEN " + file)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "exists")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left behind by what failed")

	code, stdout, stderr = program(t, "replay", file)
	require.Equal(t, 0, code, stderr)
	for _, want := range []string{"node " + n.ID().String(), `register type "counter": 10 shards`, "member-up",
		"coordinator-ready counter", `"same":true`} {
		require.Contains(t, stdout, want)
	}
	require.Equal(t, 1, strings.Count(stdout, "\nreplay {"))
	code, stdout, _ = program(t, "replay", "--json", "--all", file)
	require.Equal(t, 0, code)
	whats := map[string]int{}
	for line := range strings.Lines(strings.TrimSpace(stdout)) {
		var l replayLine
		if !strings.HasPrefix(line, "replay ") {
			require.NoError(t, json.Unmarshal([]byte(line), &l), line)
			whats[l.What]++
			require.WithinDuration(t, time.Now(), l.At, time.Hour)
		}
	}
	require.Positive(t, whats["tick"])
	require.Positive(t, whats["command"])
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, whole[:len(whole)/2], 0o600))
	code, _, stderr = program(t, "replay", file)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "damaged or cut off")
}

// A node that runs serves its admin interface, and one that is ordered to leave ends with exit code 0.
func TestRunServesItsAdminInterface(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--admin-token-file="+file)
	line := until(t, stderr, "event=admin-started", "event=node-started")
	_, at, _ := strings.Cut(line, "address=")
	at, _, _ = strings.Cut(at, " ")
	answer, err := http.Get("http://" + at + "/metrics")
	require.NoError(t, err)
	shown, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(shown), "\nkith_ready ")
	code, stdout, text := program(t, "leave", "--admin="+at, "--token-file="+file)
	require.Equal(t, 0, code, text)
	require.True(t, bytes.HasPrefix([]byte(stdout), []byte("leaving")))
	until(t, stderr, "event=node-left")
	require.NoError(t, cmd.Wait())
}

// Where is X: every node says the same home, an entity gets an ask and a tell with the token, and a refusal says
// whether a handler may have run (OPS-1).
func TestWhereAskTell(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	token := "--token-file=" + file
	_, _, addr, at := live(t, "--admin-token-file="+file, "--demo")
	_, _, _, other := live(t, "--demo", "--seeds="+addr)
	code, out, errs := program(t, "ask", "counter", "lobby", token, "--admin="+at)
	require.Equal(t, env.ExitOK, code, errs)
	require.NotEmpty(t, out)
	require.Eventually(t, func() bool {
		code, here, _ := program(t, "where", "counter", "lobby", "--admin="+at)
		again, there, _ := program(t, "where", "counter", "lobby", "--admin="+other)
		require.LessOrEqual(t, code, 1)
		return code == 0 && again == 0 && strings.Contains(here, "answers: entities of this shard: 1") &&
			strings.Contains(here, "node  ") && strings.Contains(there, "node  ")
	}, 2*time.Minute, tick)
	code, out, _ = program(t, "where", "counter", "lobby", "--admin="+at, "--json")
	require.Equal(t, env.ExitOK, code)
	require.True(t, json.Valid([]byte(out)), out)
	code, out, errs = program(t, "tell", "counter", "lobby", "no number", token, "--admin="+at)
	require.Equal(t, env.ExitOK, code, errs)
	require.Contains(t, out, "accepted")
	code, _, errs = program(t, "ask", "counter", "lobby", "no number", token, "--admin="+at)
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "got 9 bytes")
	require.Contains(t, errs, "a handler may have run")
	code, _, errs = program(t, "ask", "counter", "lobby", "--admin="+at)
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "token")
	code, _, errs = program(t, "where", "nothing", "lobby", "--admin="+at)
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "not registered")
	for _, bad := range [][]string{{"where", "counter"}, {"where", "counter", ""}, {"ask", "counter", "x", "--within=9s"},
		{"tell", "counter", "x", strings.Repeat("x", 4097)}} {
		code, _, errs := program(t, append(bad, "--admin="+at)...)
		require.Equal(t, env.ExitUsage, code, errs)
	}
}

// live starts a node as a process and returns its address and that of its admin interface.
func live(t *testing.T, args ...string) (cmd *exec.Cmd, stderr *bufio.Scanner, addr, at string) {
	t.Helper()
	cmd, _, stderr = spawn(t, append([]string{"run", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--log-format=json"},
		args...)...)
	for addr == "" || at == "" {
		require.True(t, stderr.Scan())
		var line struct{ Event, Address, Node string }
		require.NoError(t, json.Unmarshal(stderr.Bytes(), &line))
		switch line.Event {
		case "admin-started":
			at = line.Address
		case "node-started":
			addr, _, _ = strings.Cut(line.Node, "#")
		}
	}
	return cmd, stderr, addr, at
}

// A node that still looks for its cluster joins through an operator's seeds, as the same process and the same
// incarnation (BOOT-3).
func TestJoinWhileLooking(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	_, _, addr, _ := live(t)
	_, logB, _, adminB := live(t, "--admin-token-file="+file, "--contact=127.0.0.1:0", "--discovery=static",
		"--discovery-targets=127.0.0.1:1", "--expected=2", "--bootstrap-timeout=0")
	code, _, errs := program(t, "join", addr, "--token-file="+file, "--admin="+adminB)
	require.Equal(t, env.ExitOK, code, errs)
	seen := until(t, logB, `"event":"node-told"`)
	require.Eventually(t, func() bool {
		_, out, _ := program(t, "status", "--admin="+adminB)
		return strings.Contains(out, "2, 2 up")
	}, time.Minute, tick)
	if joined := `"event":"bootstrap-joined"`; !strings.Contains(seen, joined) { // the search says so in its own time
		until(t, logB, joined)
	}
}

// The contact point of a process stays when its node goes over to another cluster, and shows that one then (MEM-9).
func TestContactPointAfterGoingOver(t *testing.T) {
	file, contact := filepath.Join(t.TempDir(), "token"), port.Keep(t)
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	_, _, addr, _ := live(t)
	_, logB, own, adminB := live(t, "--admin-token-file="+file, "--contact="+contact, "--discovery=static",
		"--discovery-targets="+contact, "--expected=1", "--margin=100ms")
	until(t, logB, `"event":"bootstrap-joined"`)
	code, _, errs := program(t, "join", addr, "--token-file="+file, "--admin="+adminB)
	require.Equal(t, env.ExitOK, code, errs)
	until(t, logB, `"event":"node-goes-over"`)
	require.Eventually(t, func() bool {
		a, err := http.Get("http://" + contact + "/bootstrap/v1/contact")
		if err != nil {
			return false
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		return err == nil && a.StatusCode == 200 && strings.Contains(string(body), `"`+addr+`"`) &&
			strings.Contains(string(body), `"node":"`+own+`"`)
	}, time.Minute, tick)
}

// A node that is alone goes over to the cluster of another at one word; one with company does not (JOIN-2). The process
// and its admin interface stay. top shows both, and one that does not answer as such. SIGTERM has both leave.
func TestJoinAndTop(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	token := "--token-file=" + file
	a, logA, addr, adminA := live(t, "--admin-token-file="+file, "--demo")
	b, logB, _, adminB := live(t, "--admin-token-file="+file) // without types, which would hold it to younger clusters
	code, _, errs := program(t, "join", "nonsense", token, "--admin="+adminB)
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "host:port is wanted")
	code, out, errs := program(t, "join", addr, token, "--admin="+adminB)
	require.Equal(t, env.ExitOK, code, errs)
	require.Contains(t, out, "goes over to the cluster of "+addr)
	until(t, logB, `"event":"node-goes-over"`)
	require.Eventually(t, func() bool {
		_, out, _ := program(t, "status", "--admin="+adminB)
		return strings.Contains(out, "2, 2 up")
	}, time.Minute, tick)
	code, _, errs = program(t, "join", addr, token, "--admin="+adminB)
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "not alone")
	require.Eventually(t, func() bool {
		code, out, errs := program(t, "top", adminA, adminB, "127.0.0.1:1", "--every=100ms", "--rounds=2", "--json")
		require.Equal(t, env.ExitOK, code, errs)
		rounds := strings.Split(strings.TrimSpace(out), "\n")
		require.Len(t, rounds, 2)
		var r struct {
			Nodes []struct {
				State, Error    string
				Members, Shards float64
				Handled         *float64 `json:"handled_per_s"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(rounds[1]), &r))
		require.Len(t, r.Nodes, 3)
		require.NotEmpty(t, r.Nodes[2].Error)
		require.NotNil(t, r.Nodes[0].Handled)
		return r.Nodes[0].State == "ready" && r.Nodes[1].State == "ready" && r.Nodes[1].Members == 2
	}, time.Minute, tick)
	code, out, _ = program(t, "top", adminA, "127.0.0.1:1", "--every=100ms", "--rounds=1")
	require.Equal(t, env.ExitOK, code)
	require.Regexp(t, `(?m)^127.0.0.1:1 +no answer`, out)
	for _, end := range []struct {
		cmd *exec.Cmd
		log *bufio.Scanner
	}{{b, logB}, {a, logA}} {
		require.NoError(t, end.cmd.Process.Signal(syscall.SIGTERM))
		until(t, end.log, `"event":"node-left"`)
		require.NoError(t, end.cmd.Wait(), "exit code 0")
	}
}

// All nodes of a cluster go over to another one at one word, if all of them are named (MEM-9, PRT-6).
func TestJoinAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	token := "--token-file=" + file
	_, _, to, adminTo := live(t)
	_, _, a, adminA := live(t, "--admin-token-file="+file)
	_, _, _, adminB := live(t, "--admin-token-file="+file, "--seeds="+a)
	up := func(n int, at string) {
		require.Eventually(t, func() bool {
			_, out, _ := program(t, "status", "--admin="+at)
			return strings.Contains(out, fmt.Sprintf("%d, %d up", n, n))
		}, time.Minute, tick)
	}
	up(2, adminA)
	for args, want := range map[string]string{
		"--all=" + adminA:                                     "is not among --all",
		"--all=" + adminA + " --all=" + adminTo:               "of cluster",
		"--all=" + adminA + " --all=127.0.0.1:1":              "nobody has gone over",
		"--all=" + adminA + " --leave":                        "for one node",
		"--all=" + adminA + " --all=" + adminB + " --each=0s": "more than zero",
	} {
		code, _, errs := program(t, append([]string{"join", to, token}, strings.Fields(args)...)...)
		require.NotEqual(t, env.ExitOK, code, args)
		require.Contains(t, errs, want, args)
	}
	code, _, errs := program(t, "join", to, a, token, "--all="+adminA, "--all="+adminB)
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "is to go over")
	up(2, adminA)
	code, out, errs := program(t, "join", to, token, "--all="+adminB, "--all="+adminA)
	require.Equal(t, env.ExitOK, code, errs)
	require.Contains(t, out, "2 of 2: "+a+" is up in cluster ")
	up(3, adminTo)
}

// A process with a node that is marked down goes on as a new member, with --rejoin (PRT-6).
func TestRunRejoins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	a, logA, addr, adminA := live(t, "--rejoin")
	_, _, _, adminB := live(t, "--admin-token-file="+file, "--seeds="+addr)
	up := func(at string) {
		require.Eventually(t, func() bool {
			_, out, _ := program(t, "status", "--admin="+at)
			return strings.Contains(out, "2, 2 up")
		}, time.Minute, tick)
	}
	up(adminB)
	code, _, errs := program(t, "down", addr, "--token-file="+file, "--admin="+adminB)
	require.Equal(t, env.ExitOK, code, errs)
	until(t, logA, `"event":"node-comes-back"`)
	up(adminA)
	up(adminB)
	require.NoError(t, a.Process.Signal(syscall.SIGTERM))
	until(t, logA, `"event":"node-left"`)
	require.NoError(t, a.Wait(), "exit code 0")
}

// What a node, or a peer of it, has named is printed as one line of printable characters, whatever it is.
func TestHostileAnswers(t *testing.T) {
	evil, err := json.Marshal("\x1b[2J\nroot\tup\u202e\u009b31m")
	require.NoError(t, err)
	why, err := json.Marshal("\x1b[2J\nroot") // explain tells an error that is not the reason again
	require.NoError(t, err)
	answer := strings.NewReplacer("EVIL", string(evil), "WHY", string(why)).Replace(`{"state":EVIL,"reason":WHY,
		"since":"2026-01-01T00:00:00Z","self":EVIL,"cluster":EVIL,"leader":EVIL,
		"members":[{"addr":EVIL,"status":EVIL,"roles":[EVIL],"app_version":EVIL,"accused_by":[EVIL]}],
		"types":[{"name":EVIL,"mode":EVIL,"role":EVIL}],"coordinator":EVIL,"nodes":[{"node":EVIL}],"missing":[EVIL],
		"moves":[{"from":EVIL,"to":EVIL,"phase":EVIL}],"for_s":3,"blockers":[{"why":EVIL}],"id":EVIL,"status":EVIL,
		"decisions":[{"at":"2026-01-01T00:00:00Z","text":EVIL}],"accused_by":[EVIL],"message":EVIL,"error":EVIL,
		"node":EVIL,"fence":EVIL}`)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/v1/events":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: x\ndata: {\"text\":%s}\n\n", evil)
		case "/v1/leave":
			w.WriteHeader(http.StatusConflict)
			fallthrough
		default:
			_, _ = io.WriteString(w, answer)
		}
	}))
	defer s.Close()
	for args, lines := range map[string]int{"members": 2, "shards": 2, "shards x": 5, "explain": 4, "events": 1,
		"drain": 1, "status": 6 + 1, "down x --dry-run": 3, "leave": 1, "where x y": 5,
		"tell x y": 1} {
		code, out, errs := program(t, append(strings.Fields(args), "--admin="+s.URL)...)
		require.LessOrEqual(t, code, 1, args)
		require.Equal(t, lines, strings.Count(out+errs, "\n"), "%s: %q", args, out+errs)
		require.NotRegexp(t, "[\x00-\x09\x0b-\x1f\x7f-\u009f\u202e]", out+errs, args)
		require.Contains(t, out+errs, "root", args)
	}
}

// Where an entity lives whose owner is lost: the answer says when it is served again, and of a shard that no member has
// had yet that a message gives it a home (OPS-1, AVL-5).
func TestWhereIsSomethingLost(t *testing.T) {
	const outages = `{"outages":[{"member":"a#1","text":"a#1 is lost, served again from 10:03:51 on"},
		{"member":"b#2","text":"b#2 does not answer"}]}`
	for _, c := range []struct {
		home, members, has, hasNot string
		code                       int
	}{
		{`{"shard":3,"node":"a#1"}`, outages, "from 10:03:51 on", "b#2", 0},
		{`{"shard":3,"node":"a#1","answered":true}`, outages, "answers", "10:03:51", 0},
		{`{"shard":3}`, outages, "b#2 does not answer", "gives it a home", 1},
		{`{"shard":3}`, `{}`, "a message to it gives it a home", "10:03:51", 1},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			answer := c.members
			if strings.HasSuffix(q.URL.Path, "/home") {
				answer = c.home
			}
			_, _ = io.WriteString(w, answer)
		}))
		code, out, errs := program(t, "where", "x", "y", "--admin="+s.URL)
		s.Close()
		require.Equal(t, c.code, code, errs)
		require.Contains(t, out, c.has)
		require.NotContains(t, out, c.hasNot)
	}
}

// While something does not answer, explain, status and shards say when it will, though the node itself is ready
// (OPS-1, AVL-5).
func TestVerbsSayWhenWhatIsLostIsServedAgain(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		answer := map[string]string{"/health/ready": `{"state":"ready","since":"2026-01-02T03:04:05Z"}`,
			"/v1/convergence": `{"converged":true}`, "/v1/decisions": `{"decisions":[]}`,
			"/v1/members": `{"self":"b#2","outages":[{"member":"a#1","text":"a#1 is lost, served again from 10:03:51 on"}]}`,
			"/v1/types/x": `{"name":"x","shards":64,"homed":43}`,
			"/v1/types":   `{"types":[{"name":"x","shards":64,"hosted":43}]}`}[q.URL.Path]
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	for _, verb := range []string{"explain", "status", "shards x"} {
		code, out, errs := program(t, append(strings.Fields(verb), "--admin="+s.URL)...)
		require.Zero(t, code, "%s: %s", verb, errs)
		require.Contains(t, out, "a#1 is lost, served again from 10:03:51 on\n", verb)
	}
}

// kith dashboard serves one page for several nodes, says where, and ends on a signal; two of one name are refused.
func TestDashboard(t *testing.T) {
	n, err := kith.Start(t.Context(), kith.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	s, err := admin.Start(n, admin.Config{Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	cmd := envtest.Process(t, Name, "dashboard", "n1="+s.Addr().String(), "127.0.0.1:1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address, is := strings.CutPrefix(strings.TrimSpace(line), "dashboard ")
	require.True(t, is, line)
	a, err := http.Get(address + "v1/watch")
	require.NoError(t, err)
	events := bufio.NewScanner(a.Body)
	events.Buffer(nil, 4<<20)
	for events.Scan() { // until one has the node
		if text := events.Text(); strings.Contains(text, n.ID().String()) {
			require.Contains(t, text, `"name":"n1"`)
			require.Contains(t, text, `"name":"127.0.0.1:1"`)
			break
		}
	}
	require.NoError(t, a.Body.Close())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())

	code, _, stderr := program(t, "dashboard", "n1=a:1", "n1=b:1", "--listen=0.0.0.0:0")
	require.Equal(t, env.ExitUsage, code)
	require.Contains(t, stderr, "named twice")
	require.Contains(t, stderr, "loopback")
}

// A token goes to the node that was named and nowhere else, and no answer fills the memory of the client.
func TestTokenStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600))
	got := make(chan string, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got <- q.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"message":"left"}`)
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 307, 308} {
		sends := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, elsewhere.URL+q.URL.Path, status)
		}))
		code, _, errs := program(t, "leave", "--token-file="+file, "--admin="+sends.URL)
		sends.Close()
		require.Equal(t, env.ExitFailed, code)
		require.Contains(t, errs, http.StatusText(status))
	}
	require.Empty(t, got)
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(large.Close)
	code, _, errs := program(t, "members", "--admin="+large.URL)
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, "more than 4194304 bytes")
}

// What stands in place of a token is named, and nobody waits for it.
func TestTokenInATrap(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, trap := range []string{pipe, "/dev/zero"} {
		for _, args := range [][]string{{"leave", "--token-file=" + trap, "--admin=127.0.0.1:1"},
			{"members", "--ca=" + trap, "--admin=https://127.0.0.1:1"},
			{"run", "--admin=127.0.0.1:0", "--admin-token-file=" + trap}, {"run", "--config=" + trap}} {
			code, _, errs := program(t, args...)
			require.NotEqual(t, env.ExitOK, code)
			require.Contains(t, errs, "no regular file", "%q", args)
		}
	}
}

// Tests with real processes: signals, probes, leaves, ends by the cluster, and their exit codes (OPS-2).

package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/discovery"
)

// job is what a child process runs.
type job struct {
	Seeds  []string
	Kind   string // what its function does
	Rejoin bool
	Token  string        // the file of it
	Find   bool          // by bootstrap, in vain
	Join   time.Duration // Config.JoinTimeout
	Leave  time.Duration // Config.LeaveTimeout
}

const jobEnv = "SERVICE_JOB"

// TestMain runs a job when a test started this binary as a child.
func TestMain(m *testing.M) {
	if text := os.Getenv(jobEnv); text != "" {
		var j job
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			panic(err)
		}
		child(j)
	}
	os.Exit(m.Run())
}

type counter struct{ n int }

func (c *counter) Receive(m *kith.Context, _ []byte) error {
	c.n++
	return m.Reply(fmt.Append(nil, c.n))
}
func (c *counter) Stop(*kith.Context) {}

var counters = kith.EntityType{Name: "counter", Shards: 10,
	New: func(string, kith.Fence) kith.Handler { return &counter{} }}

var errBroken = errors.New("the store is broken")

func child(j job) {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	cfg := Config{Node: kith.Config{Name: "service", Seeds: j.Seeds, Logger: log, JoinTimeout: j.Join,
		LeaveTimeout: j.Leave, LatencyEvery: 1}, Admin: &admin.Config{Listen: "127.0.0.1:0"}, AdminToken: j.Token,
		Rejoin: j.Rejoin,
		Reload: func(*kith.Node) ([]string, error) { return []string{"something"}, nil }}
	if j.Find {
		none, _ := discovery.Static("127.0.0.1:1")
		cfg.Bootstrap = &bootstrap.Config{Discovery: none, Listen: "127.0.0.1:0", Expected: 3, Timeout: time.Second}
	}
	Main(cfg, func(ctx context.Context, n *kith.Node) error {
		region, err := n.Register(counters)
		if err != nil {
			return err
		}
		log.Info("serves", "node", n.Addr().String())
		switch j.Kind {
		case "returns":
			return nil
		case "fails":
			if err := n.Ready(ctx); err != nil {
				return err
			}
			return errBroken
		case "asks":
			for Ready(ctx); ctx.Err() == nil; {
				if _, err := region.Ask(ctx, "a", []byte("x")); err != nil {
					return err
				}
			}
			return nil
		case "panics":
			Ready(ctx)
			panic(errBroken)
		case "deaf": // does not return
			Ready(ctx)
			select {}
		}
		orders := make(chan string)
		go func() {
			for s := bufio.NewScanner(os.Stdin); s.Scan(); {
				orders <- s.Text()
			}
		}()
		for {
			select {
			case o := <-orders:
				NotReady(ctx, o)
				log.Info("has said")
			case <-ctx.Done():
				_, err := region.Ask(context.Background(), "late", []byte("x")) // the node is still there
				log.Info("serves no more", "cause", context.Cause(ctx).Error(), "asked", fmt.Sprint(err))
				return ctx.Err()
			}
		}
	})
}

// proc is a child that runs.
type proc struct {
	*exec.Cmd
	in          io.Writer
	log         *bufio.Scanner
	seen        strings.Builder
	addr, admin string
}

func start(t *testing.T, j job) *proc {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(j)
	require.NoError(t, err)
	p := &proc{Cmd: exec.Command(exe)}
	p.Env = append(os.Environ(), jobEnv+"="+string(text))
	p.in, err = p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	killer := time.AfterFunc(4*time.Minute, func() { _ = p.Process.Kill() })
	t.Cleanup(func() { killer.Stop(); _ = p.Process.Kill() })
	p.log = bufio.NewScanner(out)
	p.log.Buffer(nil, 1<<20)
	return p
}

// up waits until the function and the admin interface are there.
func up(t *testing.T, j job) *proc {
	p := start(t, j)
	for p.addr == "" || p.admin == "" {
		line := p.until(t, `"msg":"`)
		for re, into := range map[*regexp.Regexp]*string{servesAt: &p.addr, adminAt: &p.admin} {
			if m := re.FindStringSubmatch(line); m != nil {
				*into = m[1]
			}
		}
	}
	return p
}

var (
	servesAt = regexp.MustCompile(`"msg":"serves","node":"([^"]+)"`)
	adminAt  = regexp.MustCompile(`"event":"admin-started","address":"([^"]+)"`)
)

// until reads on to the line with the text.
func (p *proc) until(t *testing.T, text string) string {
	t.Helper()
	for p.log.Scan() {
		p.seen.WriteString(p.log.Text() + "\n")
		if strings.Contains(p.log.Text(), text) {
			return p.log.Text()
		}
	}
	require.FailNow(t, "the process ended before it said "+text, p.seen.String())
	return ""
}

// saw is until for what may have been said already.
func (p *proc) saw(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(p.seen.String(), text) {
		p.until(t, text)
	}
}

// ends waits for the end of the process, and returns its exit code and all that it said.
func (p *proc) ends(t *testing.T) (int, string) {
	t.Helper()
	for p.log.Scan() {
		p.seen.WriteString(p.log.Text() + "\n")
	}
	_ = p.Wait()
	require.NotEqual(t, -1, p.ProcessState.ExitCode(), "a signal ended it: %s", p.seen.String())
	return p.ProcessState.ExitCode(), p.seen.String()
}

func (p *proc) tell(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, p.Process.Signal(sig))
}

// asks asks the admin interface.
func (p *proc) asks(t *testing.T, path string) (int, string) {
	t.Helper()
	code, text, err := p.tries(path)
	require.NoError(t, err)
	return code, text
}

// tries is asks where the interface may not be open: between two nodes of a process.
func (p *proc) tries(path string) (int, string, error) {
	a, err := (&http.Client{Timeout: time.Minute}).Get("http://" + p.admin + path)
	if err != nil {
		return 0, "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return a.StatusCode, string(text), err
}

// becomes waits until the probe says so.
func (p *proc) becomes(t *testing.T, status int) string {
	t.Helper()
	text := ""
	require.Eventually(t, func() bool {
		code, body, err := p.tries("/health/ready")
		text = body
		return err == nil && code == status
	}, 2*time.Minute, 10*time.Millisecond)
	return text
}

// TestSignalsEndAService: SIGTERM and SIGINT have it leave, with its function first; a second SIGTERM changes nothing
// and a SIGINT behind either ends it at once, also when its function never returns (OPS-2).
func TestSignalsEndAService(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := up(t, job{})
		p.tell(t, sig)
		code, log := p.ends(t)
		require.Equal(t, kith.ExitOK, code, log)
		require.Contains(t, log, `"msg":"serves no more","cause":"service: the node leaves","asked":"<nil>"`)
		require.Contains(t, log, "node-leaving") // of another logger: where it stands says nothing
		require.Less(t, strings.Index(log, "serves no more"), strings.Index(log, "node-left"))
	}
	p := up(t, job{Kind: "deaf"})
	p.becomes(t, http.StatusOK)
	p.tell(t, syscall.SIGTERM)
	p.until(t, "node-leaving")
	code, text := p.asks(t, "/health/ready") // its function is waited for
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, text, "leaving")
	p.tell(t, syscall.SIGTERM)
	p.until(t, "node-told-again")
	p.tell(t, syscall.SIGINT)
	end, log := p.ends(t)
	require.Equal(t, kith.ExitInterrupted, end, log)
	require.Contains(t, log, "node-interrupted")
	require.NotContains(t, log, "node-left")
}

// TestAFunctionThatHangsHoldsUpNobody: the phase of the shutdown passes, the node leaves, the log says why.
func TestAFunctionThatHangsHoldsUpNobody(t *testing.T) {
	p := up(t, job{Kind: "deaf"})
	p.tell(t, syscall.SIGTERM)
	code, log := p.ends(t)
	require.Equal(t, kith.ExitOK, code, log)
	require.Contains(t, log, kith.PhaseServiceRequestsDone)
	require.Contains(t, log, "node-left")
}

// TestAFunctionThatHangsKeepsNoProcess: nor does it keep a process after its node has ended otherwise than by a signal
// (MEM-8, OPS-2).
func TestAFunctionThatHangsKeepsNoProcess(t *testing.T) {
	p := up(t, job{Kind: "deaf"})
	other, err := kith.Start(t.Context(), kith.Config{Name: "service", Seeds: []string{p.addr}})
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Ready(t.Context()))
	again := up(t, job{Kind: "deaf", Rejoin: true, Leave: time.Second, Seeds: []string{p.addr}})
	require.Eventually(t, func() bool { return other.Down(t.Context(), again.addr) == nil }, 2*time.Minute,
		10*time.Millisecond) // once it is a member
	code, log := again.ends(t)
	require.Equal(t, kith.ExitEnded, code, log)
	require.Contains(t, log, errServes.Error(), "the next node has none to serve it")

	require.NoError(t, other.Down(t.Context(), p.addr))
	code, log = p.ends(t)
	require.Equal(t, kith.ExitEnded, code, log)

	file := t.TempDir() + "/token"
	require.NoError(t, os.WriteFile(file, []byte("the-token-of-this-test"), 0o600))
	p = up(t, job{Kind: "deaf", Token: file})
	p.becomes(t, http.StatusOK)
	q, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+p.admin+"/v1/leave", nil)
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer the-token-of-this-test")
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Less(t, a.StatusCode, 300)
	code, log = p.ends(t)
	require.Equal(t, kith.ExitOK, code, log)
}

// TestAFunctionThatPanics: it is an error like others: the node leaves, and a supervisor starts the process again,
// which it does not after the exit code of a Go program that panics, 2 (OPS-2).
func TestAFunctionThatPanics(t *testing.T) {
	code, log := start(t, job{Kind: "panics"}).ends(t)
	require.Equal(t, kith.ExitFailed, code, log)
	require.Contains(t, log, "service_test.go", "where it was")
	require.Contains(t, log, "node-left")
	require.Contains(t, log, errBroken.Error())
}

// TestAnAddressThatIsTaken: an admin interface that cannot open its port ends the program; its function has returned by
// then.
func TestAnAddressThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var why kith.ShutdownReason
	err = Run(t.Context(), Config{Admin: &admin.Config{Listen: l.Addr().String()}},
		func(ctx context.Context, n *kith.Node) error {
			<-ctx.Done()
			why = n.ShutdownReason()
			return nil
		})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.Equal(t, kith.ExitUsage, kith.ExitCode(err))
	require.Equal(t, kith.ReasonSignal, why, "it leaves, with its function")
}

// TestReadinessIsTheFunctions: a node that is Up is not ready before its function says so, and not while that takes it
// back; one with a function that returned is (OPS-1).
func TestReadinessIsTheFunctions(t *testing.T) {
	p := up(t, job{})
	require.Contains(t, p.becomes(t, http.StatusServiceUnavailable), "state")
	p.saw(t, "member-up")
	require.Eventually(t, func() bool {
		_, text := p.asks(t, "/health/ready")
		return strings.Contains(text, starts)
	}, 2*time.Minute, 10*time.Millisecond)
	say := func(why string) {
		_, err := io.WriteString(p.in, why+"\n")
		require.NoError(t, err)
		p.until(t, "has said")
	}
	say("")
	p.becomes(t, http.StatusOK)
	say("the store does not answer")
	code, text := p.asks(t, "/health/ready")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, text, "the store does not answer")
	code, _ = p.asks(t, "/health/alive")
	require.Equal(t, http.StatusOK, code)
	say("")
	p.becomes(t, http.StatusOK)

	q := up(t, job{Kind: "returns", Seeds: []string{p.addr}})
	q.becomes(t, http.StatusOK)
	for _, p := range []*proc{p, q} {
		p.tell(t, syscall.SIGTERM)
		code, log := p.ends(t)
		require.Equal(t, kith.ExitOK, code, log)
	}
}

// TestOneRecorderForAll: what handlers take is in the metrics and on the dashboard, by the one configuration.
func TestOneRecorderForAll(t *testing.T) {
	p := up(t, job{Kind: "asks"})
	p.becomes(t, http.StatusOK)
	text, counted := "", regexp.MustCompile(`kith_handler_seconds_count\{type="counter"\} [1-9]`)
	require.Eventually(t, func() bool { // it may be ready before it has asked
		_, text = p.asks(t, "/metrics")
		return counted.MatchString(text)
	}, 2*time.Minute, 100*time.Millisecond)
	require.Contains(t, text, "kith_ready 1")
	require.Eventually(t, func() bool { // it tells of the time since the last look
		_, text = p.asks(t, "/v1/rates")
		return strings.Contains(text, `"counter"`) && strings.Contains(text, `"p99`)
	}, 2*time.Minute, 100*time.Millisecond)
}

// TestHangupReloads: the token is read anew, the function of the program is called; a closed log ends nobody (OPS-2).
func TestHangupReloads(t *testing.T) {
	file := t.TempDir() + "/token"
	write := func(token string) { require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600)) }
	write("the-first-token-of-it")
	p := up(t, job{Token: file})
	drain := func(token string) int {
		q, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+p.admin+"/v1/rebalancing/resume", nil)
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(q)
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		return a.StatusCode
	}
	p.saw(t, "member-up")
	require.Equal(t, http.StatusOK, drain("the-first-token-of-it"))
	write("the-second-token-of-it")
	p.tell(t, syscall.SIGHUP)
	require.Contains(t, p.until(t, "node-reloaded"), `"changed":["something"],"certificates":false,"token":true`)
	require.Equal(t, http.StatusUnauthorized, drain("the-first-token-of-it"))
	require.Equal(t, http.StatusOK, drain("the-second-token-of-it"))
	write("short")
	p.tell(t, syscall.SIGHUP)
	require.Contains(t, p.until(t, "node-reload-failed"), file)
	require.Equal(t, http.StatusOK, drain("the-second-token-of-it"))
	p.tell(t, syscall.SIGPIPE)
	p.tell(t, syscall.SIGTERM)
	code, log := p.ends(t)
	require.Equal(t, kith.ExitOK, code, log)
}

// TestEndsByTheCluster: each has its exit code, and the function of the program has ended before the process (MEM-8).
func TestEndsByTheCluster(t *testing.T) {
	p := up(t, job{Kind: ""})
	other, err := kith.Start(t.Context(), kith.Config{Name: "service", Seeds: []string{p.addr}})
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Ready(t.Context()))

	again := up(t, job{Rejoin: true, Seeds: []string{other.Addr().String()}})
	require.Eventually(t, func() bool { return other.Down(t.Context(), again.addr) == nil }, 2*time.Minute,
		10*time.Millisecond) // once it is a member
	again.until(t, `"msg":"serves no more"`)
	again.until(t, `"msg":"serves","node"`) // the next one, at the same address
	again.tell(t, syscall.SIGTERM)
	code, log := again.ends(t)
	require.Equal(t, kith.ExitOK, code, log)

	require.NoError(t, other.Down(t.Context(), p.addr))
	code, log = p.ends(t)
	require.Equal(t, kith.ExitEnded, code, log)
	require.Contains(t, log, "the cluster ended this node: kith: this node was marked down")
	// the shutdown may have begun a moment before the node's error can be read
	require.Regexp(t, `"msg":"serves no more","cause":"(kith: this node was marked down|service: the node ends: downed)`,
		log)

	code, log = start(t, job{Seeds: []string{"127.0.0.1:1"}, Join: 200 * time.Millisecond}).ends(t)
	require.Equal(t, kith.ExitNotAdmitted, code, log)
	code, log = start(t, job{Find: true}).ends(t)
	require.Equal(t, kith.ExitNoCluster, code, log)
	code, log = start(t, job{Join: -1}).ends(t)
	require.Equal(t, kith.ExitUsage, code, log)
	code, log = start(t, job{Kind: "fails"}).ends(t)
	require.Equal(t, kith.ExitFailed, code, log)
	require.Contains(t, log, "\n"+errBroken.Error())
	require.Contains(t, log, "node-left", "it leaves in order")
}

// TestComesBackWhenItsAsksFail: a function may find out of the end of its node before anybody else, by an ask that
// fails and which it returns; the next node comes all the same (MEM-8).
func TestComesBackWhenItsAsksFail(t *testing.T) {
	other, err := kith.Start(t.Context(), kith.Config{Name: "service"})
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Ready(t.Context()))
	again := up(t, job{Kind: "asks", Rejoin: true, Seeds: []string{other.Addr().String()}})
	for range 2 { // each next one waits longer
		again.becomes(t, http.StatusOK)
		require.NoError(t, other.Down(t.Context(), again.addr))
		again.until(t, `"msg":"serves","node"`)
	}
}

// TestZeroIsSafe: the zero value is a cluster of one with nothing else open, and the end of the context has it leave.
func TestZeroIsSafe(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, Run(ctx, Config{}, func(of context.Context, n *kith.Node) error {
		defer cancel()
		region, err := n.Register(counters)
		if err != nil {
			return err
		}
		Ready(of)
		_, err = region.Ask(of, "a", []byte("x"))
		return err
	}))
	Ready(t.Context()) // of nobody: nothing happens
}

// TestAllFaults: Validate returns them joined, each the error of its package too, and Run starts nothing.
func TestAllFaults(t *testing.T) {
	cfg := Config{Node: kith.Config{Listen: "nowhere", JoinTimeout: -1}, Admin: &admin.Config{Streams: -1},
		AdminToken: t.TempDir() + "/none"}
	cfg.Metrics.Types = -1
	err := cfg.Validate()
	for _, want := range []string{"Listen", "JoinTimeout", "Streams", "AdminToken", "Types"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, err, kith.ErrBadConfig)
	require.ErrorIs(t, err, admin.ErrBadConfig)
	require.Equal(t, kith.ExitUsage, kith.ExitCode(err))
	err = Run(t.Context(), cfg, func(context.Context, *kith.Node) error { panic("it was started") })
	require.ErrorIs(t, err, kith.ErrBadConfig)
	require.ErrorIs(t, Config{AdminToken: "x"}.Validate(), kith.ErrBadConfig)
	err = Config{Node: kith.Config{Seeds: []string{"127.0.0.1:1"}}, Bootstrap: &bootstrap.Config{}}.Validate()
	require.ErrorIs(t, err, bootstrap.ErrBadConfig)
	require.Equal(t, kith.ExitUsage, kith.ExitCode(err))
}

// TestExitCodes: the code of each end; kith run documents the same.
func TestExitCodes(t *testing.T) {
	ends := func(k kith.EndKind) error { return fmt.Errorf("x: %w", &kith.EndedError{Kind: k}) }
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, kith.ExitOK}, {&kith.EndedError{Kind: kith.EndLeft}, kith.ExitOK},
		{errors.Join(&kith.EndedError{Kind: kith.EndLeft}, errBroken), kith.ExitFailed},
		{errBroken, kith.ExitFailed}, {ends(kith.EndClosed), kith.ExitFailed},
		{ends(kith.EndDowned), kith.ExitEnded}, {ends(kith.EndRemoved), kith.ExitEnded},
		{ends(kith.EndIsolated), kith.ExitEnded}, {ends(kith.EndDuplicate), kith.ExitEnded},
		{ends(kith.EndJoinTimeout), kith.ExitNotAdmitted}, {ends(kith.EndJoinRefused), kith.ExitRefused},
		{errors.Join(ends(kith.EndJoinTimeout), &bootstrap.TimeoutError{}), kith.ExitNoCluster},
		{fmt.Errorf("leave: %w", errors.Join(&kith.AbandonedError{}, &kith.LostStatesError{})), kith.ExitStatesLost},
		{&kith.AbandonedError{}, kith.ExitFailed}, {kith.ErrInterrupted, kith.ExitInterrupted},
		{fmt.Errorf("%w: x", kith.ErrBadConfig), kith.ExitUsage},
	} {
		require.Equal(t, c.code, kith.ExitCode(c.err), "%v", c.err)
	}
}

// TestWhatAFunctionHasReturned is heard, also when nothing waits for it any more.
func TestWhatAFunctionHasReturned(t *testing.T) {
	l := &life{over: make(chan struct{}), stop: func(error) {}, err: errBroken}
	close(l.over)
	for range 1000 {
		late, err := l.end(t.Context(), 0)
		require.False(t, late)
		require.ErrorIs(t, err, errBroken)
	}
}

// A process that is killed with all its connections takes no other with it: real processes, this test binary run again.

package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// beChild makes this process one that a test started: a node that hosts or sends.
const beChild = "KITH_TEST_CHILD"

// child is that process. It says its address, then how many messages were handled so far for every line it reads, and
// ends with its input.
func child(spec string) {
	role, seed, _ := strings.Cut(spec, " ")
	switch role {
	case "keep":
		keeper(seed)
		return
	case "lone":
		loner(seed)
		return
	case "watch":
		watcher(seed)
		return
	case "subjects":
		watchedHost(seed)
		return
	case "owner":
		cfg := dying()
		cfg.Seeds, cfg.Roles = []string{seed}, []string{"host"}
		n, err := kith.Start(context.Background(), cfg)
		if err == nil {
			_, err = n.Register(mortal())
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(n.Addr())
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	var handled atomic.Int64
	busy := func(*kith.Context, []byte) error { // long enough that a loop is always behind what has arrived
		for begin := time.Now(); time.Since(begin) < 20*time.Microsecond; {
		}
		handled.Add(1)
		return nil
	}
	cfg := kith.Config{Name: "kill", Membership: quick(), Resolver: kith.Resolver{Strategy: kith.ResolverOff}}
	if role == "send" {
		cfg.Seeds = []string{seed}
	} else {
		cfg.Roles = []string{"host"}
	}
	n, err := kith.Start(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	var regions []*kith.Region
	for _, mode := range []kith.Mode{kith.Inline, kith.Worker, kith.Blocking} {
		r, err := n.Register(kith.EntityType{Name: mode.String(), Role: "host", Shards: 16, Mode: mode,
			New: func(string, kith.Fence) kith.Handler { return &actor{receive: busy} }})
		if err != nil {
			panic(err)
		}
		regions = append(regions, r)
	}
	fmt.Println(n.Addr())
	if role == "send" {
		for i, r := range append(regions, regions[0], regions[0]) {
			go func() {
				payload := make([]byte, 200)
				for k := i; ; k++ {
					_ = r.TellWait(context.Background(), strconv.Itoa(k%200), payload)
				}
			}()
		}
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(handled.Load())
	}
}

// kid is one such process.
type kid struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.Writer
	out  *bufio.Scanner
	addr string
	err  strings.Builder
}

func spawn(t *testing.T, spec string) *kid {
	self, err := os.Executable()
	require.NoError(t, err)
	k := &kid{t: t, cmd: exec.Command(self)}
	k.cmd.Env = append(os.Environ(), beChild+"="+spec)
	k.cmd.Stderr = &k.err
	k.in, err = k.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := k.cmd.StdoutPipe()
	require.NoError(t, err)
	k.out = bufio.NewScanner(out)
	require.NoError(t, k.cmd.Start())
	t.Cleanup(k.kill)
	k.addr = k.line()
	return k
}

func (k *kid) line() string {
	if !k.out.Scan() {
		_ = k.cmd.Wait()
		require.FailNow(k.t, "the process has ended", "%s", k.err.String())
	}
	return k.out.Text()
}

// handled returns how many messages it has handled; a process that has ended fails the test.
func (k *kid) handled() int {
	_, _ = fmt.Fprintln(k.in)
	n, err := strconv.Atoi(k.line())
	require.NoError(k.t, err)
	return n
}

// kill is kill -9.
func (k *kid) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}

// A sender is killed in the middle of its traffic, again and again: the host of its entities, of all modes, lives and
// serves the next one (CARD-3).
func TestKilledSender(t *testing.T) {
	host := spawn(t, "host")
	for range 4 {
		before := host.handled()
		sender := spawn(t, "send "+host.addr)
		eventually(t, func() bool { return host.handled() > before+2000 }, "traffic")
		sender.kill()
		seen := host.handled()
		eventually(t, func() bool { // what was in its sockets has been handled
			last := seen
			seen = host.handled()
			return seen == last
		}, "quiet")
	}
}

// dying are the settings of nodes whose process death is proof. Nobody is ever removed.
func dying() kith.Config {
	return kith.Config{Name: "dying", Membership: quick(), Resolver: kith.Resolver{Strategy: kith.ResolverOff},
		Sharding: kith.Sharding{ProcessDeathIsProof: true}}
}

// mortal is the type of entities that answer.
func mortal() kith.EntityType {
	return kith.EntityType{Name: "owned", Role: "host", Shards: 16,
		New: func(string, kith.Fence) kith.Handler {
			return &actor{receive: func(c *kith.Context, b []byte) error { return c.Reply(b) }}
		}}
}

// An ask that waits for a connection to its entity's owner ends when that is killed, before it is removed, and the next
// one finds the new owner (SHD-11).
func TestAsksOfAKilledOwnerEnd(t *testing.T) {
	ctx := t.Context()
	n, err := kith.Start(ctx, dying())
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	r, err := n.Register(mortal())
	require.NoError(t, err)
	kids := []*kid{spawn(t, "owner "+n.Addr().String()), spawn(t, "owner "+n.Addr().String())}
	const askers = 64
	homes := func() map[string]bool {
		seen := map[string]bool{}
		for i := range askers {
			if h, err := r.Home(strconv.Itoa(i)); err == nil && h.Node.Inc != 0 {
				seen[h.Node.Addr.String()] = true
			}
		}
		return seen
	}
	asks := func(i int) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		_, err := r.Ask(ctx, strconv.Itoa(i), []byte("x"))
		return err
	}
	eventually(t, func() bool {
		for i := range askers {
			_ = asks(i)
		}
		return len(homes()) == len(kids)
	}, "both own shards")
	var killed atomic.Bool
	ended := make(chan error, askers)
	for i := range askers {
		go func() {
			for { // until one is answered that began behind the kill
				behind := killed.Load()
				if err := asks(i); err == nil && behind || errors.Is(err, context.DeadlineExceeded) {
					ended <- err
					return
				}
			}
		}()
	}
	kids[1].kill()
	killed.Store(true)
	for range askers {
		require.NoError(t, <-ended)
	}
}

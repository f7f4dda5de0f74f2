// Watches while owners are killed: real processes, which say themselves what began and ended in them.

package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// killable are the settings of these nodes: death of a process is proof, and no pause is.
func killable(role string, seeds ...string) kith.Config {
	cfg := dying()
	cfg.Name, cfg.Roles, cfg.Seeds = "watches", []string{role}, seeds
	cfg.Sharding.TakeoverTime, cfg.Sharding.RebalanceInterval = never, -1
	return cfg
}

// witnessed is a subject that says on its process's output when it begins and when it ends, before anybody is told.
type witnessed struct{ typ, id, fence string }

func (s *witnessed) says(what string, more ...any) {
	fmt.Println(append([]any{what, s.typ, s.id, s.fence}, more...)...)
}

func (s *witnessed) Receive(c *kith.Context, payload []byte) error {
	switch string(payload) {
	case "go":
		c.Passivate()
	case "panic":
		s.says("end", kith.EndedPanicked)
		panic("as the test wants")
	}
	if c.Asked() {
		return c.Reply(nil)
	}
	return nil
}

func (s *witnessed) Stop(c *kith.Context) {
	switch c.StopReason() {
	case kith.StopMoved:
		s.says("end", kith.EndedMoved)
	case kith.StopLeaving:
		s.says("end", kith.EndedLeft)
	default:
		s.says("end", kith.EndedPassivated)
	}
}

// witnesses are the types of subjects, one for each mode.
func witnesses() (list []kith.EntityType) {
	for _, mode := range modes {
		name := mode.String()
		list = append(list, kith.EntityType{Name: name, Shards: 8, Role: "host", Mode: mode,
			New: func(id string, f kith.Fence) kith.Handler {
				s := &witnessed{name, id, f.String()}
				s.says("begin")
				return s
			}})
	}
	return list
}

// watchedHost is a process that hosts subjects. For each line that it reads it says how many watches there are on them.
func watchedHost(seed string) {
	n, err := kith.Start(context.Background(), killable("host", seed))
	if err != nil {
		panic(err)
	}
	for _, t := range witnesses() {
		if _, err := n.Register(t); err != nil {
			panic(err)
		}
	}
	fmt.Println(n.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println("watchers", n.Stats().Watches.Watchers)
	}
}

// host is such a process, and what it has said.
type host struct {
	*kid
	watchers chan int
	read     chan struct{} // closed when it has said its last
	killed   bool
}

// lived is a subject under a fence.
type lived struct{ typ, id, fence string }

// watchRun is a run: hosts that are killed, subjects that end, and watchers on a node of its own.
type watchRun struct {
	t       *testing.T
	rng     *rand.Rand
	node    *kith.Node
	types   []*kith.Region // of subjects
	keepers *kith.Region   // of watchers
	hosts   []*host

	mu     sync.Mutex
	on     map[lived]*host
	ended  map[string]int // by subject, fence and cause
	live   map[[2]string]map[lived]bool
	told   map[string]map[uint64]bool // instances, by subject, fence and cause
	causes map[kith.EndCause]int
	stands map[*lookout]map[[2]string]bool
	faults []string
}

// lookout is a watcher.
type lookout struct {
	b     *watchRun
	id    string
	heard map[string]bool
}

func (k *lookout) Receive(c *kith.Context, payload []byte) error {
	if e, ok := c.Ended(); ok {
		k.b.hears(k, e)
		return nil
	}
	verb, rest, _ := strings.Cut(string(payload), " ")
	typ, id, _ := strings.Cut(rest, " ")
	switch verb {
	case "watch":
		if err := c.Watch(typ, id); err != nil {
			return err
		}
		k.b.mu.Lock()
		defer k.b.mu.Unlock()
		k.b.stands[k][[2]string{typ, id}] = true
	case "unwatch":
		c.Unwatch(typ, id)
		k.b.mu.Lock()
		defer k.b.mu.Unlock()
		delete(k.b.stands[k], [2]string{typ, id})
	case "go":
		c.Passivate()
	}
	return c.Reply(nil)
}

// Stop ends what it watches, silently.
func (k *lookout) Stop(*kith.Context) {
	k.b.mu.Lock()
	defer k.b.mu.Unlock()
	delete(k.b.stands, k)
}

func (b *watchRun) keeps(id string, _ kith.Fence) kith.Handler {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := &lookout{b, id, map[string]bool{}}
	b.stands[k] = map[[2]string]bool{}
	return k
}

// hears judges what a watcher is told: it watches that subject, and has not heard of this instance.
func (b *watchRun) hears(k *lookout, e kith.Ended) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := [2]string{e.Type, e.ID}
	if !b.stands[k][of] {
		b.faults = append(b.faults, fmt.Sprintf("%s does not watch, and hears of %+v", k.id, e))
	}
	delete(b.stands[k], of)
	b.causes[e.Cause]++
	if e.Instance == 0 {
		return
	}
	one := fmt.Sprintf("%s/%s %s %d", e.Type, e.ID, e.Fence, e.Instance)
	if k.heard[one] {
		b.faults = append(b.faults, fmt.Sprintf("%s hears again of %+v", k.id, e))
	}
	k.heard[one] = true
	key := fmt.Sprintf("%v %v", lived{e.Type, e.ID, e.Fence.String()}, e.Cause)
	if b.told[key] == nil {
		b.told[key] = map[uint64]bool{}
	}
	b.told[key][e.Instance] = true
}

// hires starts a process that hosts.
func (b *watchRun) hires() {
	h := &host{kid: spawn(b.t, "subjects "+b.node.Addr().String()), watchers: make(chan int, 1), read: make(chan struct{})}
	b.hosts = append(b.hosts, h)
	go func() {
		defer close(h.read)
		for h.out.Scan() {
			b.takes(h, strings.Fields(h.out.Text()))
		}
	}()
}

// takes takes note of what a process says.
func (b *watchRun) takes(h *host, words []string) {
	if words[0] == "watchers" {
		n, _ := strconv.Atoi(words[1])
		h.watchers <- n
		return
	}
	o := lived{words[1], words[2], words[3]}
	of := [2]string{o.typ, o.id}
	b.mu.Lock()
	defer b.mu.Unlock()
	if words[0] == "begin" {
		if b.on[o] = h; b.live[of] == nil {
			b.live[of] = map[lived]bool{}
		}
		b.live[of][o] = true
		return
	}
	b.ended[fmt.Sprintf("%v %s", o, words[4])]++
	delete(b.live[of], o)
}

// lives returns the hosts that have not been killed.
func (b *watchRun) lives() (list []*host) {
	for _, h := range b.hosts {
		if !h.killed {
			list = append(list, h)
		}
	}
	return list
}

// kills kills a host with -9, and has what was on it forgotten. Its last words are read first.
func (b *watchRun) kills() *host {
	list := b.lives()
	h := list[b.rng.IntN(len(list))]
	require.NoError(b.t, h.cmd.Process.Kill())
	<-h.read
	_ = h.cmd.Wait()
	h.killed = true
	b.mu.Lock()
	defer b.mu.Unlock()
	for o, on := range b.on { // each on its own: the order does not show
		if on == h {
			delete(b.live[[2]string{o.typ, o.id}], o)
		}
	}
	return h
}

// drawn is a subject.
func (b *watchRun) drawn() (r *kith.Region, typ, id string) {
	n := b.rng.IntN(len(modes))
	return b.types[n], modes[n].String(), fmt.Sprint("s", b.rng.IntN(12))
}

// plays does something, which may fail while owners are being replaced.
func (b *watchRun) plays() {
	r, typ, id := b.drawn()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	keeper := fmt.Sprint("w", b.rng.IntN(5))
	tells := func(verb string) {
		_, err := b.keepers.Ask(within(b.t), keeper, []byte(verb+" "+typ+" "+id))
		require.NoError(b.t, err)
	}
	switch b.rng.IntN(16) {
	case 8, 9, 10, 11, 12:
		_, _ = r.Ask(ctx, id, []byte("live"))
	case 3:
		_ = r.Tell(id, []byte("go"))
	case 4:
		_ = r.Tell(id, []byte("panic"))
	case 0, 5:
		list := b.lives()
		to := list[b.rng.IntN(len(list))]
		for _, m := range b.node.View().Members {
			if m.ID.Addr.String() == to.addr {
				_ = r.Move(ctx, r.Shard(id), m.ID)
			}
		}
	case 6:
		tells("unwatch")
	case 7:
		if b.rng.IntN(4) == 0 {
			tells("go")
		}
	default:
		tells("watch")
	}
}

// wrong says what is not yet as it has to be when nothing happens any more: "" when all is told.
func (b *watchRun) wrong() string {
	sum := 0
	for _, h := range b.lives() {
		_, err := fmt.Fprintln(h.in)
		require.NoError(b.t, err)
		select {
		case n := <-h.watchers:
			sum += n
		case <-h.read:
			require.FailNow(b.t, "the process has ended", "%s", h.err.String())
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	stands := 0
	for k, of := range b.stands { // each on its own: the order shows in the text alone
		for o := range of {
			if stands++; len(b.live[o]) == 0 {
				return fmt.Sprintf("%s is not told that %s has ended or was none", k.id, o)
			}
		}
	}
	if standing := b.node.Stats().Watches.Standing; stands != standing || sum != standing {
		return fmt.Sprintf("%d watches stand here, %d as the node says, and there are %d on subjects", stands, standing, sum)
	}
	return ""
}

// settles waits until all is told that has to be, and demands that nothing else was.
func (b *watchRun) settles() {
	b.t.Helper()
	last := ""
	for end := time.Now().Add(patience); ; {
		if last = b.wrong(); last == "" {
			break
		}
		require.True(b.t, time.Now().Before(end), last)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.faults)
	for key, instances := range b.told { // each on its own
		if !strings.HasSuffix(key, fmt.Sprint(kith.EndedLost)) {
			require.LessOrEqual(b.t, len(instances), b.ended[key], "ends told of %s", key)
		}
	}
}

// TestWatchesOfKilledOwners: hosts are killed with -9, shards move, subjects passivate and panic, and watchers come and
// go. Each watch is told once, of each (subject, fence, instance) once; what is told is what the subjects' processes
// said; and in the end no watch stands on a subject that is gone (SHD-12).
func TestWatchesOfKilledOwners(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	n := start(t, logger(t), killable("watch"))
	b := &watchRun{t: t, rng: rand.New(rand.NewPCG(seed, 1)), node: n, on: map[lived]*host{},
		ended: map[string]int{}, live: map[[2]string]map[lived]bool{}, told: map[string]map[uint64]bool{},
		causes: map[kith.EndCause]int{}, stands: map[*lookout]map[[2]string]bool{}}
	for _, typ := range witnesses() {
		r, err := n.Register(typ)
		require.NoError(t, err)
		b.types = append(b.types, r)
	}
	var err error
	b.keepers, err = n.Register(kith.EntityType{Name: "keeper", Shards: 4, Role: "watch", New: b.keeps})
	require.NoError(t, err)
	for range 3 {
		b.hires()
	}
	full := func(v *kith.View) bool { return v.CountUp() == 4 }
	awaitView(t, n, full)
	for round := 0; round < 3 || b.untold(); round++ {
		require.Less(t, round, 50, "causes that nobody was told of: %v", b.causes)
		for range 150 {
			b.plays()
		}
		h := b.kills()
		for range 20 {
			b.plays()
		}
		require.NoError(t, n.Down(within(t), h.addr))
		b.hires()
		awaitView(t, n, full) // the next kill must find a member: nobody downs one that dies while it joins
		b.settles()
	}
}

// untold reports whether one of the causes that are drawn has not been told yet.
func (b *watchRun) untold() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return min(b.causes[kith.EndedPassivated], b.causes[kith.EndedPanicked], b.causes[kith.EndedMoved],
		b.causes[kith.EndedLost], b.causes[kith.EndedNone]) == 0
}

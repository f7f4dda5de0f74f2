// Tests of a store on several nodes: how it begins, which disks it knows, and which one has the place of another.

package quorum

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// cluster is a few sites; nodes that are cut off hear nothing.
type cluster struct {
	t     *testing.T
	cfg   Config
	now   time.Duration
	incs  uint64
	disks []*MemoryEngine
	sites []*Site
	ids   []peer.ID
	cut   map[int]bool
	full  bool // a disk may be full
	done  []Outcome
}

func newCluster(t *testing.T, cfg Config, n int) *cluster {
	c := &cluster{t: t, cfg: cfg, cut: map[int]bool{}}
	for range n {
		c.add()
	}
	return c
}

// add adds a node with an empty disk.
func (c *cluster) add() {
	c.disks, c.sites, c.ids = append(c.disks, Memory()), append(c.sites, nil), append(c.ids, peer.ID{})
	c.start(len(c.sites) - 1)
}

func (c *cluster) start(i int) {
	c.incs++
	c.ids[i] = id(i, c.incs)
	rng := rand.New(rand.NewPCG(c.incs, 7))
	s, err := OpenSite(c.cfg, 3, "c/s", c.ids[i], c.disks[i], wall+c.now.Milliseconds(), rng)
	require.NoError(c.t, err)
	c.sites[i] = s
}

// views gives all the members: those that run and are not cut off from it.
func (c *cluster) views() {
	for i, s := range c.sites {
		var members peer.Set
		for j := range c.sites {
			if c.sites[j] != nil && (j == i || !c.cut[i] && !c.cut[j]) {
				members.Add(c.ids[j])
			}
		}
		if s != nil {
			require.NoError(c.t, s.Do(c.now, ViewCommand{members, members}))
		}
	}
}

// pass lets time go by.
func (c *cluster) pass(d time.Duration) {
	c.views()
	for end := c.now + d; ; {
		for busy := true; busy; {
			busy = false
			for i, s := range c.sites {
				busy = s != nil && c.carry(i, s) || busy
			}
		}
		if c.now >= end {
			return
		}
		c.now = min(c.now+time.Second, end)
		for _, s := range c.sites {
			if s != nil {
				s.Tick(c.now, wall+c.now.Milliseconds())
			}
		}
	}
}

func (c *cluster) carry(i int, s *Site) (busy bool) {
	if err := s.Sync(); !c.full {
		require.NoError(c.t, err)
	}
	var e Effects
	s.Drain(&e)
	c.done = append(c.done, e.Done...)
	for _, m := range e.Sends {
		for j, to := range c.ids {
			if to == m.To && c.sites[j] != nil && !c.cut[i] && !c.cut[j] {
				require.NoError(c.t, c.sites[j].Handle(c.now, c.ids[i], m.Body))
				busy = true
			}
		}
	}
	return busy
}

// do carries out a command and returns what comes of it.
func (c *cluster) do(i int, cmd Command) Outcome {
	c.t.Helper()
	c.done = nil
	require.NoError(c.t, c.sites[i].Do(c.now, cmd))
	c.pass(3 * time.Second)
	require.Len(c.t, c.done, 1)
	return c.done[0]
}

func (c *cluster) put(i int, key string) Outcome {
	c.t.Helper()
	return c.do(i, PutCommand{Number: number(), Key: []byte(key), Data: []byte(key)})
}

func (c *cluster) get(i int, key string) []string {
	c.t.Helper()
	return datas(c.do(i, GetCommand{Number: number(), Key: []byte(key)}))
}

// whole demands that all disks have so many others in their tables, and lack nothing.
func (c *cluster) whole(disks int) {
	c.t.Helper()
	for i, s := range c.sites {
		if s == nil {
			continue
		}
		require.NotNil(c.t, s.Machine(), "node %d", i)
		n, _ := s.Disks()
		require.Equal(c.t, disks, n, "node %d", i)
		require.Zero(c.t, s.Machine().Stats().Lacking, "node %d", i)
	}
}

// TestFounding: a store begins when so many empty disks have met, once; a disk that comes later reads what they hold.
func TestFounding(t *testing.T) {
	c := newCluster(t, Config{}, 2)
	c.pass(time.Minute)
	require.Nil(t, c.sites[0].Machine())
	require.ErrorIs(t, c.sites[0].Do(c.now, GetCommand{Number: 1, Key: []byte("k")}), ErrNotFounded)
	c.start(1) // it is the same disk all the time
	require.Equal(t, c.sites[1].id, c.sites[1].disks[0])
	c.add()
	c.pass(10 * time.Second)
	c.whole(3)
	for i := range 3 {
		require.Equal(t, everyone, c.sites[i].Machine().ident.in, "a founder")
		require.NoError(t, c.put(i, fmt.Sprint("key", i)).Err)
	}
	c.add()
	c.add()
	c.pass(time.Minute)
	c.whole(5)
	for i := range 3 {
		require.Equal(t, []string{fmt.Sprint("key", i)}, c.get(4, fmt.Sprint("key", i)))
	}
}

// TestAllLosePower: what the disks hold is there again, also before all nodes are.
func TestAllLosePower(t *testing.T) {
	c := newCluster(t, Config{}, 5)
	c.pass(time.Minute)
	c.whole(5)
	for k := range 20 {
		require.NoError(t, c.put(k%5, fmt.Sprint("key", k)).Err)
	}
	for i := range c.sites {
		c.sites[i] = nil
	}
	for i := range 4 {
		c.start(i)
	}
	c.pass(20 * time.Second)
	c.whole(5) // the one that is away has its place
	for k := range 20 {
		require.Equal(t, []string{fmt.Sprint("key", k)}, c.get(k%4, fmt.Sprint("key", k)))
	}
}

// TestLostDisk: an empty disk at an address has the place of the one that was lost, at once.
func TestLostDisk(t *testing.T) {
	c := newCluster(t, Config{}, 3)
	c.pass(time.Minute)
	require.NoError(t, c.put(0, "k").Err)
	was := c.sites[1].id
	c.disks[1] = Memory()
	c.start(1)
	c.pass(time.Minute)
	c.whole(3)
	require.NotEqual(t, was, c.sites[1].id)
	require.False(t, c.sites[0].disks.Has(was))
	require.Len(t, c.sites[1].Machine().entry(&step{}, []byte("k")), 1)
}

// TestReplaceAfter: a disk that is away for long loses its place where more than half are there, and not where fewer
// are; when it comes back it reads what it has missed before it counts.
func TestReplaceAfter(t *testing.T) {
	c := newCluster(t, Config{ReplaceAfter: time.Minute}, 4)
	c.pass(time.Minute)
	c.whole(4)
	c.cut[3] = true
	c.pass(5 * time.Minute)
	n, _ := c.sites[3].Disks()
	require.Equal(t, 4, n, "alone it replaces nobody")
	n, _ = c.sites[0].Disks()
	require.Equal(t, 3, n)
	for k := range 20 {
		require.NoError(t, c.put(k%3, fmt.Sprint("key", k)).Err)
	}
	c.cut[3] = false
	c.pass(2 * time.Second)
	lacking := c.sites[3].Report().Filling
	require.Len(t, lacking, c.sites[3].Report().Groups, "writes may be under way that know nothing of it")
	c.pass(time.Minute)
	c.whole(4)
	for k := range 20 {
		require.Equal(t, []string{fmt.Sprint("key", k)}, c.get(3, fmt.Sprint("key", k)))
	}
	require.Empty(t, c.sites[0].removed)
}

// TestSitesThatDiffer: a node with other settings, and nonsense, change nothing.
func TestSitesThatDiffer(t *testing.T) {
	c := newCluster(t, Config{}, 3)
	c.cfg.N = 5
	c.start(2)
	c.pass(20 * time.Second)
	_, differs := c.sites[0].Disks()
	require.Positive(t, differs)
	require.Nil(t, c.sites[0].Machine())
	for _, b := range [][]byte{{9}, {tagHello}, {tagMessage, 1}, (&hello{table: table{id: id(7, 7)}}).append(nil)} {
		require.ErrorIs(t, c.sites[0].Handle(c.now, c.ids[1], b), ErrNonsense)
	}
	require.NoError(t, c.sites[0].Handle(c.now, id(9, 9), []byte{9}), "of no member: dropped")
	_, err := OpenSite(c.cfg, 3, "c/s", id(5, 1), c.disks[0], wall, rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, err, "an empty disk may be moved")
}

// someHello has every field.
func someHello() *hello {
	return &hello{7, true, true, table{id(1, 5), peer.SetOf(id(1, 5)), peer.SetOf(id(0, 3), id(1, 5)),
		peer.SetOf(id(2, 9))}}
}

// FuzzSite: no bytes of another node do harm, and a hello that is understood is written as it was read.
func FuzzSite(f *testing.F) {
	f.Add(someHello().append(nil))
	f.Add(appendMail([]byte{tagMessage}, id(1, 1), id(0, 1), someMessage().append(nil)))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 0 && body[0] == tagHello {
			if h, err := readHello(body[1:]); err == nil {
				require.Equal(t, body, h.append(nil))
			}
		}
		s, err := OpenSite(Config{}, 1, "c/s", id(0, 1), Memory(), wall, rand.New(rand.NewPCG(1, 1)))
		require.NoError(t, err)
		members := peer.SetOf(id(0, 1), id(1, 1))
		require.NoError(t, s.Do(1, ViewCommand{members, members}))
		_ = s.Handle(1, id(1, 1), body)
		s.Tick(time.Minute, wall)
		require.NoError(t, s.Sync())
	})
}

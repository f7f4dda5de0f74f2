// Tests of large messages on sockets: intact, in order, beside others, cancelled, and when their receiver goes away.

package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// blob is an entity that keeps the hashes of what it got, in order; an ask gets a reply as long as its payload says.
type blob struct{ seen *blobs }

type blobs struct {
	mu   sync.Mutex
	got  map[string][][32]byte
	wait chan struct{} // if not nil, every message waits for it
	into chan struct{} // if not nil, signalled when a handler begins
}

func (b *blob) Receive(c *kith.Context, payload []byte) error {
	if b.seen.into != nil {
		b.seen.into <- struct{}{}
	}
	if b.seen.wait != nil {
		<-b.seen.wait
	}
	sum := sha256.Sum256(payload)
	b.seen.mu.Lock()
	b.seen.got[c.ID] = append(b.seen.got[c.ID], sum)
	b.seen.mu.Unlock()
	if c.Asked() {
		return c.Reply(noise(int(binary.LittleEndian.Uint32(payload)), 7))
	}
	return nil
}

func (b *blob) Stop(*kith.Context) {}

func (b *blobs) of(id string) [][32]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([][32]byte(nil), b.got[id]...)
}

// noise returns n bytes that no one guesses, the first four of which say size.
func noise(n int, size uint32) []byte {
	b := make([]byte, max(n, 4))
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(size)}).Read(b)
	binary.LittleEndian.PutUint32(b, size)
	return b
}

// blobCluster is a sender without shards, and hosts.
type blobCluster struct {
	nodes  []*kith.Node // nodes[0] sends
	region *kith.Region
	here   *kith.Region // of nodes[1]
	seen   *blobs
	lost   *reports
}

func startBlobs(t *testing.T, hosts int, mode kith.Mode, change func(i int, cfg *kith.Config)) *blobCluster {
	t.Helper()
	c := &blobCluster{seen: &blobs{got: map[string][][32]byte{}}, lost: &reports{}}
	c.nodes = cluster(t, hosts+1, func(i int, cfg *kith.Config) {
		cfg.MaxPayload = 64 << 10
		if i > 0 {
			cfg.Roles = []string{"host"}
		} else {
			cfg.Undelivered = c.lost.take
		}
		if change != nil {
			change(i, cfg)
		}
	}, func(i int, n *kith.Node) {
		r, err := n.Register(kith.EntityType{Name: "blob", Role: "host", Shards: 8, Mode: mode,
			New: func(string, kith.Fence) kith.Handler { return &blob{c.seen} }})
		require.NoError(t, err)
		switch i {
		case 0:
			c.region = r
		case 1:
			c.here = r
		}
	})
	return c
}

// idle waits until nothing of large messages is held anywhere.
func (c *blobCluster) idle(t *testing.T, nodes ...*kith.Node) {
	t.Helper()
	for _, n := range nodes {
		eventually(t, func() bool {
			s := n.Stats()
			b := s.Transport.Bulk
			return s.LargeUnderway == 0 && s.LargeBytes == 0 && b.Held == 0 && b.Waiting == 0 && b.Begun == 0 && b.Queued == 0
		}, "nothing is held")
	}
}

var everyMode = []kith.Mode{kith.Blocking, kith.Worker, kith.Inline}

// TestLargeMessagesKeepTheirPlace: among the messages of one sender to one entity, large ones come where they were
// sent, and unharmed (SHD-9).
func TestLargeMessagesKeepTheirPlace(t *testing.T) {
	t.Parallel()
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			c := startBlobs(t, 1, mode, nil)
			var sums [][32]byte
			for i := range 30 {
				b := noise(100+i, uint32(i))
				if i%7 == 3 {
					b = noise(200_000*i, uint32(i))
				}
				sums = append(sums, sha256.Sum256(b))
				if i%2 == 0 {
					require.NoError(t, c.region.Tell("a", b))
				} else {
					require.NoError(t, c.region.TellWait(within(t), "a", b))
				}
				clear(b) // it was copied
			}
			eventually(t, func() bool { return len(c.seen.of("a")) == len(sums) }, "all came")
			require.Equal(t, sums, c.seen.of("a"))
			c.idle(t, c.nodes...)
		})
	}
}

// TestLargeMessagesOfManySenders: every stream of a sender to an entity is complete and in order, whatever sizes are
// mixed (SHD-9).
func TestLargeMessagesOfManySenders(t *testing.T) {
	t.Parallel()
	c := startBlobs(t, 2, kith.Worker, nil)
	var all sync.WaitGroup
	want := make([][][32]byte, 6)
	for s := range want {
		for i := range 20 {
			n := 50
			if (i+s)%5 == 0 {
				n = 70_000 * (1 + (i*s)%9)
			}
			want[s] = append(want[s], sha256.Sum256(noise(n+i, uint32(s))))
		}
		all.Go(func() {
			for i := range 20 {
				n := 50
				if (i+s)%5 == 0 {
					n = 70_000 * (1 + (i*s)%9)
				}
				if err := c.region.TellWait(within(t), fmt.Sprint("entity", s), noise(n+i, uint32(s))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for s := range want {
		id := fmt.Sprint("entity", s)
		eventually(t, func() bool { return len(c.seen.of(id)) == len(want[s]) }, "all came")
		require.Equal(t, want[s], c.seen.of(id))
	}
	c.idle(t, c.nodes...)
}

// TestAsksBesideALargeMessage: 64 MiB go over intact, with progress, while asks on the same pair of nodes are answered.
func TestAsksBesideALargeMessage(t *testing.T) {
	t.Parallel()
	c := startBlobs(t, 1, kith.Worker, nil)
	b := noise(64<<20, 0)
	// On a busy machine one of them may be through before anybody else has had a turn: then it says nothing.
	sums := [][32]byte{}
	for beside, steps := 0, 0; beside == 0 || steps <= 3; {
		require.Less(t, len(sums), 20, "%d asks beside, %d steps", beside, steps)
		beside, steps = besideLarge(t, c, b)
		sums = append(sums, sha256.Sum256(b))
	}
	require.Equal(t, sums, c.seen.of("large"))
	c.idle(t, c.nodes...)
}

// besideLarge sends a large message, and asks another entity of its node until it is through. It returns the asks that
// were answered meanwhile, and the steps in which its progress was reported.
func besideLarge(t *testing.T, c *blobCluster, b []byte) (beside, told int) {
	other := ""
	for i := 0; other == ""; i++ {
		if id := fmt.Sprint("other", i); c.region.Shard(id) != c.region.Shard("large") {
			other = id
		}
	}
	var moving atomic.Bool
	var steps []int
	done := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		done <- c.region.TellBulk(within(t), "large", b, func(sent, total int) {
			if !moving.Swap(true) {
				close(begun)
			}
			if total != len(b) {
				t.Error(total)
			}
			steps = append(steps, sent)
		})
	}()
	<-begun
	for over := false; !over; {
		reply, err := c.region.Ask(within(t), other, noise(16, 16))
		require.NoError(t, err)
		require.Len(t, reply, 16)
		select {
		case err := <-done:
			require.NoError(t, err)
			over = true
		default:
			beside++
		}
	}
	require.IsIncreasing(t, steps)
	require.Equal(t, len(b), steps[len(steps)-1])
	return beside, len(steps)
}

// TestProgressEndsWithTheWhole: whatever is sent, and wherever it goes, progress grows up to all of it, and once it is
// there TellBulk returns.
func TestProgressEndsWithTheWhole(t *testing.T) {
	t.Parallel()
	c := startBlobs(t, 1, kith.Worker, nil)
	for name, r := range map[string]*kith.Region{"remote": c.region, "local": c.here} {
		for _, n := range []int{10, 3 << 20} {
			var steps []int
			require.NoError(t, r.TellBulk(within(t), name, noise(n, 0), func(sent, total int) {
				require.Equal(t, n, total)
				steps = append(steps, sent)
			}))
			require.NotEmpty(t, steps, "%s, %d bytes", name, n)
			require.IsIncreasing(t, append([]int{0}, steps...))
			require.Equal(t, n, steps[len(steps)-1])
		}
	}
	c.idle(t, c.nodes...)
}

// TestLargeAsksAndReplies: each form of ask takes a large payload and a large reply, from another node and from here.
func TestLargeAsksAndReplies(t *testing.T) {
	t.Parallel()
	for _, from := range []int{0, 1} {
		t.Run([]string{"remote", "local"}[from], func(t *testing.T) {
			c := startBlobs(t, 1, kith.Blocking, nil)
			r := c.region
			if from == 1 {
				r = c.here
			}
			const n = 3 << 20
			want := noise(n, 7)
			ask := noise(2<<20, n)
			got, err := r.Ask(within(t), "a", ask)
			require.NoError(t, err)
			require.Equal(t, want, got)
			got, err = r.AskWithin(patience, "a", ask, make([]byte, 0, 10))
			require.NoError(t, err)
			require.Equal(t, want, got)
			into := make([]byte, 0, 4<<20)
			got, err = r.AskWithin(patience, "a", noise(100, n), into)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Same(t, &into[:1][0], &got[0], "room that was given is used")
			answer := make(chan [32]byte, 1)
			require.NoError(t, r.AskFunc(patience, "a", ask, func(reply []byte, err error) {
				if err != nil {
					t.Error(err)
				}
				answer <- sha256.Sum256(reply)
			}))
			require.Equal(t, sha256.Sum256(want), <-answer)
			_, err = r.Ask(within(t), "a", noise(100, 65<<20))
			require.ErrorContains(t, err, "67108864 bytes are the most")
			require.ErrorContains(t, err, "got 68157440")
			c.idle(t, c.nodes...)
		})
	}
}

// TestLargeMessagesAtHome: entities here get large messages without a copy on the way, in every mode and in order.
func TestLargeMessagesAtHome(t *testing.T) {
	t.Parallel()
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			c := startBlobs(t, 1, mode, nil)
			r := c.here
			var sums [][32]byte
			for i := range 12 {
				b := noise(90_000*(i%3)+100, uint32(i))
				sums = append(sums, sha256.Sum256(b))
				if i%2 == 0 {
					require.NoError(t, r.TellWait(within(t), "a", b))
				} else {
					require.NoError(t, r.TellBulk(within(t), "a", b, nil))
				}
				clear(b)
			}
			eventually(t, func() bool { return len(c.seen.of("a")) == len(sums) }, "all came")
			require.Equal(t, sums, c.seen.of("a"))
			c.idle(t, c.nodes...)
		})
	}
}

// TestLargeMessageGivenUp: when its context ends the payload is the caller's again, both nodes hold nothing of it, and
// what was sent behind it arrives.
func TestLargeMessageGivenUp(t *testing.T) {
	t.Parallel()
	c := startBlobs(t, 1, kith.Worker, nil)
	require.NoError(t, c.region.TellWait(within(t), "a", noise(10, 1)))
	ctx, cancel := context.WithCancel(within(t))
	b := noise(64<<20, 0)
	var behind error
	err := c.region.TellBulk(ctx, "a", b, func(int, int) {
		if ctx.Err() == nil {
			behind = c.region.Tell("a", noise(10, 2))
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	clear(b)
	require.NoError(t, behind)
	want := [][32]byte{sha256.Sum256(noise(10, 1)), sha256.Sum256(noise(10, 2))}
	eventually(t, func() bool { return len(c.seen.of("a")) == 2 }, "all came")
	require.Equal(t, want, c.seen.of("a"))
	c.idle(t, c.nodes...)
}

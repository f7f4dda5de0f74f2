// Tests of answers that are on their way while the node that gave them ends.

package driver

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// held answers, or returns, on a signal.
type held struct{ began, on chan struct{} }

func (h *held) Receive(c *entity.Context, payload []byte) error {
	h.began <- struct{}{}
	<-h.on
	if c.Asked() {
		return c.Reply(payload)
	}
	return nil
}

func (h *held) Stop(*entity.Context) {}

// A node that leaves answers what it was asked before it goes. The asker takes the answer although it learns of the
// removal, and that its own connection was closed, before its loop comes to read it (SHD-12, MEM-8).
func TestAnswersOfANodeThatLeavesAreTaken(t *testing.T) {
	p := newPair(t, func(c *Config) { c.DataLoops = 1 })
	asked := &held{make(chan struct{}, 1), make(chan struct{})}
	loop := &held{make(chan struct{}, 1), make(chan struct{})}
	slow := entity.Type{Name: "slow", Role: "host", Shards: 1, Mode: entity.Blocking,
		New: func(string, route.Fence) entity.Handler { return asked }}
	_, err := p.b.Register(slow)
	require.NoError(t, err)
	r, err := p.a.Register(slow)
	require.NoError(t, err)
	mine, err := p.a.Register(entity.Type{Name: "mine", Shards: 1, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler { return loop }})
	require.NoError(t, err)
	eventually(t, func() bool {
		_, err := p.at[entity.Worker].AskWithin(patience, "a", nil, nil)
		return err == nil
	})

	type answer struct {
		reply string
		err   error
	}
	answers := make(chan answer, 1)
	require.NoError(t, r.AskFunc(patience, "x", []byte("it"), func(reply []byte, err error) {
		answers <- answer{string(reply), err}
	}))
	<-asked.began
	require.NoError(t, mine.Tell("y", nil))
	<-loop.began // the loop that reads for this node stands still from here on
	left := make(chan error, 1)
	go func() { left <- p.b.Leave(t.Context()) }()
	close(asked.on)
	require.NoError(t, <-left)
	eventually(t, func() bool {
		_, member := p.a.View().Member(p.b.Self())
		return !member
	})
	p.a.LinkDown(p.b.Self(), wire.LaneData, 0, 0, io.EOF) // whichever of its connections is read first
	close(loop.on)
	select {
	case got := <-answers:
		require.NoError(t, got.err)
		require.Equal(t, "it", got.reply)
	case <-time.After(patience):
		t.Fatal("the ask ends in silence")
	}
}

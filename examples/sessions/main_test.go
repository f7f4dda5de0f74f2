// Test of the example: it tells the whole story, in order.

package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sim"
)

// lines gathers what is written from several goroutines.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func TestSessions(t *testing.T) {
	out := &lines{}
	require.NoError(t, run(t.Context(), out))
	var story, incidents []string
	for line := range strings.Lines(out.buf.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "incident: ") {
			incidents = append(incidents, line) // reported beside the story
		} else {
			story = append(story, line)
		}
	}
	require.Equal(t, []string{
		`ada says "hello": word 1`,
		`ada says "again": word 2`,
		`ada was silent and goes`,
		`ada stopped after 2 words`,
		`ada says "back": word 1`,
		`ada says "boom": it panicked`,
		`ada says "boom": it panicked`,
		`ada says "boom": it panicked`,
		`ada says "anybody there?": it was given up`,
	}, story)
	require.Equal(t, []string{"incident: panicked of ada", "incident: panicked of ada", "incident: panicked of ada"},
		incidents[:3])
	require.LessOrEqual(t, len(incidents), 4, "and given up, when the program lives long enough to hear of it")
}

// TestSessionAlone: the handler alone, without a node: a session is stopped when it was silent for as long as it may,
// counted from its last word, and a panic lets it rest.
func TestSessionAlone(t *testing.T) {
	out := &lines{}
	e := sim.NewEntity(t, sessions(out), "ada", sim.EntityConfig{})
	reply, err := e.Ask([]byte("hello"))
	require.NoError(t, err)
	require.Equal(t, "word 1", string(reply))
	require.Empty(t, e.Advance(silence-1))
	c := e.Tell([]byte("again"))
	require.ErrorIs(t, c.Err, kith.ErrNoAsk, "it answers a tell, too")
	require.Equal(t, []sim.Timer{{Name: "silence", In: silence}}, c.Set)
	require.Empty(t, e.Advance(silence-1))
	calls := e.Advance(1)
	require.Len(t, calls, 1)
	require.Equal(t, []kith.StopReason{kith.StopPassivated}, calls[0].Stopped)
	require.Equal(t, "ada was silent and goes\nada stopped after 2 words\n", out.buf.String())

	_, err = e.Ask([]byte("boom"))
	require.ErrorIs(t, err, kith.ErrPanic)
	require.Zero(t, e.Tell([]byte("hello")).Received, "it rests")
	require.Len(t, e.Advance(sessions(out).RestartBackoff), 1)
}

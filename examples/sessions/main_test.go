// Test of the example: it tells the whole story, in order.

package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
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
			incidents = append(incidents, line) // told beside the story
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

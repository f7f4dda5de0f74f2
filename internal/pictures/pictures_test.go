// The pictures under test: they are drawn the same each time, and what they show is what the documentation says.

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// alone demands that no shard lives on two lanes at one moment.
func alone(t *testing.T, p *picture) {
	t.Helper()
	for i := range p.lanes {
		for k := i + 1; k < len(p.lanes); k++ {
			for shard, mine := range p.lanes[i].shards {
				require.False(t, overlap(mine, p.lanes[k].shards[shard]), "shard %d lives on n%d and n%d", shard, i+1, k+1)
			}
		}
	}
}

func overlap(a, b []span) bool {
	for _, s := range a {
		for _, o := range b {
			if s.from < o.to && o.from < s.to {
				return true
			}
		}
	}
	return false
}

// living returns how many shards live on a lane at a moment.
func living(p *picture, lane int, at time.Duration) (count int) {
	for _, spans := range p.lanes[lane].shards {
		for _, s := range spans {
			if s.from <= at && at < s.to {
				count++
			}
		}
	}
	return count
}

// TestPictures holds that each picture is well-formed and the same in each run.
func TestPictures(t *testing.T) {
	for _, s := range stories {
		var texts []string
		for range 2 {
			p, err := s.tell()
			require.NoError(t, err)
			alone(t, p)
			text, err := p.draw()
			require.NoError(t, err)
			texts = append(texts, string(text))
		}
		require.Equal(t, texts[0], texts[1], s.file)
		d := xml.NewDecoder(strings.NewReader(texts[0]))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
	}
	require.True(t, overlap([]span{{1, 3, ""}}, []span{{2, 4, ""}}))
	require.False(t, overlap([]span{{1, 3, ""}}, []span{{3, 4, ""}}))
}

// TestForming: a joining node gets shards, one that leaves keeps none, and every shard lives somewhere (SHD-12).
func TestForming(t *testing.T) {
	p, err := forming()
	require.NoError(t, err)
	last := p.to - 1
	require.Zero(t, living(p, 1, last))
	require.GreaterOrEqual(t, living(p, 3, 35*time.Second), 2)
	require.Equal(t, 12, living(p, 0, last)+living(p, 2, last)+living(p, 3, last))
}

// TestHandOff: messages of three senders are handled once and in the order of each, though their shard moves (SHD-12).
func TestHandOff(t *testing.T) {
	p, err := handoff()
	require.NoError(t, err)
	require.Len(t, p.messages, 45)
	places, last := map[int]bool{}, map[int]time.Duration{}
	for _, m := range p.messages {
		require.Greater(t, m.sent, last[m.from], "in order, and once")
		last[m.from] = m.sent
		places[m.to] = true
	}
	require.Len(t, places, 2, "some were handled before the move, some behind it")
}

// TestSplit: the smaller side has stopped before its shards live on the other one (SHD-9).
func TestSplit(t *testing.T) {
	p, err := split()
	require.NoError(t, err)
	before := living(p, 0, p.from) + living(p, 1, p.from)
	require.Positive(t, before)
	at := p.from + 25*time.Second
	require.Zero(t, living(p, 0, at)+living(p, 1, at))
	require.Equal(t, 15-before, living(p, 2, at)+living(p, 3, at)+living(p, 4, at), "they wait for the takeover time")
	require.Equal(t, 15, living(p, 2, p.from+40*time.Second)+living(p, 3, p.from+40*time.Second)+
		living(p, 4, p.from+40*time.Second))
}

// TestWrite: the files that the command leaves.
func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, write(folder))
	files, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	require.NoError(t, err)
	require.Len(t, files, len(stories))
	require.Error(t, write("/dev/null/x"))
}

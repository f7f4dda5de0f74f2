// Tests of what is reported of a store that does not answer.

package durable

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTroubleIsToldOnce: one line when the first shard has trouble, one when the last has none; a store that comes and
// goes has ever fewer of them, and none is lost: the next line counts what was not said (SHD-11).
func TestTroubleIsToldOnce(t *testing.T) {
	var out bytes.Buffer
	tr := &trouble{log: slog.New(slog.NewTextHandler(&out, nil)), typ: "account"}
	now, full := time.Unix(1000, 0), errors.New("disk full")
	lines := func() (n int) {
		defer out.Reset()
		return strings.Count(out.String(), "\n")
	}
	for _, who := range []int{1, 2, 1, 2, 2} {
		tr.fails(who, full, now)
	}
	require.Contains(t, out.String(), "disk full")
	require.Equal(t, 1, lines())
	shards, last := tr.now(now)
	require.Equal(t, 2, shards)
	require.Equal(t, full, last)
	tr.works(1, now)
	tr.works(3, now)
	require.Zero(t, lines())
	tr.works(2, now.Add(time.Second/2))
	require.Contains(t, out.String(), "after=500ms")
	require.Equal(t, 1, lines())
	shards, last = tr.now(now)
	require.Zero(t, shards)
	require.NoError(t, last)

	said := 0
	for range 600 { // it comes and goes each second, for ten minutes
		now = now.Add(time.Second)
		tr.fails(1, full, now)
		tr.works(1, now)
		if strings.Contains(out.String(), "not answer") {
			said++
			require.Contains(t, out.String(), "answers again")
		}
		out.Reset()
	}
	require.Greater(t, said, 8)
	require.Less(t, said, 20)
	require.Positive(t, tr.silent)
	now = now.Add(time.Hour)
	tr.fails(1, full, now)
	require.NotContains(t, out.String(), "silent=0")
	require.Equal(t, linesFirst, tr.rest, "after a calm hour it begins anew")

	tr.leaves(1)
	out.Reset()
	tr.fails(1, full, now.Add(time.Hour))
	require.Equal(t, 1, lines())
	shards, _ = tr.now(now.Add(2 * time.Hour)) // that shard calls no more
	require.Zero(t, shards)
	require.Zero(t, lines(), "nobody knows whether it answers")

	tr = &trouble{log: tr.log, typ: "account", told: false, line: now, rest: time.Minute}
	out.Reset()
	tr.fails(1, full, now.Add(time.Second))
	require.Zero(t, lines())
	tr.fails(1, full, now.Add(time.Minute)) // it lasts: that is said in the end
	require.Equal(t, 1, lines())
}

// Tests of the rule of one owner: what breaks it is found, and nothing else.

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// call is a handling of entity 1: process, term of the fence, begin and end in milliseconds.
func call(process uint32, term uint64, from, until int, number uint64) handling {
	return handling{handled{step: stepDone, target: 1, sender: 9, number: number, low: term,
		from: time.Duration(from) * time.Millisecond, until: time.Duration(until) * time.Millisecond}, process}
}

// What breaks the rule is counted as what it is, and what no library can help is not held against it (SHD-9).
func TestOneOwner(t *testing.T) {
	sleep := pause{process: 1, from: 20 * time.Millisecond, until: 30 * time.Second}
	short := pause{process: 1, from: 20 * time.Millisecond, until: 25 * time.Millisecond}
	for _, c := range []struct {
		name   string
		calls  []handling
		pauses []pause
		want   verdicts
	}{
		{"one after the other", []handling{call(1, 1, 0, 10, 1), call(2, 2, 11, 20, 2)}, nil, verdicts{Handled: 2}},
		{"known in another order", []handling{call(2, 2, 11, 20, 2), call(1, 1, 0, 10, 1)}, nil, verdicts{Handled: 2}},
		{"two under one fence", []handling{call(1, 1, 0, 10, 1), call(2, 1, 11, 20, 2)}, nil,
			verdicts{Handled: 2, Double: 1}},
		{"at one time", []handling{call(1, 1, 0, 15, 1), call(2, 2, 11, 20, 2)}, nil, verdicts{Handled: 2, Double: 1}},
		{"a fence that was overtaken", []handling{call(2, 2, 0, 1, 1), call(1, 1, 5, 6, 2), call(1, 1, 7, 8, 3)}, nil,
			verdicts{Handled: 3, Back: 2}},
		{"a paused handler", []handling{call(1, 1, 15, 30001, 1), call(2, 2, 25000, 25001, 2)}, []pause{sleep},
			verdicts{Handled: 2, Overrun: 1}},
		{"what a sleeper had in hand", []handling{call(2, 2, 25000, 25001, 1), call(1, 1, 30005, 30006, 2)},
			[]pause{sleep}, verdicts{Handled: 2, Overrun: 1, Woke: 1}},
		{"a sleeper that goes on", []handling{call(2, 2, 25000, 25001, 1), call(1, 1, 30500, 30501, 2)},
			[]pause{sleep}, verdicts{Handled: 2, Back: 1}},
		{"a pause too short to lose anything", []handling{call(2, 2, 22, 23, 1), call(1, 1, 26, 27, 2)},
			[]pause{short}, verdicts{Handled: 2, Back: 1}},
		{"twice", []handling{call(1, 1, 0, 1, 1), call(1, 1, 2, 3, 1)}, nil, verdicts{Handled: 2, Twice: 1}},
		{"out of order", []handling{call(1, 1, 0, 1, 2), call(1, 1, 2, 3, 1)}, nil, verdicts{Handled: 2, Reordered: 1}},
	} {
		x := newExclusive()
		x.pauses = c.pauses
		lines := x.add(c.calls)
		require.Equal(t, c.want, x.verdict, c.name)
		require.Len(t, lines, c.want.Double+c.want.Back, c.name)
	}
}

// A handling that becomes known late, because its process stood still, is not out of order for that.
func TestLateKnowledgeIsNoDisorder(t *testing.T) {
	x := newExclusive()
	x.add([]handling{call(2, 2, 50, 51, 7)})
	x.add([]handling{call(1, 1, 10, 12, 3)})
	require.Equal(t, verdicts{Handled: 2}, x.verdict)
	require.True(t, x.handled(9, 3))
	require.False(t, x.handled(9, 4))
	require.Equal(t, []uint32{1, 2}, x.owners(1, 20*time.Millisecond))
}

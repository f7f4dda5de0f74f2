// Tests of the judge of histories: it can say no.

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Histories of one register that can be put in order, and such that cannot.
func TestJudge(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	write := func(v int64, from, to int, o outcome) step {
		return step{Register: "r", Write: v, From: at(from), To: at(to), Outcome: o}
	}
	read := func(v int64, from, to int) step {
		return step{Register: "r", Read: v, From: at(from), To: at(to), Outcome: done}
	}
	plain := func(v int64, from, to int) step { s := read(v, from, to); s.Plain = true; return s }
	for name, c := range map[string]struct {
		steps []step
		yes   bool
		stale int
	}{
		"nothing":                         {nil, true, 0},
		"it begins with nothing":          {[]step{read(0, 0, 1), write(1, 2, 3, done), read(1, 4, 5)}, true, 0},
		"two at a time":                   {[]step{write(1, 0, 9, done), write(2, 0, 9, done), read(2, 10, 11), read(2, 12, 13)}, true, 0},
		"two at a time, and back":         {[]step{write(1, 0, 9, done), write(2, 0, 9, done), read(2, 10, 11), read(1, 12, 13)}, false, 0},
		"a read of what is gone":          {[]step{write(1, 0, 1, done), write(2, 2, 3, done), read(1, 4, 5)}, false, 0},
		"a write that was lost":           {[]step{write(1, 0, 1, done), read(0, 2, 3)}, false, 0},
		"one that nobody has written":     {[]step{read(7, 0, 1)}, false, 0},
		"unknown, and done":               {[]step{write(1, 0, 1, unknown), read(1, 2, 3)}, true, 0},
		"unknown, and not done":           {[]step{write(1, 0, 1, unknown), read(0, 2, 3)}, true, 0},
		"unknown, and done late":          {[]step{write(1, 0, 1, unknown), read(0, 2, 3), read(1, 4, 5)}, true, 0},
		"unknown, done and undone":        {[]step{write(1, 0, 1, unknown), read(1, 2, 3), read(0, 4, 5)}, false, 0},
		"unknown, and done twice":         {[]step{write(1, 0, 1, unknown), read(1, 2, 3), write(2, 4, 5, done), read(1, 6, 7)}, false, 0},
		"unknown, and read before":        {[]step{read(1, 0, 1), write(1, 2, 3, unknown)}, false, 0},
		"refused, and done":               {[]step{write(1, 0, 1, refused), read(1, 2, 3)}, false, 0},
		"rejected, and not done":          {[]step{write(1, 0, 1, rejected), read(0, 2, 3)}, true, 0},
		"a read without an answer":        {[]step{{Register: "r", Read: 9, To: 1, Outcome: unknown}}, true, 0},
		"a plain read may be late":        {[]step{write(1, 0, 1, done), plain(0, 2, 3)}, true, 1},
		"a plain read that is not":        {[]step{write(1, 0, 1, done), plain(1, 2, 3)}, true, 0},
		"each register has its own order": {[]step{write(1, 0, 1, done), {Register: "q", From: at(2), To: at(3), Outcome: done}}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge(c.steps)
			require.Equal(t, c.yes, j.Judged)
			require.Equal(t, c.stale, j.PlainStale)
			require.Equal(t, !c.yes, j.Violations > 0)
		})
	}
}

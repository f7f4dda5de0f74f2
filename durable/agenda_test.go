// Tests of agendas as machines, and of reminders as bytes.

package durable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/ground"
)

// ids returns those of items.
func ids(list []*item) (s []string) {
	for _, i := range list {
		s = append(s, i.id)
	}
	return s
}

// readAll makes the agenda read what a store holds, in order.
func readAll(a *agenda, now int64, ids ...string) {
	if _, wanted := a.reads(now); wanted {
		for n, id := range ids {
			if !a.read(id, int64(n)) {
				break
			}
		}
		a.wasRead(nil, now)
	}
}

// TestAgendaIsNoFlood: however many are due, no more than the rate are begun in a second, and no more are awake than
// may be, the oldest ones first (SHD-11).
func TestAgendaIsNoFlood(t *testing.T) {
	a := newAgenda(100, ground.Real{})
	var all []string
	for n := range 1000 {
		all = append(all, fmt.Sprintf("%04d", n))
	}
	readAll(a, 10_000, all...)
	list, _ := a.take(10_000)
	require.Equal(t, all[:mostAwake], ids(list))
	none, _ := a.take(10_000)
	require.Empty(t, none)
	began := len(list)
	for now := int64(10_000); now < 15_000; now += 10 {
		for _, i := range list {
			a.woken(i, noReminder, nil, now)
		}
		list, _ = a.take(now)
		for n, i := range list {
			require.Equal(t, all[began+n], i.id)
		}
		began += len(list)
		require.LessOrEqual(t, began, 100*int((now-10_000)/1000+1))
	}
	require.Equal(t, 500, began)
	_, next := a.take(15_000 - 1)
	require.Equal(t, int64(15_000), next, "the second is over then")
}

// TestAgendaIsBounded: it reads so many, knows that there are more, and reads again when half of them have been woken;
// what is committed beyond is found by that.
func TestAgendaIsBounded(t *testing.T) {
	a := newAgenda(mostReminderRate, ground.Real{})
	var all []string
	for n := range 3 * mostOnIt {
		all = append(all, fmt.Sprintf("%06d", n))
	}
	now := int64(1_000_000)
	seen := map[string]bool{}
	for rounds := 0; len(all) > 0; rounds++ {
		require.Less(t, rounds, 2000)
		readAll(a, now, all...)
		require.LessOrEqual(t, len(a.items), mostOnIt)
		list, _ := a.take(now)
		for _, i := range list {
			require.False(t, seen[i.id])
			seen[i.id] = true
			a.woken(i, noReminder, nil, now)
		}
		for len(all) > 0 && seen[all[0]] { // the store has it no more
			all = all[1:]
		}
	}
	require.Equal(t, 3*mostOnIt, len(seen))
	for n := range 3 * mostOnIt { // by commits
		a.committed(fmt.Sprint("c", n), now+int64(n))
	}
	require.Equal(t, 2*mostOnIt, len(a.items))
	require.Equal(t, now+2*mostOnIt, a.until, "what comes later is read")
	require.True(t, a.full)
}

// TestAgendaFollowsCommits: what is stored is what counts, also of an entity that is awake; what is far ahead is found
// later, by reading.
func TestAgendaFollowsCommits(t *testing.T) {
	a := newAgenda(100, ground.Real{})
	readAll(a, 1000)
	wants := func(now int64, want ...string) (list []*item) {
		t.Helper()
		list, _ = a.take(now)
		require.Equal(t, want, ids(list))
		return list
	}
	a.committed("a", 2000)
	a.committed("b", 3000)
	a.committed("far", 1000+horizon.Milliseconds())
	require.Len(t, a.items, 2)
	_, next := a.take(1000)
	require.Equal(t, int64(2000), next)
	wants(1999)
	a.committed("a", 2500)
	wants(2000)
	a.committed("b", 1500)
	b := wants(2000, "b")[0]
	a.committed("a", noReminder)
	a.committed("b", 4000)
	a.woken(b, 9000, nil, 2000)
	wants(3999)
	b = wants(4000, "b")[0]
	a.committed("b", noReminder)
	a.woken(b, 9000, nil, 4000)
	require.Empty(t, a.items)
	a.committed("c", 5000)
	c := wants(5000, "c")[0]
	a.woken(c, 6000, nil, 5000) // its owner's clock was set back: nothing was committed
	c = wants(6000, "c")[0]
	a.woken(c, 1000+2*horizon.Milliseconds(), nil, 6000)
	require.Empty(t, a.items)
	require.Empty(t, a.order)
}

// TestAgendaRestsBehindFailures: an entity that cannot be woken comes again behind ever longer rests, unless a commit
// says more; not all that fail are remembered. A store that cannot be read is asked again likewise.
func TestAgendaRestsBehindFailures(t *testing.T) {
	a, away := newAgenda(mostReminderRate, ground.Real{}), error(fails(codeAway, nil))
	readAll(a, 1000, "a", "b")
	list, _ := a.take(1000)
	for _, i := range list {
		a.woken(i, 0, away, 1000)
	}
	require.Equal(t, 2, a.fails)
	none, next := a.take(1999)
	require.Empty(t, none)
	require.Equal(t, int64(2000), next)
	a.committed("b", 1500)
	require.Equal(t, 1, a.fails)
	now := int64(2000)
	list, _ = a.take(now)
	require.Equal(t, []string{"b", "a"}, ids(list))
	a.woken(list[0], noReminder, nil, now)
	for tries, rest := range []int64{2000, 4000, 8000, 10000, 10000, 60000, 60000} {
		why := away
		if rest > 10000 {
			why = fails(codeRecord, nil) // which will not be mended soon
		}
		a.woken(list[len(list)-1], 0, why, now)
		none, _ := a.take(now + rest - 1)
		require.Empty(t, none, tries)
		now += rest
		list, _ = a.take(now)
		require.Equal(t, []string{"a"}, ids(list))
	}
	a.woken(list[0], now+5, nil, now)
	require.Zero(t, a.fails)
	a.committed("a", noReminder)
	readAll(a, now)
	for n := range 2 * mostFails {
		a.committed(fmt.Sprint("c", n), now)
		list, _ = a.take(now + 10)
		for _, i := range list {
			a.woken(i, 0, away, now)
		}
	}
	require.Equal(t, mostFails, a.fails)
	require.Equal(t, mostFails, len(a.items))

	a = newAgenda(1, ground.Real{})
	now = 1000
	for _, rest := range []int64{1000, 2000, 4000, 8000, 10000, 10000} {
		_, wanted := a.reads(now)
		require.True(t, wanted)
		a.wasRead(away, now)
		_, wanted = a.reads(now + rest - 1)
		require.False(t, wanted)
		now += rest
	}
}

// TestAgendaWhenTheClockIsSet: back, by hours: it reads again and keeps a horizon that is near; forth: at once.
func TestAgendaWhenTheClockIsSet(t *testing.T) {
	a, hour := newAgenda(1, ground.Real{}), time.Hour.Milliseconds()
	readAll(a, 10*hour)
	by, wanted := a.reads(5 * hour)
	require.True(t, wanted)
	require.Equal(t, 5*hour+horizon.Milliseconds(), by)
	a.wasRead(nil, 5*hour)
	_, wanted = a.reads(5*hour + 1)
	require.False(t, wanted)
	_, wanted = a.reads(20 * hour)
	require.True(t, wanted)
}

// TestRemindersAsBytes: golden bytes; what is cut short, out of order, doubled, or of another form is refused (SHD-11).
func TestRemindersAsBytes(t *testing.T) {
	require.Empty(t, reminders(nil).encode())
	l := reminders(nil).with(reminder{at: 2, name: "b", body: []byte("two"), tries: 3}).with(reminder{at: 2, name: "a"}).
		with(reminder{at: 1, name: "c"}).with(reminder{at: 5, name: "x"}).without("x")
	b := l.encode()
	require.Equal(t, "\x01\x03"+
		"\x01\x00\x00\x00\x00\x00\x00\x00\x01c\x00\x00"+
		"\x02\x00\x00\x00\x00\x00\x00\x00\x01a\x00\x00"+
		"\x02\x00\x00\x00\x00\x00\x00\x00\x01b\x03\x03two", string(b))
	is, err := parseReminders(b)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(l), fmt.Sprint(is))
	for n := range b[:len(b)-1] {
		_, err := parseReminders(b[:n+1])
		require.Error(t, err, n)
	}
	for what, bad := range map[string]reminders{
		"order": {l[1], l[0]}, "twice": {l[0], {at: 7, name: "c"}}, "no name": {{at: 1}},
		"long name": {{name: strings.Repeat("n", MaxReminderName+1)}},
		"many":      make(reminders, MaxReminders+1), "large": {{name: "a", body: make([]byte, MaxReminderBody+1)}},
	} {
		_, err := parseReminders(bad.encode())
		require.Error(t, err, what)
	}
	_, err = parseReminders([]byte{2, 0})
	require.ErrorContains(t, err, "form 2")
	_, err = parseReminders(append(b, 0))
	require.Error(t, err)
}

// FuzzReminders: nothing that is stored panics, and what can be read is written as it was.
func FuzzReminders(f *testing.F) {
	l := reminders(nil).with(reminder{at: 2, name: "b", body: []byte("two"), tries: 3}).with(reminder{at: 1, name: "a"})
	f.Add(l.encode())
	f.Add([]byte{1, 0})
	f.Add([]byte{1, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseReminders(b)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(l), MaxReminders)
		again, err := parseReminders(l.encode())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(l), fmt.Sprint(again))
	})
}

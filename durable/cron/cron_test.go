// Tests of lines: what they are, when they fire, and by a real node that they do.

package cron

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/store"
)

// at reads a time with its offset.
func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse("2006-01-02 15:04 -0700", s)
	require.NoError(t, err)
	return v
}

// TestLinesThatAreRefused: those that cannot be read, never fire, or name an unknown zone; none panics.
func TestLinesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		line, zone string
		want       error
	}{
		{"", "", ErrLine}, {"* * * *", "", ErrLine}, {"* * * * * *", "", ErrLine}, {"60 * * * *", "", ErrLine},
		{"* 24 * * *", "", ErrLine}, {"* * 0 * *", "", ErrLine}, {"* * * 13 *", "", ErrLine}, {"* * * * 8", "", ErrLine},
		{"5-1 * * * *", "", ErrLine}, {"*/0 * * * *", "", ErrLine}, {"@reboot", "", ErrLine}, {"@every", "", ErrLine},
		{"@every 0s", "", ErrLine}, {"@every -1h", "", ErrLine}, {"@every 1ms", "", ErrLine}, {"@every ", "", ErrLine},
		{"TZ=", "", ErrLine}, {"CRON_TZ=UTC * * * * *", "", ErrLine}, {strings.Repeat("1,", 200), "", ErrLine},
		{"* * * * *", "Mars/Olympus", ErrZone}, {"* * * * *", "Local", ErrZone}, {"* * * * *", "../x", ErrZone},
		{"* * * * *", strings.Repeat("z", 300), ErrZone},
		{"0 0 30 2 *", "", ErrNever}, {"0 0 31 4,6,9,11 *", "Asia/Tokyo", ErrNever},
	} {
		_, err := Parse(c.line, c.zone)
		require.ErrorIs(t, err, c.want, "%q %q", c.line, c.zone)
	}
}

// TestNext: when lines fire, in their zones; also where clocks are set forth, back, and leap years are far away.
func TestNext(t *testing.T) {
	for _, c := range []struct{ line, zone, after, want string }{
		{"30 3 * * *", "", "2026-05-01 03:29 +0000", "2026-05-01 03:30 +0000"},
		{"30 3 * * *", "", "2026-05-01 03:30 +0000", "2026-05-02 03:30 +0000"},
		{"30 3 * * *", "Europe/Berlin", "2026-05-01 00:00 +0000", "2026-05-01 01:30 +0000"},
		{"30 3 * * *", "Asia/Kathmandu", "2026-05-01 00:00 +0000", "2026-05-01 21:45 +0000"},
		{"0 9 * * mon-fri", "America/New_York", "2026-05-01 20:00 +0000", "2026-05-04 13:00 +0000"},
		{"0 0 29 2 *", "", "2026-05-01 00:00 +0000", "2028-02-29 00:00 +0000"},
		{"0 0 29 2 *", "", "2096-05-01 00:00 +0000", "2104-02-29 00:00 +0000"},
		{"@monthly", "", "2026-05-01 00:00 +0000", "2026-06-01 00:00 +0000"},
		{"@every 90m", "", "2026-05-01 00:00 +0000", "2026-05-01 01:30 +0000"},
		// clocks go from 02:00 to 03:00: the half past two is left out that day
		{"30 2 * * *", "Europe/Berlin", "2026-03-28 12:00 +0000", "2026-03-30 00:30 +0000"},
		{"0 * * * *", "Europe/Berlin", "2026-03-29 00:30 +0000", "2026-03-29 01:00 +0000"},
		// clocks go from 03:00 to 02:00
		{"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00 +0000", "2026-10-25 00:30 +0000"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 00:30 +0000", "2026-10-25 01:30 +0000"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 01:30 +0000", "2026-10-26 01:30 +0000"},
	} {
		l, err := Parse(c.line, c.zone)
		require.NoError(t, err)
		require.Equal(t, at(t, c.want).UTC(), l.Next(at(t, c.after)).UTC(), "%v after %s", l, c.after)
	}
}

// fake is a Tx.
type fake struct {
	now, set time.Time
}

func (f *fake) Now() time.Time { return f.now }
func (f *fake) Remind(name string, at time.Time, body []byte) error {
	f.set = at
	return nil
}

// TestMissedOccurrencesFireOnce: after an outage the next time is one that is still to come.
func TestMissedOccurrencesFireOnce(t *testing.T) {
	l, err := Parse("0 * * * *", "")
	require.NoError(t, err)
	f := &fake{now: at(t, "2026-05-01 00:30 +0000")}
	require.NoError(t, l.Remind(f, "x", nil))
	require.Equal(t, at(t, "2026-05-01 01:00 +0000").UTC(), f.set)
	f.now = at(t, "2026-05-09 17:20 +0000") // nobody lived for eight days, and the one of 01:00 fires
	require.NoError(t, l.Remind(f, "x", nil))
	require.Equal(t, at(t, "2026-05-09 18:00 +0000").UTC(), f.set)
}

// FuzzParse: nothing panics, and what is taken fires.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"* * * * *", "TZ=", "CRON_TZ=", "@every 1h", "*/5 1-3,7 ? jan-mar sun", "@@", "0 0 30 2 *"} {
		f.Add(s, "UTC")
	}
	f.Fuzz(func(t *testing.T, line, zone string) {
		l, err := Parse(line, zone)
		if err != nil {
			return
		}
		after := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
		if next := l.Next(after); !next.After(after) {
			t.Fatalf("%v fires at %v", l, next)
		}
	})
}

// TestOnANode: an entity fires by its line, again and again, from the message on that has set it (SHD-11).
func TestOnANode(t *testing.T) {
	line, err := Parse("@every 1s", "")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close()) }()
	e, err := durable.Register(node, durable.Type[[]string, bool, []string]{Name: "ticker", Store: store.Memory(),
		Handle: func(tx *durable.Tx[[]string], begin *bool) ([]string, error) {
			if *begin {
				return *tx.State, line.Remind(tx, "tick", []byte("t"))
			}
			return *tx.State, nil
		},
		Reminded: func(tx *durable.Tx[[]string], name string, body []byte) error {
			*tx.State = append(*tx.State, fmt.Sprintf("%s=%s", name, body))
			if len(*tx.State) == 3 {
				return nil
			}
			return line.Remind(tx, name, body)
		}})
	require.NoError(t, err)
	begin, no := true, false
	_, err = e.Ask(ctx, "a", &begin)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		got, err := e.Ask(ctx, "a", &no)
		return err == nil && len(got) == 3 && got[2] == "tick=t"
	}, 2*time.Minute, 10*time.Millisecond)
}

// Tests of the flight record of a running node: on demand, when it is stopped and ends, bounded, or not at all.

package driver

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/flight"
	"github.com/kith-io/kith/membership"
)

// replayed reads a record and replays it, and returns what it ended with: the last view, and why the node ended.
func replayed(t *testing.T, file []byte) (h flight.Header, v *membership.View, ended *membership.Ended, stops int) {
	t.Helper()
	rec, err := flight.Read(bytes.NewReader(file))
	require.NoError(t, err)
	require.NoError(t, rec.Replay(func(s *flight.Step) error {
		if s.Effects.View != nil {
			v = s.Effects.View
		}
		if s.Effects.Ended != nil {
			ended = s.Effects.Ended
		}
		if o := s.Effects.Suspend; o != nil && o.On {
			stops++
		}
		return nil
	}))
	return rec.Header, v, ended, stops
}

// flightsIn lists the flight records in a directory.
func flightsIn(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "flight-*.kith"))
	require.NoError(t, err)
	return list
}

// What a node was given goes through another node of its kind and gives the same views, with messages that park, a type
// of each mode and moves in between.
func TestFlightRecordOnDemand(t *testing.T) {
	p := newPair(t)
	for _, r := range p.at {
		require.NoError(t, r.TellWait(t.Context(), "x", []byte("first")))
	}
	for _, d := range []*Driver{p.a, p.b} {
		eventually(t, func() bool { return d.View().CountUp() == 2 })
		var file bytes.Buffer
		require.NoError(t, WriteFlight(t.Context(), d, &file))
		h, v, ended, _ := replayed(t, file.Bytes())
		require.Equal(t, d.Self().String(), h.Node)
		require.Equal(t, "asked for", h.Why)
		require.Zero(t, h.From, "it begins at the start")
		require.Equal(t, 2, v.CountUp())
		require.Nil(t, ended)
	}
}

// A node that was downed leaves a record that says so; one that leaves on an order leaves none.
func TestFlightRecordOfAnAbnormalEnd(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "made"), filepath.Join(t.TempDir(), "never")}
	n := 1
	p := newPair(t, func(c *Config) { c.FlightRecord.Directory, n = dirs[n], n-1 })
	require.NoError(t, p.a.Leave(t.Context()))
	require.Empty(t, flightsIn(t, dirs[1]))
	require.NoError(t, p.b.Down(t.Context(), p.b.Self().Addr.String()))
	<-p.b.Done()
	list := flightsIn(t, dirs[0])
	require.Len(t, list, 1)
	require.True(t, strings.HasSuffix(list[0], "-downed.kith"), list[0])
	file, err := os.ReadFile(list[0])
	require.NoError(t, err)
	h, _, ended, _ := replayed(t, file)
	require.Equal(t, p.b.Self().String(), h.Node)
	require.Equal(t, p.b.Err().Error(), h.Why)
	require.NotNil(t, ended)
	require.Equal(t, membership.EndDowned, ended.Kind)
}

// Without a record nothing is written, and a caller that asks gets an error.
func TestNoFlightRecord(t *testing.T) {
	dir := t.TempDir()
	p := newPair(t, func(c *Config) { c.FlightRecord = FlightRecord{Bytes: -1, Directory: dir} })
	require.ErrorIs(t, WriteFlight(t.Context(), p.a, &bytes.Buffer{}), ErrNoFlightRecord)
	require.NoError(t, p.a.Down(t.Context(), p.b.Self().Addr.String()))
	<-p.b.Done()
	require.Empty(t, flightsIn(t, dir))
	small := Config{FlightRecord: FlightRecord{Bytes: 1}}.WithDefaults()
	require.ErrorContains(t, small.Validate(), "FlightRecord.Bytes is 1")
}

// A panic of the control goroutine leaves a record on its way out, and goes on as the same panic.
func TestFlightRecordOfAPanic(t *testing.T) {
	dir := t.TempDir()
	p := newPair(t, func(c *Config) { c.FlightRecord.Directory = dir })
	onControl(p.a, func() {
		defer func() { require.Equal(t, "planted", recover()) }()
		ended := false
		defer panicking(p.a, &ended)
		panic("planted")
	})
	list := flightsIn(t, dir)
	require.Len(t, list, 1)
	file, err := os.ReadFile(list[0])
	require.NoError(t, err)
	h, _, _, _ := replayed(t, file)
	require.Contains(t, h.Why, "panicked")
}

// Eight records stay in a directory, the newest ones, and nothing of those that could not be written.
func TestFlightRecordsAreBounded(t *testing.T) {
	dir := t.TempDir()
	p := newPair(t)
	var rec *flight.Record
	onControl(p.a, func() {
		var err error
		rec, err = flightRecord(p.a, "a test")
		require.NoError(t, err)
	})
	for i := range flightFiles + 3 {
		name := flightPrefix + time.Unix(int64(i), 0).UTC().Format("20060102T150405") + flightSuffix
		_, err := storeFlight(dir, name, rec)
		require.NoError(t, err)
	}
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, all, flightFiles)
	require.Equal(t, "flight-19700101T000003.kith", all[0].Name())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	_, err = storeFlight(filepath.Join(dir, "file"), "flight-x.kith", rec)
	require.Error(t, err)
}

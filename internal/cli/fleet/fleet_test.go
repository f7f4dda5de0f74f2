// Tests of what commands do with several processes; the whole runs in the tests of the commands.

package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli"
)

// What was due while the sender was held up keeps the moment at which it was due: no coordinated omission.
func TestDueMomentsAreKept(t *testing.T) {
	var first, last time.Time
	n := 0
	for at := range Due(t.Context(), 1e6, 0) {
		if n == 0 {
			first = at
			for time.Since(first) < time.Millisecond { // held up
			}
		}
		last = at
		if n++; n == 1000 {
			break
		}
	}
	require.Equal(t, 999*time.Microsecond, last.Sub(first).Round(time.Microsecond))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range Due(over, 1, 0) {
		t.Fatal("it has ended")
	}
}

// Without a rate the caller alone decides how fast it goes.
func TestDueWithoutARate(t *testing.T) {
	n := 0
	for range Due(t.Context(), 0, 0) {
		if n++; n == 1000 {
			break
		}
	}
	require.Equal(t, 1000, n)
}

// counted answers a call with the number that it is, or with an error.
type counted int

// Call answers.
func (c counted) Call(_ context.Context, _ string, _, result any) error {
	if c == 0 {
		return errors.New("zero")
	}
	*result.(*int) = int(c)
	return nil
}

// Answers stand where their processes do, and every error is reported.
func TestAsk(t *testing.T) {
	all, err := Ask[int](t.Context(), []counted{3, 1, 2}, "n", cli.None{})
	require.NoError(t, err)
	require.Equal(t, []int{3, 1, 2}, all)
	_, err = Ask[int](t.Context(), []counted{0, 1, 0}, "n", cli.None{})
	require.EqualError(t, err, "zero\nzero")
}

// What is waited for ends with what is wanted, with an error of a look, or with the context, and tells what was seen.
func TestUntil(t *testing.T) {
	n := 0
	look := func(context.Context) (int, error) { n++; return n, nil }
	got, err := Until(t.Context(), time.Microsecond, look, func(n int) bool { return n == 3 })
	require.NoError(t, err)
	require.Equal(t, 3, got)
	bad := errors.New("bad")
	_, err = Until(t.Context(), 0, func(context.Context) (int, error) { return 0, bad }, func(int) bool { return false })
	require.ErrorIs(t, err, bad)
	over, cancel := context.WithCancelCause(t.Context())
	cancel(bad)
	got, err = Until(over, time.Hour, look, func(int) bool { return false })
	require.ErrorIs(t, err, bad)
	require.Equal(t, 4, got)
}

// Without TLS there are no files, and nothing to remove.
func TestCerts(t *testing.T) {
	require.Zero(t, Certs("").Of("n1"))
	Certs("").Remove()
	certs, err := NewCerts(Names(2), "one", "two")
	require.NoError(t, err)
	for _, name := range []string{"n1", "n2"} {
		files := certs.Of(name)
		for _, f := range []string{files.Cert, files.Key, files.CA} {
			require.FileExists(t, f)
		}
		require.Equal(t, files.Key, files.TLS().KeyFile)
	}
	certs.Remove()
	require.NoDirExists(t, string(certs))
}

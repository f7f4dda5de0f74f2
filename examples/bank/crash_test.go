// Tests with real processes that are killed.

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test's own binary be a process of the service.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "node" {
		main()
	}
	os.Exit(m.Run())
}

// TestDemo: three processes, one of which dies while money moves: each account has what it should have, on a file and on
// the processes' own disks.
func TestDemo(t *testing.T) {
	for _, kind := range []string{"sqlite", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			out := new(bytes.Buffer)
			require.NoError(t, demo(t.Context(), out, 2*time.Second, kind), "%s", out)
			require.Contains(t, out.String(), "kill -9")
			require.Contains(t, out.String(), "each account has what it should have; the sum is 100000\n")
		})
	}
}

// TestDemoFindsWhatIsWrong: the demo does not say so of a service that makes money.
func TestDemoFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"balance":1000000}`)
	}))
	t.Cleanup(s.Close)
	p, err := start("--db=" + filepath.Join(t.TempDir(), "db"))
	require.NoError(t, err)
	t.Cleanup(p.leave)
	err = move(t.Context(), new(bytes.Buffer), []string{s.Listener.Addr().String()}, time.Millisecond, p.cmd.Process)
	require.ErrorContains(t, err, "has 1000000 and should have")
}

// TestAllDie: the money outlives the death of every process.
func TestAllDie(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 3 {
		p, err := start("--db=" + filepath.Join(dir, "db"))
		require.NoError(t, err)
		for id, want := range map[string]int64{"anna": 70, "ben": 30} {
			if i == 0 && id == "anna" {
				_, err = ask(ctx, []string{p.door}, "salary", id, order{Deposit: 100})
				require.NoError(t, err)
				_, err = ask(ctx, []string{p.door}, "rent", id, order{Transfer: 30, To: "ben"})
				require.NoError(t, err)
			} else if i > 0 {
				for n, look := int64(-1), 0; n < want; look++ { // what had not arrived yet does so now
					a, err := ask(ctx, []string{p.door}, fmt.Sprint("read ", i, look), id, order{})
					require.NoError(t, err)
					require.LessOrEqual(t, a.Balance, want)
					n = a.Balance
				}
			}
		}
		require.NoError(t, p.cmd.Process.Kill())
		p.leave()
	}
}

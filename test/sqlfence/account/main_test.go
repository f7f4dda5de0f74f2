// The program of docs/sql.md, run as it stands there.

package main

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if os.Getenv("ACCOUNT_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Each run is a cluster of its own, which finds what the ones before have left.
func TestAccountsOutliveTheirProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bank.db")
	run := func(args ...string) (string, error) {
		cmd := exec.Command(os.Args[0], append([]string{file}, args...)...)
		cmd.Env = append(os.Environ(), "ACCOUNT_CHILD=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, step := range []struct{ name, cents, want string }{
		{"anna", "500", "anna has 500\n"}, {"ben", "7", "ben has 7\n"}, {"anna", "-200", "anna has 300\n"},
		{"anna", "-301", "the account is short"}, {"anna", "", "invalid syntax"}, {"anna", "-300", "anna has 0\n"},
	} {
		out, _ := run(step.name, step.cents)
		require.Contains(t, out, step.want)
	}
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	defer db.Close()
	var n, sum int
	require.NoError(t, db.QueryRow("select count(*), sum(cents) from journal").Scan(&n, &sum))
	require.Equal(t, []int{4, 7}, []int{n, sum})
}

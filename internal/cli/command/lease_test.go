// Tests of the lease of kith run (MEM-10).

package command

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
	"github.com/kith-io/kith/lease"
)

// What is wrong with a lease is said where it stands, before anything starts, and no directory is made.
func TestLeaseIsChecked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "leases")
	file := filepath.Join(t.TempDir(), "kith.yaml")
	for text, want := range map[string]string{
		"resolver: lease-majority": "--resolver=lease-majority needs --lease",
		"lease: file://" + dir:     "--lease is for --resolver=lease-majority and --session",
		"session: true":            "--session needs --lease",
		"session: true\nsession-ttl: 100ms\nlease: file://" + dir:    "--session-ttl is 100ms, must be 1s to 1m",
		"session: true\nsession-outage: 39s\nlease: file://" + dir:   "--session-outage is 39s, must be 40s",
		"session: true\nsession-outage: 21h\nlease: file://" + dir:   "to 20h",
		"session: true\nlease: etcd://h:2379":                        "it knows file, kubernetes (docs/leases.md)",
		"resolver: lease-majority\nlease: /run/leases":               file + ":2: --lease: ",
		"resolver: lease-majority\nlease: etcd://h:2379":             "it knows file, kubernetes (docs/leases.md)",
		"resolver: lease-majority\nlease: file://" + dir + "?ttl=9s": "its ttl is 9s, must be at least 1m",
		"resolver: lease-majority\nlease: postgres://a:b@h/d":        "a password",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		code, _, stderr := program(t, "config", "--check", file)
		require.Equal(t, env.ExitUsage, code, text)
		require.Contains(t, stderr, want, text)
	}
	require.NoError(t, os.WriteFile(file, []byte("resolver: lease-majority\nlease: file://"+dir), 0o600))
	code, out, stderr := program(t, "config", "--check", file)
	require.Equal(t, env.ExitOK, code, stderr)
	require.Contains(t, out, "is good")
	require.NoDirExists(t, dir)
}

// A build with further kinds of leases takes their addresses.
func TestLeaseOfAnotherBuild(t *testing.T) {
	kind := lease.Kind{Scheme: "etcd", Open: func(_ context.Context, _ lease.Address, ttl time.Duration) (lease.Service,
		error) {
		return lease.OpenFile(t.TempDir(), ttl)
	}}
	with := func(args []string, e *env.Env) int { return executeWith([]lease.Kind{kind}, args, e) }
	code, out, stderr := envtest.Run(t, with, Name, "config", "--resolver=lease-majority", "--lease=etcd://h:2379")
	require.Equal(t, env.ExitOK, code, stderr)
	require.Regexp(t, `lease +etcd://h:2379 +--lease`, out)
}

// The flags of tenures reach the node, and what does not go together is said (CARD-2).
func TestTenureFlags(t *testing.T) {
	code, out, stderr := program(t, "config", "--tenure", "--tenure-voters=5", "--tenure-role=core")
	require.Equal(t, env.ExitOK, code, stderr)
	require.Regexp(t, `tenure-voters +5 +--tenure-voters`, out)
	require.Zero(t, (&tenureFlags{TenureVoters: 3}).tenure())
	f := tenureFlags{Tenure: true, TenureVoters: 3, TenureGrant: time.Second, TenureRole: "core"}
	require.Equal(t, kith.Tenure{Voters: 3, Grant: time.Second, Role: "core"}, f.tenure())
	file := filepath.Join(t.TempDir(), "kith.yaml")
	for text, want := range map[string]string{
		"tenure: true\ntenure-voters: 4":                            "4 seats, must be 3, 5 or 7",
		"tenure: true\ntenure-voters: 0":                            "--tenure-voters is 0",
		"tenure: true\ntenure-grant: 1ms":                           "a grant counts for 1ms, must be",
		"tenure: true\nsession: true\nlease: file://" + t.TempDir(): "--tenure and --session: nodes have",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		code, _, stderr := program(t, "config", "--check", file)
		require.Equal(t, env.ExitUsage, code, text)
		require.Contains(t, stderr, want, text)
	}
}

// The stores of sessions last as long as their flags say, whatever ttl the address names for the resolver.
func TestSessionStores(t *testing.T) {
	f := leaseFlags{Lease: "file://" + t.TempDir() + "?ttl=3m", Session: true, SessionTTL: 5 * time.Second,
		SessionOutage: 10 * time.Minute}
	require.NoError(t, f.openLease("lease-majority"))
	require.Equal(t, 3*time.Minute, f.lease.TTL())
	require.Equal(t, 5*time.Second, f.session.Service.TTL())
	require.Equal(t, 673*time.Second, f.session.Ends.TTL())
	require.NoError(t, kith.Config{Sharding: kith.Sharding{Session: f.session}}.Validate())
	require.NoError(t, f.closeLease())
}

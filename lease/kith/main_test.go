// A test of the command line of this build (MEM-10).

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli/command"
	"github.com/kith-io/kith/lease/etcd"
	"github.com/kith-io/kith/lease/postgres"
)

func TestMain(m *testing.M) {
	if os.Getenv("KITH_LEASE_MAIN") != "" {
		os.Exit(command.Main(command.Name, etcd.Kind, postgres.Kind))
	}
	os.Exit(m.Run())
}

// This build takes the addresses of all leases, and asks no service before a node runs.
func TestAddresses(t *testing.T) {
	for _, address := range []string{"etcd://127.0.0.1:1/x?ttl=90s", "postgres://kith@127.0.0.1:1/x?ttl=90s",
		"file:///run/kith"} {
		cmd := exec.Command(os.Args[0], "config", "--resolver=lease-majority", "--lease="+address)
		cmd.Env = append(os.Environ(), "KITH_LEASE_MAIN=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), address)
	}
}

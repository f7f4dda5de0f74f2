// Command kith is the node binary with leases in etcd and PostgreSQL, beside those that every build has: docs/leases.md.
package main

import (
	"os"

	"github.com/kith-io/kith/internal/cli/command"
	"github.com/kith-io/kith/lease/etcd"
	"github.com/kith-io/kith/lease/postgres"
)

func main() { os.Exit(command.Main(command.Name, etcd.Kind, postgres.Kind)) }

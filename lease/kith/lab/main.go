// Command lab is a node process of the laboratory that may hold sessions in etcd and PostgreSQL, beside what every one
// may: lab failover --mode=session and lab chaos --session start it as bin/lab-leases.
package main

import (
	"fmt"
	"os"

	"github.com/kith-io/kith/internal/lab/chaos"
	"github.com/kith-io/kith/lease/etcd"
	"github.com/kith-io/kith/lease/postgres"
)

func main() {
	if err := chaos.Child(os.Stdin, os.Stdout, os.Stderr, etcd.Kind, postgres.Kind); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

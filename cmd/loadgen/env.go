// Processes of a measurement: what they are called, and how each is started.

package main

import (
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
)

// clusterName is the name of the cluster of the worker processes, certName that of the certificate that all of them
// share.
const (
	clusterName = "loadgen"
	certName    = "worker"
)

// startWorker starts this program again as a process of a measurement, on the given cores or on all.
func startWorker(e *env.Env, name string, cpus []int) (*cli.Child, error) {
	o := e.Self("worker-child", false)
	o.Name, o.CPUs = name, cpus
	return cli.Start(o)
}

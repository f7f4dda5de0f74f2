// What every command has of the world: streams, exit codes, processes of a measurement.

package main

import (
	"io"
	"os"

	"github.com/kith-io/kith/internal/cli"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // an error, or messages that were neither delivered nor refused
	exitUsage  = 2 // the command line is wrong; nothing was started
)

// clusterName is the name of the cluster of the worker processes, certName that of the certificate that all of them
// share.
const (
	clusterName = "loadgen"
	certName    = "worker"
)

// env is what a command has of the world.
type env struct {
	stdin    io.Reader
	stdout   io.Writer
	stderr   *os.File
	selfArgs []string // what to put before the arguments of a child process; tests need it
	selfEnv  []string
}

// startWorker starts this program again as a process of a measurement, on the given cores or on all.
func (e *env) startWorker(name string, cpus []int) (*cli.Child, error) {
	return cli.Start(cli.Options{Name: name, Args: append(e.selfArgs, "worker"), Env: e.selfEnv, CPUs: cpus})
}

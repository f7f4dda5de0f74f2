// What a command has of the world, and the exit codes.

package command

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/kith-io/kith/internal/cli"
)

// The exit codes.
const (
	exitOK          = 0 // did what was asked; a node left gracefully
	exitFailed      = 1 // an error, a lost or reordered message, a violation
	exitUsage       = 2 // the command line is wrong; nothing was started
	exitEnded       = 3 // run: the cluster ended this node (downed, removed, isolated, twin)
	exitNotAdmitted = 4 // run: not admitted in time
	exitRefused     = 5 // run: the cluster refused this node for good
)

// env is what a command has of the world.
type env struct {
	program  string // the name that it was built by
	stdin    io.Reader
	stdout   io.Writer
	stderr   *os.File
	selfArgs []string // what to put before the arguments of a child process; tests need it
	selfEnv  []string
}

// exitError carries an exit code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// startChild starts this program again as a node process, or another build of it.
func (e *env) startChild(name, build string, stderr io.Writer) (*cli.Child, error) {
	return cli.Start(cli.Options{Name: name, Path: build, Args: append(e.selfArgs, "child"), Env: e.selfEnv,
		Stderr: stderr})
}

// clientFor returns a client of HTTP that believes the authority of a file, or with none those of the machine.
func clientFor(ca string) (*http.Client, error) {
	if ca == "" {
		return &http.Client{}, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", ca)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, nil
}

// table prints rows in columns.
func table(e *env, rows ...[]string) {
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush()
}

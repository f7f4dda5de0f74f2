// What the program says of itself: its exit codes and its version.

package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
)

// exitCodes says what each of them means: --help and docs/admin.md have it from here.
var exitCodes = []struct {
	code int
	what string
}{
	{env.ExitOK, "done; a node left gracefully"},
	{env.ExitFailed, "an error; the node that was asked refuses, or does not answer; the output cannot be " +
		"written; status: not ready; a violation"},
	{env.ExitUsage, "the command line or the configuration is wrong, or an address is taken; nothing was started. And " +
		"what the Go runtime gives a process that it ends: a fatal error, lack of memory, SIGQUIT"},
	{env.ExitEnded, "run: the cluster ended this node (downed, removed, isolated); start it again"},
	{env.ExitNotAdmitted, "run: not admitted within --join-timeout; start it again"},
	{env.ExitRefused, "run: the cluster refused this node for good; look at its configuration first"},
	{env.ExitNoCluster, "run: no cluster was found within --bootstrap-timeout; start it again"},
	{env.ExitStatesLost, "run: the node left as it was told to, and states of entities are lost; its log names them"},
	{env.ExitInterrupted, "run: SIGINT came while it left, and ended it at once"},
}

// about is what --help says of the program.
func about() string {
	var b strings.Builder
	b.WriteString("kith: gossip membership, failure detection and sharded entities.\n\nExit codes:\n")
	for _, x := range exitCodes {
		fmt.Fprintf(&b, "\n  - %d: %s", x.code, x.what)
	}
	return b.String()
}

// versionCmd is the flags of kith version.
type versionCmd struct {
	JSON bool `name:"json" help:"Print as one JSON object."`
}

// Run prints what this program was built from.
func (c *versionCmd) Run(e *env.Env) error {
	b := cli.BuildOf()
	if c.JSON {
		return json.NewEncoder(e.Stdout).Encode(b)
	}
	commit := cmp.Or(b.Commit, "unknown")
	if b.Modified {
		commit += ", with changes"
	}
	cli.Table(e.Stdout, []string{"kith", b.Version}, []string{"commit", commit}, []string{"built by", b.Go},
		[]string{"wire version", fmt.Sprintf("%d, and down to %d with older nodes", b.Wire, b.OldestWire)})
	return nil
}

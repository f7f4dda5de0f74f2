// What flags of loadgen run say of each other: those that were given and would have no effect are refused.

package main

import (
	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/cli"
)

// given returns the names of the flags that stand on the command line.
func given(parsed *kong.Context) map[string]bool {
	names := map[string]bool{}
	for _, p := range parsed.Path {
		if p.Flag != nil {
			names[p.Flag.Name] = true
		}
	}
	return names
}

// contradictions returns the faults of flags that were given and would have no effect beside others.
func (c *runCmd) contradictions(given map[string]bool) (errs cli.Faults) {
	errs.Must(!c.Inline || !given["exec"] || c.Exec == "inline", "--inline contradicts --exec=%s", c.Exec)
	for _, name := range []string{"callback", "inflight", "timeout"} {
		errs.Must(!given[name] || c.Mode == "ask", "--%s needs --mode=ask", name)
	}
	return errs
}

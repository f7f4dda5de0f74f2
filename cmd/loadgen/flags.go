// What flags of loadgen run say of each other: those that were given and would have no effect are refused.

package main

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kong"
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
func (c *runCmd) contradictions(given map[string]bool) (errs []error) {
	if c.Inline && given["exec"] && c.Exec != "inline" {
		errs = append(errs, errors.New("--inline contradicts --exec="+c.Exec))
	}
	for _, name := range []string{"callback", "inflight", "timeout"} {
		if given[name] && c.Mode != "ask" {
			errs = append(errs, fmt.Errorf("--%s needs --mode=ask", name))
		}
	}
	return errs
}

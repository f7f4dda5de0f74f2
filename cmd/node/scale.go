// node scale: how fast and how costly a large membership is, simulated.

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/scale"
)

// scaleCmd is the flags of node scale.
type scaleCmd struct {
	Nodes      int      `default:"1000" help:"Members of the simulated cluster, 2 to 10000."`
	Seed       uint64   `default:"1" help:"Everything random comes from it: one seed, one result."`
	Parts      []string `help:"${parts_help}"`
	Crashes    int      `default:"0" help:"${crashes_help}"`
	Build      bool     `help:"${build_help}"`
	Hours      float64  `default:"1" help:"${hours_help}"`
	Rounds     int      `default:"10" help:"${rounds_help}"`
	Progress   bool     `help:"Show progress although stderr is not a terminal."`
	CPUProfile string   `name:"cpuprofile" type:"path" help:"Write a profile of the processor's time to this file."`
}

// Validate is called by the parser.
func (c *scaleCmd) Validate() error {
	var errs []error
	if c.Nodes < 2 || c.Nodes > scale.MaxNodes {
		errs = append(errs, fmt.Errorf("--nodes must be 2 to %d", scale.MaxNodes))
	}
	if c.Crashes < 0 || c.Crashes > 100_000 {
		errs = append(errs, errors.New("--crashes must be 0 to 100000"))
	}
	if !(c.Hours > 0 && c.Hours <= 1000) {
		errs = append(errs, errors.New("--hours must be more than 0 and at most 1000"))
	}
	if c.Rounds < 1 || c.Rounds > 100_000 {
		errs = append(errs, errors.New("--rounds must be 1 to 100000"))
	}
	for _, p := range c.Parts {
		if !slices.Contains(scale.Parts(), p) {
			errs = append(errs, fmt.Errorf("--parts: no part %q, there are %s", p, strings.Join(scale.Parts(), ",")))
		}
	}
	return errors.Join(errs...)
}

// Run measures and prints the last line.
func (c *scaleCmd) Run(e *env) error {
	if c.CPUProfile != "" {
		f, err := os.Create(c.CPUProfile)
		if err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	progress := cli.NewProgress(e.stderr, c.Progress)
	shown := time.Time{}
	result, err := scale.Run(scale.Config{Nodes: c.Nodes, Seed: c.Seed, Parts: c.Parts, Crashes: c.Crashes,
		Hours: c.Hours, Rounds: c.Rounds, Build: c.Build,
		Progress: func(line string) {
			if time.Since(shown) >= stormEvery {
				shown = time.Now()
				progress.Printf("%s", line)
			}
		}})
	if err != nil {
		return err
	}
	return cli.Line(e.stdout, "scale", result)
}

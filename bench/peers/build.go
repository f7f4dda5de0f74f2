// Building the programs of the peers.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goCommand is the go command that make was told to use.
func goCommand() string {
	if g := os.Getenv("GO"); g != "" {
		return g
	}
	return "go"
}

// output runs a command and makes its output the error when it fails.
func output(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
}

// need returns the path of a program of the system, or an error that says what to install.
func need(program, install string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is not installed (%s)", program, install)
	}
	return path, nil
}

// prepare makes the folder that programs are built into.
func (r *run) prepare() error {
	var err error
	if r.dir, err = filepath.Abs(r.Dir); err != nil {
		return err
	}
	r.out = r.Out
	if !filepath.IsAbs(r.out) {
		r.out = filepath.Join(r.dir, "..", "..", r.out)
	}
	return os.MkdirAll(r.out, 0o755)
}

// build makes the programs of the wanted systems. Those of others that fail are named and left out.
func (r *run) build(ctx context.Context) error {
	for _, s := range systems {
		if !r.wantedSystem(s.name) {
			continue
		}
		start, err := s.build(ctx, r)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (s.name == ours || s.name == raw):
			return fmt.Errorf("build %s: %w", s.name, err)
		case err != nil:
			r.note("%s has no rows: cannot be built: %v", s.name, err)
			continue
		}
		r.progress.Printf("built %s", s.name)
		r.built = append(r.built, builtSystem{s, start})
	}
	return nil
}

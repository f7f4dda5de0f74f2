// Builds: the trees that are compared, and the program compiled against each.

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is the program that is compiled against each tree.
//
//go:embed program/*.go
var source embed.FS

// basePath is the file that holds the base, from the root of the work tree.
const basePath = "bench/gate/BASE"

// The names of the builds in raw lines.
const (
	headName  = "head"
	baseName  = "base"
	fixedName = "fixed" // the commit that is always reported, when it is not the base
)

// compared is the flags that say which trees are compared.
type compared struct {
	Base    string `help:"Commit to hold this tree against; empty: the one in the file bench/gate/BASE."`
	BaseDir string `type:"existingdir" help:"Directory with the base's tree, in place of a commit."`
	HeadDir string `type:"existingdir" help:"Directory with the tree to judge; empty: this work tree as it is."`
	Fixed   string `default:"ea35bf4" help:"Commit that is measured beside when it is not the base; - for none."`
}

// build is the program, compiled against one tree.
type build struct {
	Name   string `json:"build"`  // headName, baseName or fixedName
	Commit string `json:"commit"` // or the directory
	Sum    string `json:"sha256"` // of the program
	path   string // of the program
}

// git returns what a git command prints.
func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if e, ok := err.(*exec.ExitError); ok {
		return "", fmt.Errorf("git %s: %s", args[0], bytes.TrimSpace(e.Stderr))
	}
	return strings.TrimSpace(string(out)), err
}

// build compiles the program against all trees: head first, then the base, then the fixed commit if it is another.
func (f *compared) build(ctx context.Context, tmp string, say func(string, ...any)) ([]build, error) {
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	trees, err := f.trees(ctx, root)
	if err != nil {
		return nil, err
	}
	var all []build
	for _, t := range trees {
		say("building %s: %s", t.name, t.said)
		dir := t.dir
		if dir == "" {
			dir = filepath.Join(tmp, t.name)
			if err := export(ctx, root, t.commit, dir); err != nil {
				return nil, err
			}
		}
		b := build{Name: t.name, Commit: t.said, path: filepath.Join(tmp, "program-"+t.name)}
		if err := compile(ctx, tmp, dir, b.path); err != nil {
			return nil, fmt.Errorf("%s: %w", t.said, err)
		}
		raw, err := os.ReadFile(b.path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(raw)
		b.Sum = hex.EncodeToString(sum[:])
		all = append(all, b)
	}
	return all, nil
}

// tree is one tree of the comparison: a directory, or else a commit.
type tree struct{ name, dir, commit, said string }

func (f *compared) trees(ctx context.Context, root string) ([]tree, error) {
	head := tree{name: headName, dir: f.HeadDir}
	if head.dir == "" {
		head.dir = root
	}
	var err error
	if head.said, err = describe(ctx, head.dir); err != nil {
		return nil, err
	}
	base := tree{name: baseName, dir: f.BaseDir}
	if base.dir != "" {
		if base.said, err = describe(ctx, base.dir); err != nil {
			return nil, err
		}
	} else {
		base.commit = f.Base
		if base.commit == "" {
			b, err := os.ReadFile(filepath.Join(root, basePath))
			if err != nil {
				return nil, err
			}
			base.commit = strings.TrimSpace(string(b))
		}
		if base.commit, base.said, err = resolve(ctx, base.commit); err != nil {
			return nil, err
		}
	}
	all := []tree{head, base}
	if f.Fixed == "-" || f.Fixed == "" {
		return all, nil
	}
	fixed := tree{name: fixedName}
	if fixed.commit, fixed.said, err = resolve(ctx, f.Fixed); err != nil {
		return nil, err
	}
	if fixed.commit != base.commit {
		all = append(all, fixed)
	}
	return all, nil
}

// resolve returns the full and the short name of a commit.
func resolve(ctx context.Context, commit string) (full, short string, err error) {
	if full, err = git(ctx, "rev-parse", "--verify", "--end-of-options", commit+"^{commit}"); err != nil {
		return "", "", fmt.Errorf("commit %q: %w", commit, err)
	}
	short, err = git(ctx, "rev-parse", "--short=8", full)
	return full, short, err
}

// changed stands behind the commit of a directory with changes that are in no commit.
const changed = "+"

// describe names what lies in a directory: the short name of its commit, "+" when there are changes beside it, or the
// directory itself when no git knows it.
func describe(ctx context.Context, dir string) (string, error) {
	commit, err := git(ctx, "-C", dir, "rev-parse", "--short=8", "HEAD")
	if err != nil {
		return filepath.Base(dir), ctx.Err()
	}
	changes, err := git(ctx, "-C", dir, "status", "--porcelain")
	if changes != "" {
		commit += changed
	}
	return commit, err
}

// export writes the tree of a commit to a new directory.
func export(ctx context.Context, root, commit, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive := dir + ".tar"
	if _, err := git(ctx, "-C", root, "archive", "--output="+archive, commit); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	return os.Remove(archive)
}

// compile builds the program against the tree in dir, which it leaves as it is: an overlay puts the program there, in
// place of one that the tree may have itself.
func compile(ctx context.Context, tmp, dir, to string) error {
	const at = "bench/gate/program"
	replace := map[string]string{}
	theirs, err := filepath.Glob(filepath.Join(dir, at, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range theirs {
		replace[name] = "" // gone
	}
	files, err := source.ReadDir("program")
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := source.ReadFile("program/" + f.Name())
		if err != nil {
			return err
		}
		own := filepath.Join(tmp, "source-"+f.Name())
		if err := os.WriteFile(own, text, 0o644); err != nil {
			return err
		}
		replace[filepath.Join(dir, at, f.Name())] = own
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	list := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-overlay="+list, "-o", to, "./"+at)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the program does not compile against it: %w\n%s", err, out)
	}
	return nil
}

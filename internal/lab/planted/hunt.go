// The hunt: builds and runs the mutated program through an overlay and judges whether the net caught the bug.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// hunter carries what all hunts share.
type hunter struct {
	root    string        // folder of go.mod
	scratch string        // for mutated files and binaries
	limit   time.Duration // of one build or run
	cpu     time.Duration // processor time of all builds and runs so far
}

// catch is the outcome of one hunt. By is empty for a bug that got away, and Why then says how.
type catch struct {
	By   string
	Seed uint64 // that shows it, zero when a test caught it
	Why  string
}

// hunt plants one bug and runs its net. An error means that the list or the machine is at fault, not the net.
func (h *hunter) hunt(ctx context.Context, b *bug) (catch, error) {
	overlay, err := h.plant(b)
	if err != nil {
		return catch{}, err
	}
	if b.Seeds > 0 {
		node, err := h.build(ctx, b.Name, overlay)
		if err != nil {
			return catch{}, err
		}
		return h.seeds(ctx, node, b)
	}
	return h.test(ctx, b.Package, b.Run, overlay)
}

// atOnce is how many seeds of a storm are run before its report is looked at: most bugs show in the first of them.
const atOnce = 10

// seeds runs the storm of a bug until some of its seeds catch it.
func (h *hunter) seeds(ctx context.Context, node string, b *bug) (c catch, err error) {
	first := max(b.First, 1)
	for n := 0; n < b.Seeds; n += atOnce {
		c, err = h.storm(ctx, node, b.verb(), first+uint64(n), min(atOnce, b.Seeds-n))
		if err != nil || c.Why != passed {
			return c, err
		}
	}
	return c, nil
}

// baseline proves that the nets are quiet without a bug, so that what they catch later is the bug.
func (h *hunter) baseline(ctx context.Context, list []bug) error {
	node, err := h.build(ctx, "baseline", "")
	if err != nil {
		return err
	}
	type storms struct {
		verb  string
		first uint64
	}
	seeds := map[storms]int{}
	done := map[string]bool{}
	for i := range list {
		b := &list[i]
		if b.Seeds > 0 {
			of := storms{b.verb(), max(b.First, 1)}
			seeds[of] = max(seeds[of], b.Seeds)
			continue
		}
		if key := b.Package + " " + b.Run; !done[key] {
			done[key] = true
			if err := h.quiet(h.test(ctx, b.Package, b.Run, "")); err != nil {
				return fmt.Errorf("tests %s: %w", key, err)
			}
		}
	}
	for of, n := range seeds {
		if err := h.quiet(h.storm(ctx, node, of.verb, of.first, n)); err != nil {
			return fmt.Errorf("%s of %d seeds from %d: %w", of.verb, n, of.first, err)
		}
	}
	return nil
}

// quiet turns a net's answer without a bug into an error unless it caught nothing and ran well.
func (h *hunter) quiet(c catch, err error) error {
	if err == nil && c.By != "" {
		err = fmt.Errorf("it fails without any planted bug (by %s, seed %d)", c.By, c.Seed)
	}
	if err == nil && c.Why != passed {
		err = errors.New(c.Why)
	}
	return err
}

// plant writes the mutated file and the overlay that puts it in place of the real one, and returns the overlay's path.
func (h *hunter) plant(b *bug) (string, error) {
	file, text, err := b.mutate(h.root)
	if err != nil {
		return "", err
	}
	real := filepath.Join(h.root, filepath.FromSlash(file))
	mutated := filepath.Join(h.scratch, b.Name+"-"+filepath.Base(real))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{real: mutated}})
	if err != nil {
		return "", fmt.Errorf("bug %s: encoding the overlay: %w", b.Name, err)
	}
	overlay := filepath.Join(h.scratch, b.Name+".json")
	return overlay, errors.Join(os.WriteFile(mutated, text, 0o600), os.WriteFile(overlay, replace, 0o600))
}

// build builds cmd/lab, through the overlay unless that is "".
func (h *hunter) build(ctx context.Context, name, overlay string) (string, error) {
	node := filepath.Join(h.scratch, "node-"+name)
	out, err := h.run(ctx, "go", "build", "-overlay="+overlay, "-o", node, "./cmd/lab")
	if err != nil {
		return "", fmt.Errorf("bug %s does not build: %w\n%s", name, err, tail(out))
	}
	return node, nil
}

// passed is the Why of a net that ran to its end and saw nothing.
const passed = "nothing was seen"

// storm runs the simulator's swarm. A bug is caught when it exits non-zero and its last line counts a violation: a
// crash of the simulator itself, or a hang, proves nothing.
func (h *hunter) storm(ctx context.Context, node, verb string, first uint64, seeds int) (catch, error) {
	out, err := h.run(ctx, node, verb, "--seeds", strconv.Itoa(seeds), "--first", strconv.FormatUint(max(first, 1), 10))
	r := reportOf(out, verb)
	switch {
	case err == nil && r != nil && *r.Violations == 0:
		return catch{Why: passed}, nil
	case err == nil:
		return catch{Why: "the storm exits zero and does not say that it saw nothing"}, nil
	case r != nil && *r.Violations > 0:
		return catch{By: verb, Seed: r.seed()}, nil
	}
	return catch{Why: fmt.Sprintf("the storm failed without a violation: %v\n%s", err, tail(out))}, nil
}

// test runs tests. A bug is caught when a test fails; a package that does not build, or a pattern that matches nothing,
// is the list's fault.
func (h *hunter) test(ctx context.Context, pkg, run, overlay string) (catch, error) {
	out, err := h.run(ctx, "go", "test", "-count=1", "-failfast", "-v", "-overlay="+overlay, "-run", run, pkg)
	switch {
	case !bytes.Contains(out, []byte("=== RUN ")):
		return catch{}, fmt.Errorf("no test of %s ran for %q: %v\n%s", pkg, run, err, tail(out))
	case err == nil:
		return catch{Why: passed}, nil
	case bytes.Contains(out, []byte("--- FAIL: ")) || bytes.Contains(out, []byte("panic: ")):
		return catch{By: "test " + run}, nil
	}
	return catch{Why: fmt.Sprintf("the tests failed without a failing test: %v\n%s", err, tail(out))}, nil
}

// run runs a command in the module's root and returns what it printed, both streams in one.
func (h *hunter) run(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, h.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = h.root
	cmd.Env = append(os.Environ(), "TMPDIR="+h.scratch) // traces of failing seeds go with the scratch folder
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if cmd.ProcessState != nil {
		h.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("gave up after %v: %w", h.limit, ctx.Err())
	}
	return out.Bytes(), err
}

// report is what the check reads of the storm's last line.
type report struct {
	Violations *int `json:"violations"`
	Failures   []struct {
		Seed uint64 `json:"seed"`
	} `json:"failures"`
}

// reportOf reads the last line of a verb; nil when there is none that counts violations.
func reportOf(out []byte, verb string) *report {
	var last *report
	for line := range strings.Lines(string(out)) {
		text, is := strings.CutPrefix(line, verb+" {")
		r := new(report)
		if is && json.Unmarshal([]byte("{"+text), r) == nil && r.Violations != nil {
			last = r
		}
	}
	return last
}

// seed returns the first seed that broke a promise, 0 when the report names none.
func (r *report) seed() uint64 {
	if len(r.Failures) == 0 {
		return 0
	}
	return r.Failures[0].Seed
}

// tail returns the last lines of an output, for a message.
func tail(out []byte) string {
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

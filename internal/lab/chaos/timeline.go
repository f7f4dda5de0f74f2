// The timeline: what happened when, in lines that a person can read; at the end the words of all nodes are put between.

package chaos

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// timeline is written as it happens, and shown as progress.
type timeline struct {
	clock    cli.Clock
	path     string
	progress *cli.Progress

	mu    sync.Mutex
	f     *os.File
	lines []timed
}

// timed is a line with its moment.
type timed struct {
	at   time.Duration
	text string
}

func newTimeline(path string, c cli.Clock, p *cli.Progress) (*timeline, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("timeline: %w", err)
	}
	return &timeline{clock: c, path: path, progress: p, f: f}, nil
}

func (t timed) String() string { return fmt.Sprintf("%9.3f  %s", t.at.Seconds(), t.text) }

// printf adds a line that is progress too.
func (t *timeline) printf(format string, args ...any) {
	t.progress.Printf("%s", t.notef(format, args...))
}

// notef adds a line.
func (t *timeline) notef(format string, args ...any) timed {
	line := timed{t.clock.Now(), fmt.Sprintf(format, args...)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	fmt.Fprintln(t.f, line)
	return line
}

// finish writes the whole timeline anew, with the records of the nodes' logs in their places, and with names of nodes
// where those have addresses.
func (t *timeline) finish(dir string, seeds []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.Clone(t.lines)
	logs, err := filepath.Glob(filepath.Join(dir, "n*-*.log"))
	if err != nil {
		return err
	}
	for _, path := range logs {
		read, err := readLog(path)
		if err != nil {
			return err
		}
		all = append(all, read...)
	}
	var pairs []string
	for i, addr := range seeds {
		pairs = append(pairs, addr, name(i))
	}
	names := strings.NewReplacer(pairs...)
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	if err := t.f.Close(); err != nil {
		return err
	}
	f, err := os.Create(t.path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, line := range all {
		fmt.Fprintln(w, names.Replace(line.String()))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// logLine is a record of a child's log.
var logLine = regexp.MustCompile(`^time=([0-9.]+) level=(\w+) msg=(.*)$`)

// readLog returns the records of the log of a process, and what is none, as the stack of a crash, behind the record
// before it.
func readLog(path string) (all []timed, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	who, _, _ := strings.Cut(filepath.Base(path), "-")
	var at time.Duration
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		text := s.Text()
		if m := logLine.FindStringSubmatch(text); m != nil {
			seconds, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				continue
			}
			at = time.Duration(seconds * float64(time.Second))
			text = m[2] + " " + m[3]
		}
		all = append(all, timed{at, "  " + who + " | " + text})
	}
	return all, s.Err()
}

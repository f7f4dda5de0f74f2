// Commits: a large one says why in its message.

package rules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
)

const (
	// maxCommit is how many lines of Go, added and removed, a commit may change without a reason.
	maxCommit = 500
	// sizedSince is the date of the author from which on commits are judged.
	sizedSince = "2026-11-22T22:00:00Z"
	// reason begins the line of a message that says why a commit is large.
	reason = "Size: "
)

// commit is one commit as git log prints it.
type commit struct {
	hash    string
	at      time.Time
	message string
	lines   int // of Go that nobody generated, added and removed; a file that moved counts what changed in it
}

// logFormat has git print each commit as a record: its hash, date and message, then one line for each file.
var logFormat = []string{"log", "--no-merges", "-M", "--numstat", "--format=%x1e%H%x1f%aI%x1f%B%x1f"}

// commits reads what git log printed. generated says which paths are not counted.
func commits(text string, generated func(path string) bool) ([]commit, error) {
	var list []commit
	for record := range strings.SplitSeq(text, "\x1e") {
		fields := strings.Split(record, "\x1f")
		if len(fields) != 4 {
			continue // before the first
		}
		at, err := time.Parse(time.RFC3339, fields[1])
		if err != nil {
			return nil, fmt.Errorf("commit %s: its date: %w", fields[0], err)
		}
		c := commit{hash: fields[0], at: at, message: fields[2]}
		for line := range strings.Lines(fields[3]) {
			cells := strings.SplitN(strings.TrimSpace(line), "\t", 3)
			if len(cells) != 3 || !strings.HasSuffix(strings.TrimSuffix(cells[2], "}"), ".go") || generated(cells[2]) {
				continue
			}
			added, _ := strconv.Atoi(cells[0])
			removed, _ := strconv.Atoi(cells[1])
			c.lines += added + removed
		}
		list = append(list, c)
	}
	return list, nil
}

// large judges commits: one over the bound needs a line that says why.
func large(list []commit, since time.Time) []finding {
	var found []finding
	for _, c := range list {
		why := slices.ContainsFunc(strings.Split(c.message, "\n"), func(line string) bool {
			return strings.HasPrefix(line, reason) && len(strings.Fields(line)) > 3
		})
		if !c.at.Before(since) && c.lines > maxCommit && !why {
			subject, _, _ := strings.Cut(c.message, "\n")
			found = append(found, finding(fmt.Sprintf("%.10s %q changes %d lines of Go, more than %d: split it, or say "+
				"why in a line that begins with %q", c.hash, subject, c.lines, maxCommit, reason)))
		}
	}
	return found
}

// TestLongCommitsAreSmall holds the size of every commit since sizedSince. Without a git history there is nothing to
// hold. It takes no time: it is left out of make test because no commit should fail the tests of the next one.
func TestLongCommitsAreSmall(t *testing.T) {
	long.Test(t)
	since, err := time.Parse(time.RFC3339, sizedSince)
	require.NoError(t, err)
	// A commit is no older than its parents as a rule: some days more find what was rebased or picked.
	git := exec.Command("git", append(slices.Clone(logFormat), "--since="+since.AddDate(0, 0, -7).Format(time.RFC3339))...)
	git.Dir = repository
	text, err := git.Output()
	if err != nil {
		t.Skipf("no git history: %v", err)
	}
	list, err := commits(string(text), func(path string) bool {
		text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(path)))
		return err == nil && strings.HasPrefix(string(text), "// Code generated ")
	})
	require.NoError(t, err)
	require.Empty(t, large(list, since))
}

// TestCommitRule feeds what git prints of commits that are small, large, and large for a reason.
func TestCommitRule(t *testing.T) {
	record := func(hash, date, message, files string) string {
		return "\x1e" + hash + "\x1f" + date + "\x1f" + message + "\x1f\n\n" + files
	}
	text := record("a", "2030-01-02T00:00:00Z", "fd: small", "300\t200\tfd/x.go\n9000\t0\tdocs/x.md\n-\t-\tx.png\n") +
		record("b", "2030-01-02T00:00:00Z", "fd: large", "300\t201\tfd/{x.go => y.go}\n") +
		record("c", "2030-01-02T00:00:00Z", "fd: large\n\nSize: all callers of one function.", "900\t0\tfd/x.go\n") +
		record("d", "2030-01-02T00:00:00Z", "fd: large\n\nSize:\nSize: yes", "900\t0\tfd/x.go\n") +
		record("e", "2020-01-02T00:00:00Z", "fd: long ago", "900\t0\tfd/x.go\n") +
		record("f", "2030-01-02T00:00:00Z", "fd: generated", "900\t0\tfd/table.go\n")
	list, err := commits(text, func(path string) bool { return path == "fd/table.go" })
	require.NoError(t, err)
	require.Len(t, list, 6)
	require.Equal(t, []int{500, 501, 900, 900, 900, 0}, []int{list[0].lines, list[1].lines, list[2].lines, list[3].lines,
		list[4].lines, list[5].lines})
	found := large(list, time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Len(t, found, 2)
	require.Contains(t, string(found[0]), "b \"fd: large\" changes 501 lines")
	require.Contains(t, string(found[1]), "d ")
	_, err = commits(record("a", "yesterday", "x", ""), nil)
	require.ErrorContains(t, err, "its date")
}

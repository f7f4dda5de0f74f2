// Package logstest keeps what is logged, for tests.
package logstest

import (
	"bytes"
	"strings"
	"sync"
)

// Text is a log that several goroutines write and read. The zero value is an empty one.
type Text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends to the log.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

// String returns all that was written.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// Count returns how often text stands in the log.
func (t *Text) Count(text string) int { return strings.Count(t.String(), text) }

// Lines returns the lines that hold text.
func (t *Text) Lines(text string) (lines []string) {
	for line := range strings.Lines(t.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

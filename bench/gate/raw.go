// Raw lines: every measurement, in a file that later pairs of the same builds are added to.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// header is the first line of the file.
type header struct {
	Builds   []build       `json:"builds"`
	Duration time.Duration `json:"duration_ns"`
}

// raw is the file, and the measurements in it.
type raw struct {
	path    string
	file    *os.File
	samples []sample
}

// openRaw opens or makes the file. One of other builds, or of another duration, is refused.
func openRaw(path string, builds []build, unit time.Duration) (*raw, error) {
	if path == "" {
		path = filepath.Join("out", fmt.Sprintf("gate-%s-%s.jsonl", builds[0].Commit, time.Now().Format("20060102-150405")))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	r := &raw{path: path}
	err := r.read(builds, unit)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("raw lines: %s: %w", path, err)
	}
	found := err == nil
	if r.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	if !found {
		err = json.NewEncoder(r.file).Encode(header{builds, unit})
	}
	return r, err
}

func (r *raw) read(builds []build, unit time.Duration) error {
	f, err := os.Open(r.path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	if !lines.Scan() {
		return fmt.Errorf("it is empty: remove it, or name another")
	}
	var h header
	if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
		return fmt.Errorf("line 1: %w", err)
	}
	same := func(a, b build) bool { return a.Name == b.Name && a.Sum == b.Sum }
	if !slices.EqualFunc(h.Builds, builds, same) || h.Duration != unit {
		return fmt.Errorf("it is of other builds, or of another --duration: name another file")
	}
	for n := 2; lines.Scan(); n++ {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		r.samples = append(r.samples, s)
	}
	return lines.Err()
}

// last returns the number of the last pair, zero without one.
func (r *raw) last() int {
	n := 0
	for _, s := range r.samples {
		n = max(n, s.Pair)
	}
	return n
}

func (r *raw) add(s sample) error {
	r.samples = append(r.samples, s)
	return json.NewEncoder(r.file).Encode(s)
}

func (r *raw) close() { _ = r.file.Close() }

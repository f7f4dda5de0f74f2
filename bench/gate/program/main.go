// Command program is what make bench-gate compiles against each of the commits that it compares: a process with one
// node, which sends, receives and measures on command. It uses the exported names of the root package that the
// oldest base (ea35bf4) has too, and nothing else of this module.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// call and answer are the lines of internal/cli, which the oldest base does not have.
type (
	call struct {
		ID   uint64          `json:"id"`
		Op   string          `json:"op"`
		Args json.RawMessage `json:"args"`
	}
	answer struct {
		ID     uint64 `json:"id"`
		Error  string `json:"error,omitempty"`
		Result any    `json:"result,omitempty"`
	}
)

// op makes an entry of the table of calls from a function with typed arguments and result.
func op[A, R any](f func(A) (R, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var a A
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields() // the gate has the same types once more
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		return f(a)
	}
}

// main answers calls until the parent has closed stdin, or died; whatever is under way ends with the process.
func main() {
	signal.Ignore(syscall.SIGINT)
	p := &program{types: map[string]*target{}}
	ops := map[string]func(json.RawMessage) (any, error){
		"start": op(p.start), "await": op(p.await), "flush": op(p.flush), "load": op(p.load), "ring": op(p.ring),
		"usage": op(p.usage), "fill": op(p.fill), "held": op(p.held), "profile": op(p.profile),
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var c call
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, "program: a line that is no call:", err)
			os.Exit(1)
		}
		go func() { // a load is under way while its middle is measured
			a := answer{ID: c.ID}
			if f := ops[c.Op]; f == nil {
				a.Error = "no such call"
			} else if r, err := f(c.Args); err != nil {
				a.Error = err.Error()
			} else {
				a.Result = r
			}
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(a) // a parent that is gone shows at stdin
		}()
	}
}

// The lines between a command and its children: one JSON object each, calls downwards and answers upwards.

package cli

import (
	"bufio"
	"encoding/json"
	"io"
)

// maxLine bounds one line of the protocol, in bytes: the largest is a report of many entities.
const maxLine = 64 << 20

// call is one line from the command to a child.
type call struct {
	ID   uint64          `json:"id"`
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`
}

// answer is one line from a child to the command.
type answer struct {
	ID     uint64          `json:"id"`
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// lines returns a scanner over the lines of r, each at most maxLine bytes.
func lines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), maxLine)
	return s
}

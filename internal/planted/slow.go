// The list as a table: what is planted where, what has to catch it, and how much of the data plane's slow path is left
// to storms.

package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// slowRooms are the packages of what a node does with a user's message beyond the fast path: all of each, but in the
// driver only slowFiles.
var slowRooms = []string{"internal/plane", "internal/flow", "internal/exec", "internal/driver"}

// slowFiles are the files of package driver that do this.
var slowFiles = []string{"ask.go", "dispatch.go", "gate.go", "hosting.go", "inbound.go", "large.go", "large_in.go",
	"large_over.go", "large_send.go", "refused.go", "region.go", "remote.go", "report.go", "room.go", "routes.go",
	"send.go"}

// asideFiles are files of these rooms in which nothing is decided about a message: they decide which entities live, and
// watch and time calls.
var asideFiles = []string{"internal/exec/permit.go", "internal/exec/recall.go", "internal/exec/stall.go",
	"internal/exec/latency.go", "internal/exec/calls.go"}

// slow reports whether a bug of a file, relative to the module's root, is one of the data plane's slow path.
func slow(file string) bool {
	room, name := path.Split(file)
	room = strings.TrimSuffix(room, "/")
	if slices.Contains(asideFiles, file) {
		return false
	}
	return slices.Contains(slowRooms, room) && (room != "internal/driver" || slices.Contains(slowFiles, name))
}

// slowShare counts the bugs of the slow path, and those of them that a storm has to catch. An error means that an entry
// names no place of the module at root.
func slowShare(root string, list []bug) (storms, all int, err error) {
	for i := range list {
		file, _, err := list[i].mutate(root)
		if err != nil {
			return 0, 0, err
		}
		if !slow(file) {
			continue
		}
		all++
		if list[i].Seeds > 0 {
			storms++
		}
	}
	return storms, all, nil
}

// where says in one word or two where a bug is planted.
func (b *bug) where() string {
	if b.In != "" {
		return b.In
	}
	return b.File
}

// net says what has to catch a bug.
func (b *bug) net() string {
	if b.Seeds > 0 {
		return "storm"
	}
	return "test " + b.Package + " " + b.Run
}

// printList writes the list: name, place and net of each entry, and the share of storms in the slow path.
func printList(out io.Writer, root string, list []bug) error {
	storms, all, err := slowShare(root, list)
	if err != nil {
		return err
	}
	for i := range list {
		b := &list[i]
		fmt.Fprintf(out, "%-52s %-44s %s\n", b.Name, b.where(), b.net())
	}
	fmt.Fprintf(out, "slow path of the data plane: %d bugs, %d of them for storms\n", all, storms)
	return nil
}

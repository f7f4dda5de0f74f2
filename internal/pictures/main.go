// Command pictures draws the pictures of the documentation: each is a run of the simulator, seen as lanes over time.
//
// One seed gives one picture, byte for byte. `make pictures` writes them anew; a change of a protocol then shows as a
// change of the picture.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// stories are the pictures by the name of their file.
var stories = []struct {
	file string
	tell func() (*picture, error)
}{
	{"forming.svg", forming},
	{"handoff.svg", handoff},
	{"split.svg", split},
}

func main() {
	out := flag.String("out", "docs/pictures", "Folder to write to.")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// write draws every picture into a folder, which is made when it is not there.
func write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, s := range stories {
		p, err := s.tell()
		if err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
		text, err := p.draw()
		if err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
		if err := os.WriteFile(filepath.Join(folder, s.file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

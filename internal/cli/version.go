// Version: what this program was built from.

package cli

import (
	"runtime/debug"

	"github.com/kith-io/kith/wire"
)

// Build is what a program was built from. What the build has not kept is empty.
type Build struct {
	Version    string `json:"version"` // of the module: a tag, or a pseudo-version; "(devel)" from a work tree
	Commit     string `json:"commit,omitempty"`
	Modified   bool   `json:"modified,omitempty"` // the work tree had changes that are in no commit
	Time       string `json:"time,omitempty"`     // of the commit
	Go         string `json:"go"`
	Wire       uint16 `json:"wire"`        // the wire version that it speaks
	OldestWire uint16 `json:"wire_oldest"` // and the oldest that it speaks with older nodes
}

// BuildOf reads what the linker has kept.
func BuildOf() Build {
	spoken := wire.Spoken()
	b := Build{Version: "(devel)", Wire: spoken.Newest, OldestWire: spoken.Oldest}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

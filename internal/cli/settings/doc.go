// Package settings has the flags of a command come from a configuration file and from the environment, too, and says
// where each value came from. A flag goes before its environment variable, that before the file, that before the
// default. The keys of the file are the names of the flags: one word for one thing.
package settings

import (
	"strings"

	"github.com/alecthomas/kong"
)

// EnvPrefix begins the name of each environment variable.
const EnvPrefix = "KITH_"

// Env returns the environment variable of the flag of that name.
func Env(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Envs is an option of the parser: each flag of these commands has its environment variable.
func Envs(commands ...string) kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		for _, name := range commands {
			for _, node := range k.Model.Children {
				if node.Name != name {
					continue
				}
				for _, f := range node.Flags {
					if takes(f) || f.Name == fileFlag {
						f.Envs = []string{Env(f.Name)}
						f.Tag.Envs = f.Envs
					}
				}
			}
		}
		return nil
	})
}

// The tags of a flag that this package knows: file:"-" keeps it out of files and of what is in force, secret:"" masks
// its value wherever it is shown.
const (
	fileTag   = "file"
	secretTag = "secret"
	fileFlag  = "config"
	checkFlag = "check" // names a file, too, and goes before it
)

// takes reports whether a flag is a setting: one that a file may give.
func takes(f *kong.Flag) bool { return f.Name != "help" && !f.Tag.Has(fileTag) }

// Completion: what a shell is set to do for a Tab, and what the program answers when the shell then asks.
//
// The shells' libraries for Go bring text/template into every binary. The code below walks kong's model instead.

package env

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
)

// Completion is the command that prints how a shell completes the program's commands and flags.
type Completion struct {
	Shell string `arg:"" help:"The shell: bash, zsh or fish; none: how to load the script in yours." enum:"bash,zsh,fish," default:""`
	Code  bool   `short:"c" hidden:"" help:"The script, which a named shell has without it."`
}

// Help is the long help of the command.
func (*Completion) Help() string {
	return `
Prints the script by which a shell completes commands and flags of this program, for example in ~/.bashrc:

    source <(kith completion bash)

Without a shell it says how your login shell loads the script.
`
}

// shell is how one shell learns to complete. NAME stands for the program and PATH for its file.
type shell struct {
	load string // the command that reads code, with COMMAND for what prints it
	file string // where the load command stays
	code string
}

const complete = "complete -o default -o bashdefault -C PATH NAME"

var shells = map[string]shell{
	"bash": {load: "source <(COMMAND)", file: "~/.bashrc", code: complete},
	"zsh": {load: "source <(COMMAND)", file: "~/.zshrc",
		code: "autoload -U +X bashcompinit && bashcompinit\n" + complete},
	"fish": {load: "COMMAND | source", file: "~/.config/fish/config.fish", code: `function __complete_NAME
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    PATH
end
complete -f -c NAME -a "(__complete_NAME)"`},
}

// Run prints the code for a shell, or how to load that code.
func (c *Completion) Run(ctx *kong.Context, e *Env) error {
	name := c.Shell
	if name == "" {
		name = loginShell()
	}
	sh, known := shells[name]
	if !known {
		return fmt.Errorf("it completes for bash, zsh and fish, and your login shell is %q: name one of them", name)
	}
	if c.Shell != "" || c.Code {
		path, err := os.Executable()
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return fmt.Errorf("finding this program's file: %w", err)
		}
		_, err = fmt.Fprintln(e.Stdout, strings.NewReplacer("NAME", e.Program, "PATH", path).Replace(sh.code))
		return err
	}
	prints := fmt.Sprintf("%s %s %s", e.Program, ctx.Selected().Name, name)
	_, err := fmt.Fprintf(e.Stdout, "Put this into %s, the init file of %s:\n\n    %s\n", sh.file, name,
		strings.ReplaceAll(sh.load, "COMMAND", prints))
	return err
}

// loginShell returns the base name of the user's shell, "" where neither the environment nor the user data base has it.
func loginShell() string {
	if path := os.Getenv("SHELL"); path != "" {
		return filepath.Base(path)
	}
	entry, err := exec.Command("getent", "passwd", strconv.Itoa(os.Getuid())).Output()
	if err != nil {
		return ""
	}
	line := strings.TrimSpace(string(entry))
	return filepath.Base(line[strings.LastIndexByte(line, ':')+1:])
}

// answerShell writes the words that may come next, one a line, where a shell asks for them by COMP_LINE, and reports
// whether one did. COMP_POINT is the cursor's place in that line, and its end where it is none.
func answerShell(out io.Writer, app *kong.Node) (asked bool, err error) {
	line := os.Getenv("COMP_LINE")
	if line == "" {
		return false, nil
	}
	if at, err := strconv.Atoi(os.Getenv("COMP_POINT")); err == nil && at >= 0 && at < len(line) {
		line = line[:at]
	}
	p := phraseOf(line)
	words, _ := p.next(app)
	var errs []error
	for _, w := range words {
		if strings.HasPrefix(w, p.last) {
			_, err := fmt.Fprintln(out, w)
			errs = append(errs, err)
		}
	}
	return true, errors.Join(errs...)
}

// phrase is a command line without the program's name.
type phrase struct {
	done []string // the words that are complete
	last string   // what is being typed
}

// phraseOf splits a line. --flag=value at its end counts as two words.
func phraseOf(line string) phrase {
	words := strings.Fields(line)
	if line != strings.TrimRightFunc(line, unicode.IsSpace) {
		words = append(words, "")
	}
	if len(words) < 2 {
		return phrase{last: line}
	}
	end := len(words) - 1
	words = append(words[1:end], strings.Split(words[end], "=")...)
	end = len(words) - 1
	return phrase{done: words[:end], last: words[end]}
}

// next returns what may stand as the last word behind the command n. only means that it is the value of a flag, so that
// nothing else may stand there.
func (p phrase) next(n *kong.Node) (words []string, only bool) {
	inner := false
	for i, w := range p.done {
		if sub := visible(n, w); sub != nil {
			if words, only = (phrase{done: p.done[i+1:], last: p.last}).next(sub); only {
				return words, true
			}
			inner = true
			break
		}
	}
	for _, f := range n.Flags {
		switch names := namesOf(f); {
		case f.Hidden:
		case !f.IsBool() && len(p.done) > 0 && slices.Contains(names, p.done[len(p.done)-1]):
			return valuesOf(f.Value), true
		case strings.HasPrefix(p.last, "-"):
			words = append(words, names...)
		}
	}
	if inner {
		return words, false
	}
	for _, sub := range n.Children {
		if !sub.Hidden {
			words = append(words, sub.Name)
		}
	}
	if i := p.position(n); i < len(n.Positional) {
		words = append(words, valuesOf(n.Positional[i])...)
	}
	return words, false
}

// position counts the complete words that are neither flags of n nor their values.
func (p phrase) position(n *kong.Node) int {
	count, value := 0, false
	for _, w := range p.done {
		name, _, whole := strings.Cut(w, "=")
		of := slices.IndexFunc(n.Flags, func(f *kong.Flag) bool { return slices.Contains(namesOf(f), name) })
		if of < 0 && !value {
			count++
		}
		value = of >= 0 && !whole && !n.Flags[of].IsBool()
	}
	return count
}

func visible(n *kong.Node, name string) *kong.Node {
	for _, sub := range n.Children {
		if sub.Name == name && !sub.Hidden {
			return sub
		}
	}
	return nil
}

func namesOf(f *kong.Flag) []string {
	names := []string{"--" + f.Name}
	if f.Short != 0 {
		names = append(names, "-"+string(f.Short))
	}
	return names
}

// valuesOf returns the values that are listed for a flag or an argument.
func valuesOf(v *kong.Value) []string {
	if v.IsBool() || v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(v.EnumSlice(), func(of string) bool { return of == "" })
}

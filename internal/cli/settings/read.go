// Reading a configuration file: every fault of it at once, each with its line.

package settings

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/kith-io/kith/internal/base/files"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// given is a value of a file, and the line that it stands on.
type given struct {
	value any // a string, or []any of strings
	line  int
}

// read returns what a file says of flags, without what is wrong in it, and all faults of it joined.
func read(path string, flags []*kong.Flag) (map[string]given, error) {
	text, err := files.Read(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return parse(path, string(text), flags)
}

// lineOf finds the line in an error of the YAML parser.
var lineOf = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func parse(path, text string, flags []*kong.Flag) (map[string]given, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil // an empty file sets nothing
	} else if err != nil {
		return nil, syntax(path, err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, fmt.Errorf("%s:%d: a second document: one is read", path, more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, syntax(path, err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil // nothing but comments
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: settings are wanted, one a line: name: value", path, root.Line)
	}
	r := reader{path: path, known: map[string]*kong.Flag{}, values: map[string]given{}, lines: map[string]int{}}
	for _, f := range flags {
		r.known[f.Name] = f
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		r.setting(root.Content[i], root.Content[i+1])
	}
	return r.values, errors.Join(r.faults...)
}

func syntax(path string, err error) error {
	found := lineOf.FindStringSubmatch(err.Error())
	rest := strings.TrimPrefix(err.Error(), found[0])
	if found[1] == "" {
		return fmt.Errorf("%s: no YAML: %s", path, rest)
	}
	return fmt.Errorf("%s:%s: no YAML: %s", path, found[1], rest)
}

// reader is a file that is read.
type reader struct {
	path   string
	known  map[string]*kong.Flag
	values map[string]given
	lines  map[string]int // of every key, right or wrong
	faults []error
}

func (r *reader) fault(line int, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("%s:%d: "+format, append([]any{r.path, line}, args...)...))
}

func (r *reader) setting(key, value *yaml.Node) {
	if key.Kind != yaml.ScalarNode {
		r.fault(key.Line, "the name of a setting is wanted")
		return
	}
	name := key.Value
	if first, twice := r.lines[name]; twice {
		r.fault(key.Line, "%s is set twice, first in line %d", name, first)
		return
	}
	r.lines[name] = key.Line
	flag := r.known[name]
	if flag == nil {
		r.fault(key.Line, "%s is no setting%s", name, r.meant(name))
		return
	}
	v, err := taken(flag, value)
	if err == nil {
		err = fits(flag, v)
	}
	if err != nil {
		r.fault(value.Line, "%s: %w", name, err)
		return
	}
	r.values[name] = given{v, key.Line}
}

// meant names the setting that a name looks like.
func (r *reader) meant(name string) string {
	for known := range r.known {
		if squeezed(known) == squeezed(name) {
			return "; " + known + " is"
		}
	}
	return ""
}

// squeezed is a name without what tells the ways to write it apart.
func squeezed(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
}

// taken returns a value of a file as the parser of flags takes it.
func taken(f *kong.Flag, n *yaml.Node) (any, error) {
	switch {
	case n.Kind == yaml.AliasNode:
		return nil, errors.New("an alias of YAML: write the value itself")
	case n.Kind == yaml.MappingNode:
		return nil, errors.New("a value is wanted, not settings of its own")
	case n.Kind == yaml.SequenceNode && !f.IsSlice():
		return nil, errors.New("one value is wanted, not a list")
	case n.Kind == yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, e := range n.Content {
			if e.Kind != yaml.ScalarNode || e.Tag == "!!null" {
				return nil, fmt.Errorf("number %d of the list is no single value", i+1)
			}
			list[i] = e.Value
		}
		return list, nil
	case n.Tag == "!!null":
		return nil, errors.New("it has no value")
	case f.IsBool() && n.Tag != "!!bool":
		return nil, fmt.Errorf("true or false is wanted, not %q", n.Value)
	case f.IsSlice():
		return []any{n.Value}, nil
	}
	return n.Value, nil
}

// fits reports whether the parser of flags takes a value for a flag, without giving it to the flag.
func fits(f *kong.Flag, v any) error {
	target := reflect.New(f.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(v, kong.FlagValueToken)
	if err := f.Mapper.Decode(&kong.DecodeContext{Value: f.Value, Scan: scan}, target); err != nil {
		return err
	}
	if said := fmt.Sprint(target.Interface()); f.Enum != "" && !f.EnumMap()[said] {
		return fmt.Errorf("%q is none of %s", said, strings.Join(f.EnumSlice(), ", "))
	}
	return nil
}

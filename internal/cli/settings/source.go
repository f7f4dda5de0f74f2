// Sources: where each setting of a command came from, and which of them a fault is about.

package settings

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// File is embedded by a command with flags that are settings: its flag says which file, and it knows where all came
// from.
type File struct {
	// Config is the path of the file; empty: none is read.
	Config string `placeholder:"FILE" file:"-" help:"${config_help}"`

	flags   []*kong.Flag
	sources map[string]source
	strays  []string
	fault   error
}

// Kinds of a Setting's source, in the order in which one goes before the next.
const (
	FromFlag    = "flag"
	FromEnv     = "env"
	FromFile    = "file"
	FromDefault = "default"
)

// source is where a value came from: its kind, and which variable, or which line of which file.
type source struct{ kind, at string }

// BeforeResolve is called by the parser when it knows the command line: the file's values come in here. A second call
// changes nothing.
func (f *File) BeforeResolve(ctx *kong.Context) error {
	if f.sources != nil {
		return nil
	}
	f.sources = map[string]source{}
	path := ""
	onLine := map[string]bool{}
	for _, at := range ctx.Path {
		if at.Flag != nil {
			onLine[at.Flag.Name] = true
		}
	}
	for _, flag := range ctx.Selected().Flags {
		if takes(flag) {
			f.flags = append(f.flags, flag)
		} else if path == "" && flag.Name == fileFlag || flag.Name == checkFlag {
			if p, _ := ctx.FlagValue(flag).(string); p != "" {
				path = p
			}
		}
	}
	f.strays = strays(ctx)
	var values map[string]given
	if path != "" {
		if values, f.fault = read(path, f.flags); f.fault != nil && values == nil {
			f.fault = fmt.Errorf("--config: %w", f.fault)
		}
	}
	for _, flag := range f.flags {
		f.sources[flag.Name] = sourceOf(flag, onLine[flag.Name], path, values)
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if f.sources[flag.Name].kind != FromFile {
			return nil, nil
		}
		return values[flag.Name].value, nil
	}))
	return nil
}

// Strays returns the variables of the environment that begin as those of settings do and are none, sorted, and by which
// of the settings' own ones is empty. Those that Kubernetes sets for a service of that name are neither.
func (f *File) Strays() []string { return f.strays }

// prefix begins the variables of settings; ofService is what Kubernetes adds to the name of a service.
const prefix = "KITH_"

var ofService = regexp.MustCompile(`_SERVICE_(HOST|PORT)|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)

func strays(ctx *kong.Context) (list []string) {
	known := map[string]bool{}
	_ = kong.Visit(ctx.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, is := node.(*kong.Flag); is {
			for _, name := range flag.Tag.Envs {
				known[name] = true
			}
		}
		return next(nil)
	})
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case !strings.HasPrefix(name, prefix) || len(known) == 0:
		case known[name] && value == "":
			list = append(list, name+" is empty")
		case !known[name] && !ofService.MatchString(name):
			list = append(list, name+" is no setting")
		}
	}
	slices.Sort(list)
	return list
}

func sourceOf(flag *kong.Flag, onLine bool, path string, values map[string]given) source {
	if onLine {
		return source{FromFlag, "--" + flag.Name}
	}
	for _, name := range flag.Tag.Envs {
		if _, set := os.LookupEnv(name); set {
			return source{FromEnv, name}
		}
	}
	if v, set := values[flag.Name]; set {
		return source{FromFile, fmt.Sprintf("%s:%d", path, v.line)}
	}
	return source{kind: FromDefault}
}

// Explain joins the faults of the file with err, the faults of what the settings say: each of those that is about a
// setting says where that stands: in which line of the file, in the environment, or in which flag.
func (f *File) Explain(err error) error {
	return errors.Join(f.fault, f.placed(err))
}

// words are the parts of a message that may be the name of a setting: a flag, or the field of a configuration.
var words = regexp.MustCompile(`--[a-z][a-z-]*|\b[A-Z][A-Za-z]+\b`)

func (f *File) placed(err error) error {
	if err == nil {
		return nil
	}
	if several, is := err.(interface{ Unwrap() []error }); is {
		joined := several.Unwrap()
		if err.Error() == errors.Join(joined...).Error() { // and not one message that wraps several
			var all []error
			for _, e := range joined {
				all = append(all, f.placed(e))
			}
			return errors.Join(all...)
		}
	}
	for _, word := range words.FindAllString(err.Error(), -1) {
		for _, flag := range f.flags {
			if name := squeezed(flag.Name); name != squeezed(word) && name != tlsName(word) {
				continue
			}
			if from := f.sources[flag.Name]; from.kind != FromDefault && word != from.at {
				return fmt.Errorf("%s: %w", from.at, err)
			}
		}
	}
	return err
}

// tlsName is the setting, squeezed, of a file that the configuration of TLS names: CertFile is tls-cert.
func tlsName(word string) string { return "tls" + squeezed(strings.TrimSuffix(word, "File")) }

// Setting is one setting that is in force.
type Setting struct {
	Name  string `json:"name"`
	Value any    `json:"value"` // as the file would have it: text, a number, true or false, or a list of texts
	From  string `json:"from"`  // flag, env, file or default
	At    string `json:"at"`    // the flag, the variable, file:line; empty for a default
}

// masked stands in place of what is secret.
const masked = "***"

// InForce returns all settings, in the order of the help.
func (f *File) InForce() []Setting {
	var all []Setting
	for _, flag := range f.flags {
		from := f.sources[flag.Name]
		all = append(all, Setting{flag.Name, shown(flag), from.kind, from.at})
	}
	return all
}

// shown returns the value of a flag, without what is secret in it.
func shown(flag *kong.Flag) any {
	if flag.Tag.Has(secretTag) && !flag.Target.IsZero() {
		return masked
	}
	switch v := flag.Target.Interface().(type) {
	case time.Duration:
		return v.String()
	case string:
		return withoutPassword(v)
	case []string:
		list := make([]string, len(v))
		for i, text := range v {
			list[i] = withoutPassword(text)
		}
		return list
	default:
		switch flag.Target.Kind() {
		case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint32, reflect.Float64:
			return v
		}
		return fmt.Sprint(v)
	}
}

// withoutPassword masks the password of a URL.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	return u.Redacted()
}

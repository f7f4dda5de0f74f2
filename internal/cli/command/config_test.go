// Tests of kith config, and of the page that says what can be configured.

package command

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/settings"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

// What is in force is what kith run would have, with its origin; a bad file is exit code 2, with all its lines.
func TestConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("good.yaml", []byte("name: market\nseeds: ['a:1', 'b:1']\nmax-moves: 7\n"), 0o600))
	t.Setenv("KITH_MAX_MOVES", "9")
	code, out, errs := program(t, "config", "--config=good.yaml", "--roles=x", "--json")
	require.Equal(t, env.ExitOK, code, errs)
	var got struct{ Settings []settings.Setting }
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	said := fmt.Sprintf("%v", got.Settings)
	for _, want := range []string{"{name market file good.yaml:1}", "{seeds [a:1 b:1] file good.yaml:2}",
		"{max-moves 9 env KITH_MAX_MOVES}", "{roles [x] flag --roles}", "{log-level info default }"} {
		require.Contains(t, said, want)
	}
	code, out, errs = program(t, "config", "--config=good.yaml")
	require.Equal(t, env.ExitOK, code, errs)
	require.Regexp(t, `(?m)^seeds +a:1,b:1 +good.yaml:2$`, out)
	require.Regexp(t, `(?m)^listen +127.0.0.1:7355 +default$`, out)
	require.NoError(t, os.WriteFile("bad.yaml", []byte("nmae: x\nlisten: 10.0.0.1:1\njoin-timeout: -1s\n"), 0o600))
	t.Setenv("KITH_CONFIG", "good.yaml")
	for _, args := range [][]string{{"config", "--check=bad.yaml"}, {"run", "--config=bad.yaml"}} {
		code, out, errs = program(t, args...)
		require.Equal(t, env.ExitUsage, code)
		require.Empty(t, out)
		for _, want := range []string{"bad.yaml:1: nmae is no setting", "bad.yaml:3: --join-timeout is negative",
			`bad.yaml:2: bad configuration: Listen "10.0.0.1:1" is not loopback`} {
			require.Contains(t, errs, want)
		}
	}
	for args, want := range map[string]string{
		"config --check":        "kith: --check needs a value: --check=FILE\nRun \"kith config --help\" for its flags.\n",
		"config --check --json": "kith: --check needs a value: --check=FILE\n",
		"config --config":       "kith: --config needs a value: --config=FILE\n",
		"run --seeds":           "kith: --seeds needs a value: --seeds=SEEDS,...\n",
		"run --flight-bytes=x":  "kith: --flight-bytes: expected",
	} {
		code, out, errs = program(t, strings.Fields(args)...)
		require.Equal(t, env.ExitUsage, code)
		require.Empty(t, out)
		require.Contains(t, errs, want)
	}
	code, out, errs = program(t, "config", "--check=good.yaml")
	require.Equal(t, env.ExitOK, code, errs)
	require.Equal(t, "good.yaml is good: settings in force from it: 2\n", out, "the environment has the third")
	require.Empty(t, errs)
	t.Setenv("KITH_SEED", "a:1")
	code, out, errs = program(t, "config", "--check=good.yaml")
	require.Equal(t, env.ExitOK, code, "Kubernetes sets variables of a service that is called kith")
	require.Contains(t, out, "is good")
	require.Equal(t, "kith: check the environment: KITH_SEED is no setting\n", errs)
}

// A check reads what the settings name, as a node does before it opens a port, and changes nothing (OPS-2).
func TestConfigCheckReadsFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{"ca", "issue n1", "issue n2 --cluster=other"} {
		code, _, errs := program(t, append([]string{"cert"}, strings.Fields(args+" --dir=.")...)...)
		require.Equal(t, env.ExitOK, code, errs)
	}
	require.NoError(t, os.WriteFile("bad.pem", []byte("-----BEGIN CERTIFICATE-----\nMII"), 0o600))
	require.NoError(t, os.Mkdir("other", 0o700))
	require.NoError(t, os.WriteFile("other/membership.json", []byte("{}"), 0o600))
	const tls = "listen: '127.0.0.1:0'\ntls-ca: ca.crt\ntls-key: %[1]s.key\ntls-cert: %[1]s.crt\n"
	n1 := fmt.Sprintf(tls, "n1")
	for text, want := range map[string]string{
		n1 + "data-dir: made/at/start\n":                          "",
		fmt.Sprintf(tls, "n3"):                                    "kith.yaml:4: --tls-cert: bad configuration: TLS",
		fmt.Sprintf(tls, "n2"):                                    "this node's own certificate would be refused",
		n1 + "tls-crl: none.crl\n":                                "none.crl",
		strings.Replace(n1, "ca.crt", "bad.pem", 1):               "authorities bad.pem",
		n1 + "data-dir: other\n":                                  "kith.yaml:5: --data-dir: record of the membership",
		strings.Replace(n1, "n1.key", "n2.key", 1):                "private key does not match",
		n1 + "data-dir: n1.crt/below\n":                           "n1.crt/below",
		n1 + "data-dir: other\ntls-verify-host: maybe\n":          "kith.yaml:6",
		n1 + "admin: '127.0.0.1:0'\nadmin-token-file: none.txt\n": "none.txt",
	} {
		require.NoError(t, os.WriteFile("kith.yaml", []byte(text), 0o600))
		code, out, errs := program(t, "config", "--check=kith.yaml")
		if want == "" {
			require.Equal(t, env.ExitOK, code, errs)
			require.Contains(t, out, "kith.yaml is good")
			continue
		}
		require.Equal(t, env.ExitUsage, code, text)
		require.Contains(t, errs, want, text)
		require.Empty(t, out)
	}
	require.NoDirExists(t, "made")
	require.NoFileExists(t, "other/lock")
}

// A list that is one text is named as such, wherever it stands, and so is a scheme: nobody looks for an IPv6 address in
// it.
func TestListInOneText(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("kith.yaml", []byte("seeds: 127.0.0.1:1,127.0.0.1:2\n"), 0o600))
	for args, want := range map[string]string{
		"config --check=kith.yaml":  `kith.yaml:1: bad configuration: Seeds: peer: bad address: "127.0.0.1:1,127.0`,
		"config --seeds=http://a:1": `"http://a:1" has a scheme: host:port is wanted`,
		"config":                    `bad address: "a:1 b:2" is a list in one text`,
	} {
		if args == "config" {
			t.Setenv("KITH_SEEDS", "a:1 b:2")
		}
		code, _, errs := program(t, strings.Fields(args)...)
		require.Equal(t, env.ExitUsage, code)
		require.Contains(t, errs, want)
		require.NotContains(t, errs, "brackets")
		require.NoError(t, os.Unsetenv("KITH_SEEDS"))
	}
}

// A node runs with what its file says.
func TestRunTakesItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kith.yaml")
	require.NoError(t, os.WriteFile(file, []byte("name: market\nlisten: '127.0.0.1:0'\nlog-format: json\n"), 0o600))
	cmd, _, stderr := spawn(t, "run", "--config="+file)
	line := until(t, stderr, "node-started")
	require.Contains(t, line, `"cluster":"market"`)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	until(t, stderr, `"event":"node-left"`)
	require.NoError(t, cmd.Wait())
}

// docs/configuration.md says what the flags of kith run and the structs of the library say: nothing more, nothing less.
func TestConfigurationPage(t *testing.T) {
	var c commands
	k, err := kong.New(&c, texts, settings.Envs("run", "config"))
	require.NoError(t, err)
	var node *kong.Node
	for _, n := range k.Model.Children {
		if n.Name == "run" {
			node = n
		}
	}
	flags := *bytes.NewBufferString("| setting | variable | value | what it says |\n|---|---|---|---|\n")
	for _, f := range node.Flags {
		if f.Name != "help" && !f.Tag.Has("file") {
			setting(&flags, f)
		}
	}
	var structs bytes.Buffer
	for _, s := range [][2]string{{"", "Config"}, {"", "MembershipConfig"}, {"", "Resolver"}, {"", "Sharding"},
		{"", "TLS"},
		{"service", "Config"}, {"admin", "Config"}, {"metrics", "Config"}} {
		structOf(t, &structs, s[0], s[1])
	}
	const page = "../../../docs/configuration.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	want := between(t, between(t, string(text), "settings", flags.String()), "structs", structs.String())
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "go test ./internal/cli/command -run TestConfigurationPage -update")
}

// between replaces what stands between the marks of a part of a page.
func between(t *testing.T, page, part, text string) string {
	t.Helper()
	before, rest, found := strings.Cut(page, "<!-- "+part+":begin -->\n")
	require.True(t, found, part)
	_, after, found := strings.Cut(rest, "<!-- "+part+":end -->\n")
	require.True(t, found, part)
	return before + "<!-- " + part + ":begin -->\n" + text + "<!-- " + part + ":end -->\n" + after
}

// setting writes one setting of the node binary.
func setting(w *bytes.Buffer, f *kong.Flag) {
	what := f.Target.Type().String()
	switch {
	case f.IsBool():
		what = "true or false"
	case f.IsSlice():
		what = "list"
	case what == "time.Duration":
		what = "duration"
	case f.Enum != "":
		what = strings.Join(slices.DeleteFunc(f.EnumSlice(), func(v string) bool { return v == "" }), ", ")
	case f.Tag.Type == "existingfile":
		what = "path of a file"
	case what == "string":
		what = "text"
	case strings.Contains(what, "int"):
		what = "whole number"
	}
	switch {
	case f.HasDefault && f.Default == "":
		what += "; default none"
	case f.HasDefault:
		what += "; default `" + f.Default + "`"
	}
	fmt.Fprintf(w, "| `%s` | `%s` | %s | %s |\n", f.Name, settings.Env(f.Name), what,
		strings.ReplaceAll(f.Help, "|", "\\|"))
}

// structOf writes the fields of a struct of a public package, with their comments.
func structOf(t *testing.T, w *bytes.Buffer, dir, name string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../..", dir, "*.go"))
	require.NoError(t, err)
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, "github.com/kith-io/kith/"+dir)
	require.NoError(t, err)
	for _, typ := range p.Types {
		if typ.Name != name {
			continue
		}
		fmt.Fprintf(w, "\n### `%s.%s`\n\n| field | type | what it says |\n|---|---|---|\n", p.Name, name)
		for _, field := range typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
			for _, n := range field.Names {
				text := strings.Join(strings.Fields(field.Doc.Text()+field.Comment.Text()), " ")
				fmt.Fprintf(w, "| `%s` | `%s` | %s |\n", n.Name, typeOf(field.Type), strings.ReplaceAll(text, "|", "\\|"))
			}
		}
		return
	}
	require.Fail(t, "no such struct", name)
}

// typeOf writes a type of a field, functions without their parameters.
func typeOf(e ast.Expr) string {
	switch v := e.(type) {
	case *ast.Ident:
		return v.Name
	case *ast.SelectorExpr:
		return typeOf(v.X) + "." + v.Sel.Name
	case *ast.StarExpr:
		return "*" + typeOf(v.X)
	case *ast.ArrayType:
		return "[]" + typeOf(v.Elt)
	case *ast.MapType:
		return "map[" + typeOf(v.Key) + "]" + typeOf(v.Value)
	}
	return "func"
}

// Every decoder has a fuzz target: what reads bytes of others is reached from one in its own package.

package rules

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// decoderName is how decoders are called here.
var decoderName = regexp.MustCompile(`^(Read|Parse|Decode|Unpack|Split|Answer|read|parse|decode|unpack)([A-Z]|$)`)

// decoderRooms are the packages that read what other nodes send.
var decoderRooms = strings.Fields(`wire peer route flow entity gossip fd cluster members membership shard sbr node
	courier driver hello trust transport`)

// noDecoders read what no other node sent, or are reached in another package's target.
var noDecoders = map[string]string{
	"sbr.ParseStrategy": "a word of the configuration",
	"driver.read":       "frames that the splitter has cut; its decoders are those of wire",
}

// takesInput reports whether a function has bytes of others among its parameters: bytes, a text, a cursor, a socket.
func takesInput(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		switch x := p.Type.(type) {
		case *ast.ArrayType:
			if id, ok := x.Elt.(*ast.Ident); ok && x.Len == nil && id.Name == "byte" {
				return true
			}
		case *ast.Ident:
			if x.Name == "string" {
				return true
			}
		case *ast.StarExpr:
			if sel, ok := x.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "Reader" {
				return true
			}
		case *ast.SelectorExpr:
			if x.Sel.Name == "Conn" {
				return true
			}
		}
	}
	return false
}

// unfuzzed returns the decoders of one package that none of its fuzz targets reaches, by the names that functions
// mention. Functions of one name count as one.
func unfuzzed(files []*source) (found []finding) {
	mentions := map[string][]string{}
	var reached []string
	for _, s := range files {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if s.tests && strings.HasPrefix(f.Name.Name, "Fuzz") {
				reached = append(reached, f.Name.Name)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					mentions[f.Name.Name] = append(mentions[f.Name.Name], id.Name)
				}
				return true
			})
		}
	}
	seen := map[string]bool{}
	for len(reached) > 0 {
		name := reached[0]
		reached = reached[1:]
		if !seen[name] {
			seen[name] = true
			reached = append(reached, mentions[name]...)
		}
	}
	for _, s := range files {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.tests || !decoderName.MatchString(f.Name.Name) || !takesInput(f) || seen[f.Name.Name] ||
				noDecoders[s.pkgName+"."+f.Name.Name] != "" {
				continue
			}
			found = append(found, s.at(f.Pos(), "no fuzz target of its package reaches the decoder %s", f.Name.Name))
		}
	}
	return found
}

// TestDecodersAreFuzzed holds it.
func TestDecodersAreFuzzed(t *testing.T) {
	all, err := sources()
	require.NoError(t, err)
	packages := map[string][]*source{}
	for _, s := range all {
		if slices.Contains(decoderRooms, s.pkgName) {
			packages[path.Dir(s.path)] = append(packages[path.Dir(s.path)], s)
		}
	}
	require.Greater(t, len(packages), 10)
	for _, files := range packages {
		for _, f := range unfuzzed(files) {
			t.Error(f)
		}
	}
}

// TestUnfuzzedDecodersAreFound proves that the rule can fail.
func TestUnfuzzedDecodersAreFound(t *testing.T) {
	code, err := parse("wire/x.go", []byte(`package wire
func ReadThis(b []byte) {}
func ParseThat(s string) { readDeep(nil) }
func readDeep(r *wire.Reader) {}
func ReadNothing(n int) {}
func readHello(nc net.Conn) {}`))
	require.NoError(t, err)
	target, err := parse("wire/x_test.go", []byte(`package wire
func FuzzThat(f *testing.F) { help() }
func help() { ParseThat("") }`))
	require.NoError(t, err)
	require.Len(t, unfuzzed([]*source{code}), 4)
	found := unfuzzed([]*source{code, target})
	require.Len(t, found, 2)
	require.Contains(t, string(found[0]), "ReadThis")
	require.Contains(t, string(found[1]), "readHello")
}
